"""Ranks that are stopped together and judged as one, also when a host is out of reach meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cockpit.config.paths import Home
from cockpit.domain.gang import GANG_NOTE, Member, gang_note, member_id
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import RunView
from cockpit.engine import gang
from cockpit.engine.agent import RunAgent
from cockpit.engine.api import StopReport
from cockpit.engine.clock import SystemClock
from cockpit.engine.events import EventBus, RunChanged
from cockpit.engine.fleet import FleetStore
from cockpit.engine.gang import GangParts, Gangs
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.wiring import EngineParts
from cockpit.errors import HostUnreachable, LaunchFailed
from tests.builders.runs import raise_it

HOSTS = (HostName("h0"), HostName("h1"), HostName("h2"))
GANG = RunId("ddp-1skaaaaaa")
MEMBER = Member(GANG, 0, HOSTS)
IDS = MEMBER.ids


def running(rank: int) -> RunView:
    note = gang_note(Member(GANG, rank, HOSTS))
    return RunView(
        run=member_id(GANG, rank), profile="ddp", kind="torchrun", host=HOSTS[rank], state="running",
        notes=((GANG_NOTE, note),),
    )  # fmt: skip


@dataclass
class Ranks:
    """The ranks as they are known here; hosts in `away` cannot be reached."""

    parts: EngineParts
    views: dict[RunId, RunView] = field(
        default_factory=lambda: {r: running(i) for i, r in enumerate(IDS)}
    )
    away: set[HostName] = field(default_factory=set)
    asked: list[RunId] = field(default_factory=list)
    stopping: int = 0
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.gangs = Gangs(
            GangParts(
                engine=self.parts, book=cast(Any, self.views), transports={}, of_host=cast(Any, None),
                specs=cast(Any, None), start_one=cast(Any, None), stop_one=self.stop,
                looks_after=lambda _run: True, on_step=lambda *_words: None,
            )
        )  # fmt: skip

    async def stop(self, run: RunId) -> StopReport:
        self.asked.append(run)
        if self.views[run].host in self.away:
            raise HostUnreachable(host=self.views[run].host)
        self.stopping += 1
        self.most_at_once = max(self.most_at_once, self.stopping)
        await asyncio.sleep(0)
        self.stopping -= 1
        self.tell(run, state="exited", by="cockpit", signal=15, ended_s=2000.0)
        return StopReport(run=run, signals=("INT",), left=())

    def tell(self, run: RunId, **more: object) -> None:
        before = self.views[run]
        self.views[run] = replace(before, **more)  # type: ignore[arg-type]
        self.gangs.heard(RunChanged(self.views[run], before, 0.0))

    def named(self) -> list[tuple[HostName | None, object]]:
        return [(one.host, one.finding.facts.get("exitcode")) for one in self.parts.incidents.all()]


@pytest.fixture
async def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ranks]:
    monkeypatch.setattr(gang, "TOGETHER_S", 0.01)
    monkeypatch.setattr(gang, "AGAIN_S", 0.01)
    clock, bus = SystemClock(), EventBus(raise_it)
    parts = EngineParts(Home(tmp_path), {}, clock, bus, FleetStore(), IncidentDesk(bus, clock))
    made = Ranks(parts)
    yield made
    await made.gangs.close()


async def judged(ranks: Ranks) -> RunView | None:
    return await asyncio.wait_for(ranks.gangs.judged(MEMBER), 30)


async def test_the_others_are_stopped_at_once(ranks: Ranks) -> None:
    ranks.tell(IDS[1], state="exited", by="job", code=7, ended_s=1000.0)
    first = await judged(ranks)
    assert first is not None and (first.run, first.code) == (IDS[1], 7)
    assert sorted(ranks.asked) == [IDS[0], IDS[2]] and ranks.most_at_once == 2
    assert ranks.named() == [("h1", 7)]


async def test_a_rank_out_of_reach_is_stopped_when_its_host_is_back(ranks: Ranks) -> None:
    ranks.away = {HOSTS[2]}
    ranks.tell(IDS[1], state="exited", by="job", code=7, ended_s=1000.0)
    while ranks.asked.count(IDS[2]) < 3:
        await asyncio.sleep(0)
    assert ranks.asked.count(IDS[0]) == 1, "what was stopped is not asked again"
    ranks.away.clear()
    first = await judged(ranks)
    assert first is not None and first.run == IDS[1]
    assert all(view.ended for view in ranks.views.values())


async def test_a_host_that_comes_back_may_tell_of_an_earlier_failure(ranks: Ranks) -> None:
    ranks.away = {HOSTS[2]}
    ranks.tell(IDS[0], state="exited", by="job", code=1, ended_s=1000.0)
    while IDS[2] not in ranks.asked:
        await asyncio.sleep(0)
    assert ranks.named() == [("h0", 1)]
    ranks.tell(IDS[2], state="exited", by="job", code=9, ended_s=990.0)
    first = await judged(ranks)
    assert first is not None and (first.run, first.code) == (IDS[2], 9)
    assert ("h2", 9) in ranks.named()


async def test_a_slow_reply_does_not_move_a_hosts_clock(ranks: Ranks) -> None:
    wall_s = ranks.parts.clock.wall_s()
    for late_s in (0.0, 30.0, 2.0):  # the reply's own time on its way
        record = cast(RunRecord, SimpleNamespace(now_s=wall_s + 100.0 - late_s))
        ranks.gangs.told(HOSTS[2], record)
    ranks.views[IDS[1]] = replace(
        ranks.views[IDS[1]], state="exited", by="job", code=1, ended_s=1000.0
    )
    ranks.views[IDS[2]] = replace(
        ranks.views[IDS[2]], state="exited", by="job", code=2, ended_s=1090.0
    )
    first = ranks.gangs.culprit(MEMBER)
    assert first is not None and first.run == IDS[2], "1090 there is 990 here"


async def test_no_host_speaks_for_a_run_of_another(ranks: Ranks) -> None:
    """h1 claims a run of h0 for a gang of which h0 knows nothing."""
    ranks.views[IDS[0]] = replace(ranks.views[IDS[0]], notes=())
    ranks.tell(IDS[1], state="exited", by="job", code=7, ended_s=1000.0)
    first = await judged(ranks)
    assert first is not None and first.run == IDS[1]
    await ranks.gangs.stop(MEMBER)
    assert IDS[0] not in ranks.asked and not ranks.views[IDS[0]].ended


class Lost(RunAgent):
    """An agent of a host on which a prepared run's supervisor was killed."""

    async def ask(self, op: str, fields: object, **_how: object) -> dict[str, object]:
        return {"record": {"run": IDS[1], "state": "lost", "now_s": 1.0}}


async def test_a_prepared_rank_that_nobody_watches_any_more_is_not_called(ranks: Ranks) -> None:
    told: list[RunRecord] = []

    async def agent() -> RunAgent:
        return Lost(cast(Any, SimpleNamespace(host=HOSTS[1])))

    host = SimpleNamespace(agent=agent, record=told.append)
    ranks.gangs._parts = replace(ranks.gangs._parts, of_host=lambda _host: cast(Any, host))
    with pytest.raises(LaunchFailed) as caught:
        await ranks.gangs._call(HOSTS[1], IDS[1])
    assert caught.value.code == "gang_not_called" and [one.state for one in told] == ["lost"]
