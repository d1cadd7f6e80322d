"""Leak, warm-up, step or noise: the shapes that the detector must tell apart, and what it says of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from cockpit.domain.memory_trend import MemoryTrend
from cockpit.domain.trend_age import ageing
from cockpit.domain.trend_buckets import KEPT, Bucket, Ring, drawdown
from cockpit.domain.trend_stats import line_through, mann_kendall_z, theil_sen

CARD_MIB = 24_564.0
BASE_MIB = 9_000.0
HOUR_S = 3600.0


def watched(
    curve: Callable[[float], float],
    hours: float,
    *,
    capacity: float | None = CARD_MIB,
    step_s: float = 2.0,
) -> MemoryTrend:
    """The detector after a load of a minute and so many hours of a curve, in the driver's grain."""
    trend = MemoryTrend(capacity)
    for number in range(int(hours * HOUR_S / step_s)):
        t = number * step_s
        used = BASE_MIB * min(1.0, t / 60) + (curve(t - 60) if t > 60 else 0.0)
        trend.feed(t, math.floor(used / 2) * 2)
    return trend


def test_a_steady_leak_is_flagged_within_the_hour_with_its_rate_and_end() -> None:
    trend = watched(lambda t: 400 * t / HOUR_S, 2.0)
    assert trend.verdict == "leak" and trend.flagged
    (alarm,) = trend.alarms
    assert alarm.flagged_at_s < HOUR_S and alarm.withdrawn_at_s is None
    assert trend.slope_mib_per_h == pytest.approx(400, rel=0.05)
    left_s = (CARD_MIB - BASE_MIB - 800) / 400 * HOUR_S
    assert trend.eta is not None
    assert trend.eta.low_s < left_s < trend.eta.high_s
    assert trend.eta.at_s == pytest.approx(left_s, rel=0.05)


@pytest.mark.parametrize("tau_s", [300.0, 900.0, 2400.0])
def test_a_warm_up_is_a_plateau_and_its_height_is_foreseen(tau_s: float) -> None:
    trend = watched(lambda t: 4000 * (1 - math.exp(-t / tau_s)), 3.0)
    assert trend.alarms == [] and trend.verdict in ("plateau", "flat")
    early = watched(lambda t: 4000 * (1 - math.exp(-t / 2400)), 0.9)
    assert early.plateau_mib is not None
    assert early.plateau_mib == pytest.approx(BASE_MIB + 4000, rel=0.1)


def sawtooth(t: float) -> float:
    return 1500 * (t % 90) / 90


def spikes(t: float) -> float:
    return 5000.0 if t % 900 > 850 else 0.0


def one_step(t: float) -> float:
    return 3000.0 if t > 2000 else 0.0


def noise(t: float) -> float:
    return random.Random(t).uniform(0, 120)


def load(t: float) -> float:
    return 900 * (0.5 + 0.5 * math.sin(t / 400))


QUIET = {"sawtooth": sawtooth, "spikes": spikes, "one step": one_step, "noise": noise, "load": load}


@pytest.mark.parametrize("curve", QUIET.values(), ids=QUIET)
def test_what_comes_and_goes_or_comes_once_is_no_leak(curve: Callable[[float], float]) -> None:
    assert watched(curve, 3.0).alarms == []


def test_a_sawtooth_on_a_rising_floor_is_one() -> None:
    assert watched(lambda t: sawtooth(t) + 600 * t / HOUR_S, 3.0).verdict == "leak"


def test_stairs_are_a_leak_after_some_of_them() -> None:
    trend = watched(lambda t: 120 * int(t / 500), 4.0)
    assert trend.verdict == "leak"
    assert trend.slope_mib_per_h == pytest.approx(120 / 500 * HOUR_S, rel=0.15)


def test_growth_that_stops_withdraws_the_alarm() -> None:
    trend = watched(lambda t: 1200 * min(t, 5400) / HOUR_S, 5.0)
    (alarm,) = trend.alarms
    assert alarm.withdrawn_at_s is not None and alarm.withdrawn_at_s > 5400
    assert trend.verdict != "leak" and trend.eta is None


