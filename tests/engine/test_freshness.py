"""When silence means something."""

from __future__ import annotations

import pytest

from cockpit.engine.freshness import FIRST_SAMPLE_S, Freshness


def test_three_ticks_of_silence_are_stale_and_eight_seconds_a_hang() -> None:
    fresh = Freshness(0.0, 1.0)
    fresh.sampled(0.0, 1.0)
    assert [fresh.verdict(at_s) for at_s in (2.99, 3.0, 7.99, 8.0)] == [
        "fresh",
        "stale",
        "stale",
        "silent",
    ]
    assert fresh.next_deadline_s(0.0) == 3.0
    assert fresh.next_deadline_s(3.0) == 8.0


@pytest.mark.parametrize(
    ("interval_s", "stale_s", "silent_s"),
    [(0.2, 1.5, 8.0), (10.0, 30.0, 50.0), (60.0, 180.0, 300.0)],
)
def test_limits_follow_the_interval(interval_s: float, stale_s: float, silent_s: float) -> None:
    fresh = Freshness(0.0, interval_s)
    fresh.sampled(0.0, interval_s)
    assert (fresh.stale_after_s, fresh.silent_after_s) == (stale_s, silent_s)


def test_a_restart_forgives_silence_and_not_age() -> None:
    fresh = Freshness(0.0, 1.0)
    fresh.sampled(0.0, 1.0)
    fresh.restarted(9.0)
    assert fresh.verdict(9.0) == "stale"
    assert fresh.verdict(9.0 + FIRST_SAMPLE_S) == "silent"


def test_one_long_gap_is_forgotten_again() -> None:
    fresh = Freshness(0.0, 1.0)
    now_s = 0.0
    for gap_s in (1.0, 6.0, *[1.0] * 60):
        now_s += gap_s
        fresh.sampled(now_s, 1.0)
        if gap_s == 6.0:
            assert fresh.stale_after_s == 10.0
    assert fresh.stale_after_s == 3.0
