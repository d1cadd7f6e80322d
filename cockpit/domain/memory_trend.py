"""Leak, warm-up or noise: the verdict on one series of memory readings, as it comes, in constant room.

The floor of the series is judged at five time scales, coarse to fine; growth that passes is a leak when it is
as fast as it was when it began, for minutes on end. An alarm is withdrawn when the growth stops.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cockpit.domain.trend_age import Ageing, ageing
from cockpit.domain.trend_buckets import Bucket, Ring, drawdown
from cockpit.domain.trend_levels import (
    LEAST_BUCKETS,
    Level,
    Scale,
    Thresholds,
    judge,
    minima,
)

Verdict: TypeAlias = Literal["leak", "growing", "plateau", "flat", "unknown"]

WIDTHS_S = (15.0, 60.0, 240.0, 960.0, 3840.0)
CHECK_S = 60.0
LOADING_LEAST_S, LOADING_MOST_S = 90.0, 600.0
LOADING_LOOK_S, LOADING_MIB = 75.0, 64.0
"""A model is being loaded until less than this came in so many seconds."""
RUSH_STEP_S, RUSH_READINGS, RUSH_BLOCKS, RUSH_LEAST_S = 5.0, 25, 5, 115.0
SOON_HOLDS_S = 300.0
GAP_INTERVALS = 10.0
"""A pause longer than so many intervals says nothing about the interval."""


@dataclass(frozen=True, slots=True)
class Eta:
    """Seconds until the memory is full at the present rate, with the interval that held for 9 of 10 traces.

    `high_s` is infinite where the lower rate is none.
    """

    at_s: float
    low_s: float
    high_s: float


@dataclass(slots=True)
class Alarm:
    """One stretch of the verdict `leak`."""

    flagged_at_s: float
    slope_mib_per_h: float
    eta: Eta | None
    withdrawn_at_s: float | None = None


class MemoryTrend:
    """Feed it readings in order of time; ask for the verdict whenever one likes."""

    def __init__(
        self,
        capacity_mib: float | None = None,
        *,
        granule_mib: float = 2.0,
        limits: Thresholds | None = None,
    ) -> None:
        """`capacity_mib` is where it ends: the card's size less what others hold, or the cgroup's limit."""
        self.verdict: Verdict = "unknown"
        self.alarms: list[Alarm] = []
        self.level: Level | None = None
        """The window that decides; None while none does."""
        self.soon_at_s: float | None = None
        """When it was first seen that memory runs out within the hour, whatever the cause."""
        self._scale = Scale(capacity_mib, granule_mib)
        self._limits = limits or Thresholds()
        self._rings = [Ring(width_s) for width_s in WIDTHS_S]
        self._life = Ring(WIDTHS_S[0], grows=True)
        self._open: Bucket | None = None
        self._loading: deque[tuple[float, float]] | None = deque()
        self._first_s: float | None = None
        self._last_s = -math.inf
        self._next_s = math.inf
        self._interval_s = 1.0
        self._intervals = 0
        self._passed = self._failed = self._soon = 0
        self._soon_until_s = -math.inf
        self._recent: deque[tuple[float, float]] = deque(maxlen=RUSH_READINGS)

    @property
    def flagged(self) -> bool:
        return bool(self.alarms) and self.alarms[-1].withdrawn_at_s is None

    @property
    def is_soon(self) -> bool:
        """Whether it was seen within the last minutes that memory is about to be full."""
        return self._last_s < self._soon_until_s

    @property
    def slope_mib_per_h(self) -> float | None:
        return (
            None if self.level is None or self.level.shape != "growing" else self.level.slope * 3600
        )

    @property
    def eta(self) -> Eta | None:
        """None without growth or a capacity."""
        level, capacity = self.level, self._scale.capacity_mib
        if level is None or level.shape != "growing" or capacity is None:
            return None
        room = max(0.0, capacity - level.peak_mib)
        high_s = room / level.slope_low if level.slope_low > 0 else math.inf
        return Eta(room / level.slope, room / level.slope_high, high_s)

    @property
    def plateau_mib(self) -> float | None:
        """Where a warm-up is heading, as far as its rate has fallen; None when it is none."""
        level = self.level
        if level is None or level.shape != "decelerating" or not 0 <= level.ratio < 1:
            return None
        share = level.ratio**2
        return level.floor_mib + level.rise_mib * share / (1 - share)

    def resize(self, capacity_mib: float | None) -> None:
        """The room is another one: a neighbour came or went."""
        self._scale = Scale(capacity_mib, self._scale.granule_mib)

    def feed(self, at_s: float, used_mib: float) -> bool:
        """Take a reading; True when the verdict may have changed. Readings out of order are left out."""
        if not at_s > self._last_s:
            return False
        self._note_interval(at_s)
        self._look_for_a_rush(at_s, used_mib)
        if self._loading is not None and self._still_loading(at_s, used_mib):
            return False
        self._collect(at_s, used_mib)
        if at_s < self._next_s:
            return False
        self._next_s = at_s + CHECK_S
        self._check(at_s)
        return True

    # -- readings -----------------------------------------------------------------------------

    def _note_interval(self, at_s: float) -> None:
        if self._first_s is None:
            self._first_s, self._next_s = at_s, at_s + CHECK_S
        else:
            passed_s = at_s - self._last_s
            if not self._intervals:
                self._interval_s = passed_s
            elif passed_s < GAP_INTERVALS * self._interval_s:
                self._interval_s += (passed_s - self._interval_s) / min(20, self._intervals + 1)
            self._intervals += 1
        self._last_s = at_s

    def _still_loading(self, at_s: float, used_mib: float) -> bool:
        recent, age_s = self._loading, at_s - (self._first_s or 0.0)
        assert recent is not None
        recent.append((at_s, used_mib))
        while recent[0][0] < at_s - LOADING_LOOK_S:
            recent.popleft()
        came_mib = used_mib - recent[0][1]
        if age_s > LOADING_MOST_S or (age_s > LOADING_LEAST_S and came_mib < LOADING_MIB):
            self._loading = None
            return False
        return True

    def _collect(self, at_s: float, used_mib: float) -> None:
        start_s = math.floor(at_s / WIDTHS_S[0]) * WIDTHS_S[0]
        bucket = self._open
        if bucket is not None and bucket.start_s == start_s:
            bucket.least = min(bucket.least, used_mib)
            bucket.most = max(bucket.most, used_mib)
            bucket.count += 1
            return
        if bucket is not None:
            for ring in (*self._rings, self._life):
                ring.add(bucket)
        self._open = Bucket(start_s, used_mib, used_mib, 1)

    # -- verdict ------------------------------------------------------------------------------

    def _check(self, at_s: float) -> None:
        life = self._life.counted(self._interval_s)
        if self.level is None and not self.flagged and self._stands_still(life):
            self.verdict = "plateau" if self.alarms else "flat"
            return
        given_back = drawdown(life)
        levels = self._levels(given_back)
        deciding = next((one for one in levels if one.shape in ("growing", "decelerating")), None)
        age = None
        if deciding is None or deciding.shape == "decelerating":
            late = self._late_growth(at_s, life, given_back)
            deciding, age = late if late is not None else (deciding, None)
        elif deciding.shape == "growing":
            age = ageing(life, self._life.width_s)
        self.level = deciding
        self._judge_leak(at_s, deciding, age)
        self._judge_soon(at_s, deciding)
        self.verdict = self._verdict(levels)

    def _stands_still(self, life: Sequence[Bucket]) -> bool:
        """Most series never move: they are not worth a closer look."""
        if len(life) < LEAST_BUCKETS:
            return False
        highest = max(bucket.most for bucket in life)
        return highest - min(bucket.least for bucket in life) < self._limits.least_rise_mib

    def _levels(self, given_back: float) -> list[Level]:
        """Coarse to fine; each window knows what coarser ones saw given back."""
        levels = []
        for ring in reversed(self._rings):
            buckets = ring.counted(self._interval_s)
            level = judge(buckets, ring.width_s, self._scale, self._limits, given_back)
            if level is not None:
                levels.append(level)
                given_back = max(given_back, drawdown(buckets))
        return levels

    def _late_growth(
        self, at_s: float, life: Sequence[Bucket], given_back: float
    ) -> tuple[Level, Ageing] | None:
        """Growth that goes on after a warm-up, in a window that is a good part of the series' life."""
        limits = self._limits
        least_s = max(
            limits.late_least_s, limits.late_share_of_age * (at_s - (self._first_s or 0.0))
        )
        for ring in self._rings:
            buckets = ring.counted(self._interval_s)
            newer = buckets[len(buckets) // 2 :] if len(buckets) >= 2 * LEAST_BUCKETS else []
            for window in (newer, buckets):
                level = judge(window, ring.width_s, self._scale, limits, given_back)
                if level is None or level.shape != "growing" or level.span_s < least_s:
                    continue
                age = ageing(life, self._life.width_s, at_s - level.span_s)
                if age is not None and age.ratio >= limits.late_ratio and self._is_steady(age):
                    return level, age
        return None

    def _is_steady(self, age: Ageing) -> bool:
        limits = self._limits
        reach = age.ratio + limits.age_deviations * age.deviation
        return age.ratio >= limits.age_ratio and reach >= limits.age_reach

    def _judge_leak(self, at_s: float, level: Level | None, age: Ageing | None) -> None:
        growing = level is not None and level.shape == "growing"
        long = level is not None and level.span_s >= self._limits.span_s
        passes = growing and long and age is not None and self._is_steady(age)
        self._passed = self._passed + 1 if passes else 0
        if self.flagged:
            self._failed = 0 if growing else self._failed + 1
            if self._failed >= self._limits.withdraw:
                self.alarms[-1].withdrawn_at_s = at_s
        elif self._passed >= self._limits.hold:
            self._failed = 0
            self.alarms.append(Alarm(at_s, self.slope_mib_per_h or 0.0, self.eta))

    def _judge_soon(self, at_s: float, level: Level | None) -> None:
        """Memory that will be full soon is news whatever fills it: a warm-up that will not fit is."""
        limits, capacity = self._limits, self._scale.capacity_mib
        if level is None or capacity is None or level.span_s < limits.soon_span_s:
            self._soon = 0
            return
        slope = level.slope if level.shape == "growing" else level.late_slope
        fits = level.shape == "decelerating" and (self.plateau_mib or 0.0) < capacity
        near = slope > 0 and max(0.0, capacity - level.peak_mib) / slope < limits.soon_s
        self._soon = self._soon + 1 if near and not fits else 0
        if self._soon >= limits.soon_hold:
            self._tell_soon(at_s)

    def _look_for_a_rush(self, at_s: float, used_mib: float) -> None:
        """A rise that fills the rest within minutes, before any window is long enough to judge it."""
        capacity, recent = self._scale.capacity_mib, self._recent
        if capacity is None or (recent and at_s - recent[-1][0] < RUSH_STEP_S):
            return
        recent.append((at_s, used_mib))
        span_s = at_s - recent[0][0]
        enough = len(recent) == RUSH_READINGS and RUSH_LEAST_S <= span_s <= 3 * RUSH_LEAST_S
        if not enough or used_mib < self._limits.rush_share * capacity:
            return
        floors = minima([mib for _at_s, mib in recent], RUSH_BLOCKS)
        rises = all(after > before for before, after in zip(floors, floors[1:], strict=False))
        rate = (used_mib - recent[0][1]) / span_s
        if rises and rate > 0 and (capacity - used_mib) / rate < self._limits.rush_s:
            self._tell_soon(at_s)

    def _tell_soon(self, at_s: float) -> None:
        self._soon_until_s = at_s + SOON_HOLDS_S
        if self.soon_at_s is None:
            self.soon_at_s = at_s

    def _verdict(self, levels: Sequence[Level]) -> Verdict:
        if self.flagged:
            return "leak"
        if not levels:
            return "unknown"
        if self.level is None:
            return "plateau" if self.alarms else "flat"
        return "growing" if self.level.shape == "growing" else "plateau"
