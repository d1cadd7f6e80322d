"""A host's clock may be anywhere, and may be set while a run goes on: how long it took stays what it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.engine.clock import SystemClock
from cockpit.engine.host_clocks import HostClocks, steady
from tests.builders.runs import HERE, Bench, make_bench

HOST = HostName("h")
YEARS_S = 50 * 365 * 86400.0


@dataclass
class ThreeClocks(SystemClock):
    """This computer's wall clock and its own, and a host's."""

    wall: float = 1.7e9
    own: float = 100.0
    there: float = 1.7e9

    def wall_s(self) -> float:
        return self.wall

    def now_s(self) -> float:
        return self.own

    def pass_s(self, seconds: float) -> None:
        self.wall, self.own, self.there = (
            one + seconds for one in (self.wall, self.own, self.there)
        )


@pytest.mark.parametrize(
    "set_s", [10_800.0, -10_800.0, YEARS_S], ids=["ahead", "back", "from-1970"]
)
def test_only_a_clock_that_was_set_there_counts(set_s: float) -> None:
    clock = ThreeClocks()
    clocks = HostClocks(clock)
    assert clocks.heard(HOST, clock.there) == 0.0
    clock.pass_s(3600.0)
    assert clocks.heard(HOST, clock.there - 20.0) == 0.0, "an answer that was long on its way"
    clock.there += set_s
    assert clocks.heard(HOST, clock.there) == pytest.approx(set_s, abs=21.0)
    assert clocks.wall_s(HOST) == pytest.approx(clock.there, abs=21.0)


def test_our_own_clock_or_sleep_moves_no_host() -> None:
    clock = ThreeClocks()
    clocks = HostClocks(clock)
    clocks.heard(HOST, clock.there)
    clock.wall += 7200.0
    assert clocks.heard(HOST, clock.there) == 0.0
    clock.wall, clock.there = clock.wall + 900.0, clock.there + 900.0
    assert clocks.heard(HOST, clock.there) == 0.0


def test_a_difference_is_told_when_it_has_moved() -> None:
    assert [steady(ahead, 0.0) for ahead in (4.0, -29.0, 3600.0)] == [0.0, 0.0, 3600.0]
    assert [steady(ahead, 3600.0) for ahead in (3610.0, 3700.0, 3.0)] == [3600.0, 3700.0, 0.0]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    await made.runs.close()


async def test_a_budget_is_of_time_that_passed_and_not_of_a_clock_that_was_set(
    bench: Bench,
) -> None:
    past, wall_s = bench.runs.past, bench.parts.clock.wall_s()

    def tell(now_s: float, **more: float) -> float:
        record = RunRecord(RunId("a-1"), "running", now_s, started_s=wall_s - YEARS_S, **more)  # type: ignore[arg-type]
        view = bench.runs.book.record(record.view(HERE))
        past.told(HERE, record, view)
        began_s = past.first_started_s(view)
        assert began_s is not None
        return past.host_wall_s(HERE) - began_s

    assert tell(wall_s - YEARS_S + 60.0) == pytest.approx(60.0, abs=30.0)
    assert tell(wall_s + 61.0) == pytest.approx(61.0, abs=30.0)
