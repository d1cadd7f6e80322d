"""A series of memory readings in constant room: buckets of (start, least, most, count) at several widths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

KEPT = 96
"""Buckets that a ring holds."""
FULL_SHARE = 0.3
"""A bucket counts when so much of what should have come has come: gaps drop out."""


@dataclass(slots=True)
class Bucket:
    """The readings of one stretch of time. Seconds and MiB."""

    start_s: float
    least: float
    most: float
    count: int

    def take(self, other: Bucket) -> None:
        self.least = min(self.least, other.least)
        self.most = max(self.most, other.most)
        self.count += other.count


class Ring:
    """The newest buckets of one width; a growing one doubles its width instead of forgetting."""

    def __init__(self, width_s: float, *, grows: bool = False) -> None:
        self.width_s = width_s
        self._grows = grows
        self._buckets: list[Bucket] = []

    def add(self, fresh: Bucket) -> None:
        start_s = math.floor(fresh.start_s / self.width_s) * self.width_s
        if self._buckets and self._buckets[-1].start_s == start_s:
            self._buckets[-1].take(fresh)
            return
        self._buckets.append(Bucket(start_s, fresh.least, fresh.most, fresh.count))
        if len(self._buckets) > KEPT:
            if self._grows:
                self._double()
            else:
                del self._buckets[0]

    def _double(self) -> None:
        self.width_s *= 2
        merged: list[Bucket] = []
        for bucket in self._buckets:
            start_s = math.floor(bucket.start_s / self.width_s) * self.width_s
            if merged and merged[-1].start_s == start_s:
                merged[-1].take(bucket)
            else:
                merged.append(Bucket(start_s, bucket.least, bucket.most, bucket.count))
        self._buckets = merged

    def counted(self, interval_s: float) -> list[Bucket]:
        """The buckets that have enough readings, with one due every `interval_s`."""
        least = FULL_SHARE * self.width_s / interval_s
        return [bucket for bucket in self._buckets if bucket.count >= least]


def drawdown(buckets: Sequence[Bucket]) -> float:
    """The most that the troughs ever fell back, in MiB: memory that was given back."""
    highest, deepest = float("-inf"), 0.0
    for bucket in buckets:
        highest = max(highest, bucket.least)
        deepest = max(deepest, highest - bucket.least)
    return deepest
