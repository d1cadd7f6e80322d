"""Readings of hours in little memory: true at their ends, bounded, and without what nobody read."""

from __future__ import annotations

from dataclasses import replace

from cockpit.domain.curves import ENOUGH, FORGET_S, MOST_SERIES, STEPS_S, HostCurves, Series
from cockpit.domain.incident_proof import MOST_POINTS, MOST_STEPS, Step, with_step
from tests.builders.samples import disk, gpu, host_sample, process

START_S = 1_700_000_000.0


def fed(seconds: int, every_s: int = 1, rate: float = 1.0) -> Series:
    series = Series()
    for at in range(0, seconds, every_s):
        series.feed(START_S + at, 1000 + rate * at, 10_000)
    return series


def test_the_last_ten_minutes_end_with_the_newest_reading() -> None:
    values = fed(300).values(0, START_S + 299)
    assert len(values) == 60
    assert values[-1] == 1299 and values[0] is not None and values[0] >= 1000
    assert list(values) == sorted(values, key=lambda value: value or 0)


def test_each_stretch_keeps_its_highest_reading() -> None:
    series = Series()
    for at, value in ((0, 5.0), (1, 90.0), (2, 7.0), (5, 3.0)):
        series.feed(START_S + at, value)
    assert series.values(0, START_S + 5) == (90.0, 3.0)


def test_a_gap_is_no_zero() -> None:
    series = Series()
    series.feed(START_S, 1.0)
    series.feed(START_S + 20, 2.0)
    assert series.values(0, START_S + 20) == (1.0, None, None, None, 2.0)


def test_coarser_scales_reach_back_for_hours_and_up_to_now() -> None:
    seconds = 9 * 3600
    series = fed(seconds, every_s=5)
    level = series.widest()
    values = series.values(level, START_S + seconds - 5)
    assert STEPS_S[level] == 320.0
    assert values[0] is not None and values[0] <= 1000 + 320
    assert values[-1] == 1000 + seconds - 5


def test_a_short_life_is_shown_on_the_finest_scale() -> None:
    assert fed(120).widest() == 0
    assert fed(int(STEPS_S[1] * (ENOUGH + 2)), every_s=5).widest() == 1


def test_what_is_kept_does_not_grow() -> None:
    series = fed(40 * 3600, every_s=60)
    kept = [len(scale.values) for scale in series._scales]
    assert max(kept) <= MOST_POINTS
    assert len(series.values(3, START_S + 40 * 3600)) <= MOST_POINTS


def test_a_clock_that_goes_back_breaks_nothing() -> None:
    series = Series()
    series.feed(START_S, 5.0)
    series.feed(START_S - 7200, 9.0)
    assert series.values(0, START_S) == (9.0,)


def test_a_host_has_series_of_cards_processes_memory_and_disks() -> None:
    curves = HostCurves()
    card = gpu(0, processes=(process(41, mem_used_mib=500),))
    sample = host_sample("h", gpus=[card], disks=(disk("/data", free_mib=10, total_mib=100),))
    curves.take(replace(sample, shm_total_mib=64, shm_free_mib=4), START_S)
    wanted = [
        (("gpu", 0, None), 20_480), (("util", 0, None), 97), (("process", 0, 41), 500),
        (("shm", None, None), 60), (("disk", "/data", None), 90),
    ]  # fmt: skip
    for key, value in wanted:
        series = curves.get(key)
        assert series is not None and series.values(0, START_S) == (value,)


def test_a_host_cannot_fill_our_memory() -> None:
    curves = HostCurves()
    for number in range(MOST_SERIES + 100):
        card = gpu(0, processes=(process(number, mem_used_mib=1),))
        curves.take(host_sample("h", gpus=[card]), START_S)
    assert len(curves) == MOST_SERIES
    curves.take(host_sample("h", gpus=[]), START_S + FORGET_S + 1)
    assert len(curves) < 8


def test_steps_are_bounded_and_keep_both_ends() -> None:
    steps: tuple[Step, ...] = ()
    for number in range(100):
        steps = with_step(steps, Step(float(number), "again"))
    assert len(steps) == MOST_STEPS
    assert steps[0].at_s == 0 and steps[-1].at_s == 99
