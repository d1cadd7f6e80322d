"""A server's memory against its load: what follows the load is no leak, what each request leaves behind is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cockpit.domain.incidents import Finding
from cockpit.domain.load_trend import Load, LoadTrend, correlation
from cockpit.domain.memory_watch import MemoryWatch
from cockpit.domain.models import RunId
from tests.builders.samples import gpu, host_sample, process


def trend(
    memory: Callable[[float], float], load: Callable[[float], Load], minutes: int
) -> LoadTrend:
    made = LoadTrend()
    for second in range(0, 60 * minutes, 5):
        made.feed(float(second), memory(second / 60.0), load(second / 60.0))
    return made


def test_memory_that_rises_with_the_load_follows_it() -> None:
    made = trend(lambda m: 1000 + 20 * m, lambda m: Load(4 + m), 30)
    assert made.follows_load


def test_memory_that_rises_under_a_level_load_does_not() -> None:
    made = trend(lambda m: 1000 + 20 * m, lambda m: Load(8 + (m % 2)), 30)
    assert not made.follows_load


def test_a_load_that_has_been_level_for_an_hour_explains_nothing_any_more() -> None:
    made = trend(lambda m: 1000 + 20 * m, lambda m: Load(4 + min(m, 30)), 120)
    assert not made.follows_load


def test_what_a_thousand_requests_leave_behind() -> None:
    made = trend(lambda m: 1000 + 5 * m, lambda m: Load(8, 50 * m), 30)
    assert made.per_1000_requests_mib == pytest.approx(100.0, rel=0.05)


@pytest.mark.parametrize(
    ("memory", "finished"),
    [
        pytest.param(lambda m: 1000.0, lambda m: 50 * m, id="no-growth"),
        pytest.param(lambda m: 1000 + 5 * m, lambda m: 0.0, id="no-requests"),
        pytest.param(
            lambda m: 1000 + 5 * m, lambda m: 500.0 * (m > 3), id="grows-without-requests"
        ),
    ],
)
def test_what_requests_do_not_explain(
    memory: Callable[[float], float], finished: Callable[[float], float]
) -> None:
    assert trend(memory, lambda m: Load(8, finished(m)), 30).per_1000_requests_mib is None


def test_correlation_of_what_stands_still_is_none() -> None:
    assert correlation([1.0, 1.0], [1.0, 2.0]) == 0.0
    assert correlation([1.0, 2.0], [3.0, 5.0]) == pytest.approx(1.0)


SERVER = RunId("vllm-7b-1")


def told(
    load: Callable[[float], Load], hours: float, slope_mib_per_min: float = 4.0
) -> list[tuple[float, str, Finding]]:
    """A server's card that grows without end, read every 15 s."""
    watch = MemoryWatch()
    found: list[tuple[float, str, Finding]] = []
    for step in range(int(hours * 240)):
        at_s, minutes = 15.0 * step, step / 4.0
        used = round(18_000 + slope_mib_per_min * minutes)
        card = gpu(0, mem_used_mib=used, processes=(process(7, mem_used_mib=used, run=SERVER),))
        sample = host_sample("box", at_s=at_s, gpus=[card])
        for signal in watch.feed(sample, lambda run, m=minutes: load(m) if run == SERVER else None):  # type: ignore[misc]
            if signal.finding.family == "leak":
                found.append((minutes, signal.action, signal.finding))
    return found


def test_a_leaking_server_says_how_much_each_thousand_requests_cost() -> None:
    minutes, action, finding = told(lambda m: Load(8, 200 * m), 2.0)[0]
    assert (action, finding.cause) == ("open", "leak_gpu")
    assert minutes < 75
    assert finding.facts["per_1000_requests_mib"] == pytest.approx(20.0, rel=0.1)


def test_a_server_whose_load_grows_is_not_flagged_until_the_load_is_level() -> None:
    assert told(lambda m: Load(4 + m / 4, 200 * m), 2.0) == []
    rising = told(lambda m: Load(4 + min(m, 60) / 4, 200 * m), 3.0)
    assert rising and rising[0][0] > 60
