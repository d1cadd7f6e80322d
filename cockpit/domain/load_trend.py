"""A server's memory beside its load: whether it merely follows the load, and what each request leaves behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

BUCKET_S: Final = 60.0
KEPT: Final = 60
"""An hour: a load that has been level for so long explains no growth."""
LEAST_BUCKETS: Final = 9
ROSE: Final = 1.25
"""The load of the last third against the first, from which on it counts as risen."""
FOLLOWS: Final = 0.8
"""Correlation of memory and load, from which on the one follows the other."""
LEAST_REQUESTS: Final = 100.0
SAME_FIT: Final = 0.02


@dataclass(frozen=True, slots=True)
class Load:
    """Of a server now: requests in work and waiting, and all that it has finished."""

    in_work: float
    finished: float | None = None


@dataclass(slots=True)
class _Bucket:
    start_s: float
    floor_mib: float
    in_work: float = 0.0
    looks: int = 0
    finished: float | None = None


@dataclass(slots=True)
class LoadTrend:
    """Feed it each reading of memory with the load of that moment."""

    _buckets: deque[_Bucket] = field(default_factory=lambda: deque(maxlen=KEPT))

    def feed(self, at_s: float, used_mib: float, load: Load) -> None:
        start_s = at_s // BUCKET_S * BUCKET_S
        if not self._buckets or self._buckets[-1].start_s != start_s:
            self._buckets.append(_Bucket(start_s, used_mib))
        bucket = self._buckets[-1]
        bucket.floor_mib = min(bucket.floor_mib, used_mib)
        bucket.looks += 1
        bucket.in_work += (load.in_work - bucket.in_work) / bucket.looks
        bucket.finished = load.finished if load.finished is not None else bucket.finished

    @property
    def follows_load(self) -> bool:
        """More is in work than before and memory rose with it: that is no leak, as yet."""
        if len(self._buckets) < LEAST_BUCKETS:
            return False
        loads = [one.in_work for one in self._buckets]
        third = len(loads) // 3
        before, now = sum(loads[:third]) / third, sum(loads[-third:]) / third
        if now < ROSE * before or now - before < 1.0:
            return False
        return correlation([one.floor_mib for one in self._buckets], loads) >= FOLLOWS

    @property
    def per_1000_requests_mib(self) -> float | None:
        """What a thousand requests leave behind, where memory grows with them at least as well as with time."""
        known = [one for one in self._buckets if one.finished is not None]
        if len(known) < LEAST_BUCKETS:
            return None
        floors, finished = [one.floor_mib for one in known], [one.finished or 0.0 for one in known]
        served, rise = finished[-1] - finished[0], floors[-1] - floors[0]
        if served < LEAST_REQUESTS or rise <= 0:
            return None
        by_time = correlation(floors, [one.start_s for one in known])
        if correlation(floors, finished) < by_time - SAME_FIT:
            return None
        return rise / served * 1000.0


def correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Pearson's; 0 where one of them does not move."""
    mean_left, mean_right = sum(left) / len(left), sum(right) / len(right)
    pairs = [(a - mean_left, b - mean_right) for a, b in zip(left, right, strict=True)]
    spread = sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs)
    return float(sum(a * b for a, b in pairs) / spread**0.5) if spread > 0 else 0.0