def test_a_leak_after_a_warm_up_is_found() -> None:
    trend = watched(lambda t: 3000 * (1 - math.exp(-t / 900)) + 500 * t / HOUR_S, 6.0)
    assert trend.verdict == "leak"
    assert trend.slope_mib_per_h == pytest.approx(500, rel=0.2)


def test_memory_that_is_full_soon_is_told_before_any_verdict() -> None:
    trend = watched(lambda t: 30_000 * t / HOUR_S, 0.45)
    assert trend.soon_at_s is not None and trend.soon_at_s < 0.45 * HOUR_S
    assert trend.alarms == []


def test_without_a_size_there_is_a_rate_and_no_end() -> None:
    trend = watched(lambda t: 800 * t / HOUR_S, 1.5, capacity=None)
    assert trend.verdict == "leak" and trend.eta is None and trend.slope_mib_per_h


def test_minute_readings_and_long_gaps_do_not_hide_a_leak() -> None:
    trend = MemoryTrend(CARD_MIB)
    for minute in range(8 * 60):
        if not 100 <= minute < 130:
            trend.feed(minute * 60.0, BASE_MIB + 10 * minute)
    assert trend.verdict == "leak"
    assert trend.slope_mib_per_h == pytest.approx(600, rel=0.1)


def test_readings_out_of_order_or_twice_are_left_out() -> None:
    trend = MemoryTrend()
    assert not trend.feed(10.0, 5.0)
    assert not trend.feed(10.0, 9e9) and not trend.feed(3.0, 9e9)
    assert not trend.feed(math.nan, 9e9)


def test_a_year_of_readings_takes_the_room_of_a_day() -> None:
    life = Ring(15.0, grows=True)
    for number in range(40_000):
        life.add(Bucket(number * 800.0, 1.0, 1.0, 1))
    assert len(life.counted(1e9)) <= KEPT
    assert life.width_s > 3e5


def test_a_bucket_with_too_few_readings_does_not_count() -> None:
    ring = Ring(60.0)
    ring.add(Bucket(0.0, 5.0, 5.0, 17))
    ring.add(Bucket(60.0, 6.0, 7.0, 18))
    assert [bucket.start_s for bucket in ring.counted(1.0)] == [60.0]
    assert len(ring.counted(60.0)) == 2


def test_statistics_against_known_values() -> None:
    assert mann_kendall_z([1, 2, 3, 4, 5]) == pytest.approx(
        9 / math.sqrt(50 * 5 / 15 - 0), rel=0.05
    )
    assert mann_kendall_z([1, 1, 1]) == 0.0
    assert mann_kendall_z([1, 1, 2, 2]) < mann_kendall_z([1, 2, 3, 4])
    slope, low, high = theil_sen([0, 1, 2, 3, 4], [0, 2, 4, 6, 100])
    assert slope == pytest.approx(2.0) and low <= slope <= high
    assert theil_sen([1.0], [1.0]) == (0.0, 0.0, 0.0)
    first, last, t = line_through([5.0, 4.0, 3.0, 2.0])
    assert first == pytest.approx(5.0) and last == pytest.approx(2.0) and t < -1e3


def test_what_was_given_back_is_measured_from_the_highest_floor() -> None:
    floors = [3.0, 9.0, 4.0, 12.0, 11.0]
    buckets = [Bucket(place * 15.0, floor, floor + 1, 15) for place, floor in enumerate(floors)]
    assert drawdown(buckets) == 5.0 and drawdown([]) == 0.0


@pytest.mark.parametrize(
    ("grown", "ratio"),
    [(lambda t: t, 1.0), (lambda t: 100 * math.sqrt(t), 0.71)],
    ids=["straight", "root"],
)
def test_the_age_of_growth_does_not_depend_on_its_scale(
    grown: Callable[[float], float], ratio: float
) -> None:
    for stretch in (1.0, 60.0):
        buckets = [
            Bucket(place * 15.0 * stretch, grown(place * 60.0), grown(place * 60.0), 1)
            for place in range(96)
        ]
        age = ageing(buckets, 15.0 * stretch)
        assert age is not None and age.ratio == pytest.approx(ratio, rel=0.08)
