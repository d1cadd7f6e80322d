"""Is growth as fast as it was when it began? That tells a leak from a warm-up at any time scale."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.domain.trend_buckets import Bucket

ONSET_SHARE = 0.04
"""Of the whole rise: where growth is taken to begin."""
LEAST_BUCKETS = 16
LEAST_WIDTHS = 6
EARLY, LATE = 4, 8
"""Slices of equal length: the quarter before the middle, and the half after it."""
STRONG = 9.0
"""A ratio that nothing speaks against: growth only began."""


@dataclass(frozen=True, slots=True)
class Ageing:
    """Rate of the last half of the growth over the rate of the quarter before it, and its standard deviation."""

    ratio: float
    deviation: float


class _Floor:
    """Memory that was never given back, as a function of time."""

    def __init__(self, buckets: Sequence[Bucket]) -> None:
        self.times = [bucket.start_s for bucket in buckets]
        self.values = [0.0] * len(buckets)
        least = math.inf
        for place in range(len(buckets) - 1, -1, -1):
            least = min(least, buckets[place].least)
            self.values[place] = least

    def at(self, time_s: float) -> float:
        place = bisect_right(self.times, time_s) - 1
        if place < 0:
            return self.values[0]
        if place >= len(self.times) - 1:
            return self.values[-1]
        share = (time_s - self.times[place]) / (self.times[place + 1] - self.times[place])
        return self.values[place] + share * (self.values[place + 1] - self.values[place])

    def rates(self, start_s: float, width_s: float, count: int) -> list[float]:
        edges = [self.at(start_s + number * width_s) for number in range(count + 1)]
        return [(after - before) / width_s for before, after in zip(edges, edges[1:], strict=False)]


def ageing(
    buckets: Sequence[Bucket], width_s: float, since_s: float | None = None
) -> Ageing | None:
    """Of the growth since its onset, or since `since_s`; None while there is too little of it."""
    if len(buckets) < LEAST_BUCKETS:
        return None
    floor = _Floor(buckets)
    rise = floor.values[-1] - floor.values[0]
    if rise <= 0:
        return None
    onset = next(
        place
        for place, value in enumerate(floor.values)
        if value >= floor.values[0] + ONSET_SHARE * rise
    )
    start_s = max(floor.times[max(0, onset - 1)], since_s if since_s is not None else -math.inf)
    span_s = floor.times[-1] - start_s
    if span_s < LEAST_WIDTHS * width_s:
        return None
    slice_s = span_s / 16
    early = floor.rates(start_s + span_s / 4, slice_s, EARLY)
    late = floor.rates(start_s + span_s / 2, slice_s, LATE)
    before = sum(early) / EARLY
    if before <= 0:
        return Ageing(STRONG, STRONG)
    ratio = sum(late) / LATE / before
    return Ageing(ratio, ratio * math.hypot(_relative_error(early), _relative_error(late)))


def _relative_error(rates: Sequence[float]) -> float:
    """Of their mean."""
    mean = sum(rates) / len(rates)
    if mean <= 0:
        return STRONG
    variance = sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1)
    return math.sqrt(variance / len(rates)) / mean
