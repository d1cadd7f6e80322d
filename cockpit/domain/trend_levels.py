"""One time scale of a memory series: does its floor rise, level off, or stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cockpit.domain.trend_buckets import Bucket, drawdown
from cockpit.domain.trend_stats import line_through, mann_kendall_z, theil_sen

Shape: TypeAlias = Literal["flat", "step", "decelerating", "growing"]

LEAST_BUCKETS = 32
BLOCKS, SUB_BLOCKS = 6, 12
POINTS = 48
"""A slope is taken through so many troughs at most."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Every number of the trend detector. MiB, seconds, shares. They come from labelled traces (benchmarks/leak)."""

    least_rise_mib: float = 24.0
    least_granules: float = 4.0
    least_share_of_capacity: float = 0.0004
    sawtooth_share: float = 0.12
    """Of the drawdown, where every block gave memory back: the rhythm is understood."""
    drawdown_factor: float = 1.25
    """Of the drawdown, where it did not: growth must leave behind what was ever given back."""
    rising_blocks: int = 4
    fall_share: float = 0.08
    step_share: float = 0.5
    """One increase that makes more of the rise than this is a step, and no leak."""
    steady_ratio: float = 0.75
    """Second half of the rise over the first: below it the growth levels off."""
    falling_t: float = 3.0
    falling_share: float = 0.8
    trend_z: float = 2.5
    age_ratio: float = 0.85
    """Rate of the last half of the growth over the quarter before it. A steady leak has 1, a square root 0.71."""
    age_reach: float = 0.97
    age_deviations: float = 1.5
    late_least_s: float = 3600.0
    late_share_of_age: float = 0.45
    late_ratio: float = 0.9
    """For growth that began after a warm-up: judged over a window of its own, and more strictly."""
    span_s: float = 1380.0
    hold: int = 10
    """Checks in a row, one a minute."""
    withdraw: int = 30
    soon_s: float = 2700.0
    soon_span_s: float = 480.0
    soon_hold: int = 2
    rush_share: float = 0.8
    """Of the capacity: above it a rise that does not pause for two minutes is looked at by itself."""
    rush_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Scale:
    """What limits a series: the card's or cgroup's size, and the grain of its readings."""

    capacity_mib: float | None
    granule_mib: float


@dataclass(frozen=True, slots=True)
class Level:
    """The verdict on one window. Slopes are MiB a second."""

    shape: Shape
    start_s: float
    span_s: float
    rise_mib: float = 0.0
    ratio: float = 1.0
    peak_mib: float = 0.0
    """The highest reading of its last quarter: memory runs out at a peak, not at a trough."""
    floor_mib: float = 0.0
    slope: float = 0.0
    slope_low: float = 0.0
    slope_high: float = 0.0
    late_slope: float = 0.0
    """Of its last third, whatever the shape."""


def judge(
    buckets: Sequence[Bucket], width_s: float, scale: Scale, limits: Thresholds, given_back: float
) -> Level | None:
    """The shape of a window; None while it holds too little. `given_back`: MiB ever seen to fall elsewhere."""
    if len(buckets) < LEAST_BUCKETS:
        return None
    troughs = [bucket.least for bucket in buckets]
    blocks = minima(troughs, BLOCKS)
    rise = blocks[-1] - blocks[0]
    shape = _shape(buckets, troughs, blocks, scale, limits, given_back)
    start_s = buckets[0].start_s
    span_s = buckets[-1].start_s + width_s - start_s
    slope = low = high = 0.0
    if shape == "growing":
        slope, low, high = _slopes(buckets, blocks, span_s)
        if slope <= 0:
            shape = "flat"
    peak = max(bucket.most for bucket in buckets[3 * len(buckets) // 4 :])
    late = (blocks[5] - blocks[3]) * BLOCKS / 2 / span_s
    ratio, floor = _ratio(blocks), blocks[-1]
    return Level(shape, start_s, span_s, rise, ratio, peak, floor, slope, low, high, late)


def minima(values: Sequence[float], parts: int) -> list[float]:
    """The least of each of so many equal parts."""
    count = len(values)
    return [
        min(values[part * count // parts : (part + 1) * count // parts]) for part in range(parts)
    ]


def _ratio(blocks: Sequence[float]) -> float:
    first = blocks[2] - blocks[0]
    return (blocks[5] - blocks[3]) / first if first > 0 else math.inf


def _shape(
    buckets: Sequence[Bucket],
    troughs: Sequence[float],
    blocks: Sequence[float],
    scale: Scale,
    limits: Thresholds,
    given_back: float,
) -> Shape:
    rise = blocks[-1] - blocks[0]
    if rise < _least_rise(buckets, scale, limits, given_back):
        return "flat"
    steps = [after - before for before, after in zip(blocks, blocks[1:], strict=False)]
    if sum(step > 0 for step in steps) < limits.rising_blocks:
        return "step"
    if min(steps) < -max(2 * scale.granule_mib, limits.fall_share * rise):
        return "flat"
    levels_off = _ratio(blocks) < limits.steady_ratio
    if max(steps) > limits.step_share * rise:
        return "decelerating" if steps[0] == max(steps) and levels_off else "step"
    if levels_off or _rate_falls(troughs, limits):
        return "decelerating"
    return "growing" if mann_kendall_z(_thinned(buckets)[1]) > limits.trend_z else "flat"


def _least_rise(
    buckets: Sequence[Bucket], scale: Scale, limits: Thresholds, given_back: float
) -> float:
    """A rise below this is noise, or no more than what the series gives back by itself."""
    least = max(
        limits.least_rise_mib,
        limits.least_granules * scale.granule_mib,
        limits.least_share_of_capacity * (scale.capacity_mib or 0.0),
    )
    fallen = drawdown(buckets)
    noise = 2 * scale.granule_mib
    if fallen > noise and _released_in_every_block(buckets, fallen):
        return max(least, limits.sawtooth_share * fallen)
    fallen = max(fallen if fallen > noise else 0.0, given_back if given_back > noise else 0.0)
    return max(least, limits.drawdown_factor * fallen)


def _released_in_every_block(buckets: Sequence[Bucket], fallen: float) -> bool:
    count = len(buckets)
    for part in range(BLOCKS):
        highest, drop = float("-inf"), 0.0
        for bucket in buckets[max(0, part * count // BLOCKS - 1) : (part + 1) * count // BLOCKS]:
            drop = max(drop, highest - bucket.least)
            highest = max(highest, bucket.most)
        if drop < 0.5 * fallen:
            return False
    return True


def _rate_falls(troughs: Sequence[float], limits: Thresholds) -> bool:
    floor = minima(troughs, SUB_BLOCKS)
    steps = [after - before for before, after in zip(floor, floor[1:], strict=False)]
    first, last, t = line_through(steps)
    return t < -limits.falling_t and (first <= 0 or last / first < limits.falling_share)


def _thinned(buckets: Sequence[Bucket]) -> tuple[list[float], list[float]]:
    """(times, troughs) of at most POINTS groups."""
    count = len(buckets)
    parts = min(count, POINTS)
    groups = [buckets[part * count // parts : (part + 1) * count // parts] for part in range(parts)]
    times = [group[len(group) // 2].start_s for group in groups]
    return times, [min(bucket.least for bucket in group) for group in groups]


def _slopes(
    buckets: Sequence[Bucket], blocks: Sequence[float], span_s: float
) -> tuple[float, float, float]:
    """The slope with an interval that is widened by how much the blocks differ: steps come in clusters."""
    slope, low, high = theil_sen(*_thinned(buckets))
    rates = [
        (after - before) * BLOCKS / span_s
        for before, after in zip(blocks, blocks[1:], strict=False)
    ]
    mean = sum(rates) / len(rates)
    error = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1) / len(rates))
    low = min(low, mean - 1.6 * error, 0.8 * slope)
    return slope, low, max(high, mean + 1.6 * error, 1.25 * slope)
