"""The watch over runs' progress in the engine: who is judged, what becomes an incident, what a profile turns off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.gang import GANG_NOTE, Member, gang_note
from cockpit.domain.incidents import Finding, Incident
from cockpit.domain.models import (
    GpuSample,
    HostFacts,
    HostName,
    HostSample,
    ProcessSample,
    ProcessTree,
    RunId,
)
from cockpit.domain.progress import ProgressReader
from cockpit.domain.readiness import Readiness
from cockpit.domain.runs import RunView
from cockpit.engine.events import Event, EventBus, IncidentChanged
from cockpit.engine.fleet import FleetStore
from cockpit.engine.follow import RunFollower
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.pulse_watch import PulseWatch
from cockpit.engine.run_book import RunBook
from cockpit.engine.run_watch import RunWatch
from cockpit.engine.sample_watch import SampleWatch
from cockpit.engine.watch_wishes import WatchWishes, Wishes
from cockpit.engine.wiring import EngineParts
from cockpit.errors import StorageError
from tests.builders.clock import FakeClock
from tests.builders.runs import HERE, Bench, make_bench, raise_it, until

BOX, RUN = HostName("box"), RunId("q-1")
BUSY, SPIN, DEAD, LOW = (97, 560.0, 60.0), (100, 150.0, 100.0), (0, 90.0, 1.0), (31, 230.0, 100.0)


@dataclass
class Ears:
    """As much of a follower as is asked."""

    reader: ProgressReader = field(default_factory=ProgressReader)


class Desk:
    """One host with one run on its first card, second by second."""

    def __init__(self, readiness: Readiness | None = None, **spec: Any) -> None:
        self.now_s = 1000.0
        self.clock = FakeClock(lambda: self.now_s)
        self.told: list[IncidentChanged] = []
        bus = EventBus(raise_it)
        bus.subscribe(self._hear)
        self.specs = {BOX: HostSpec(name=BOX, host="box", **spec)}
        self.parts = EngineParts(
            Home(Path("/nonexistent")), self.specs, self.clock, bus, FleetStore(self.specs),
            IncidentDesk(bus, self.clock),
        )  # fmt: skip
        self.book = RunBook(lambda view, before: None)
        self.watch = PulseWatch(self.parts, self.book, lambda run: readiness)
        self.ears = Ears()
        self.listener = RunWatch(BOX, RUN, self.book, lambda found: None)
        self.step = 0
        self.view = RunView(RUN, "sft", "command", BOX, "running", gpus=(0,))

    def _hear(self, event: Event) -> None:
        if isinstance(event, IncidentChanged):
            self.told.append(event)

    def begin(self, view: RunView | None = None) -> None:
        self.view = view or self.view
        self.book.record(self.view)
        self.watch.listens(RUN, self.listener, cast(RunFollower, self.ears))
        self.watch.changed(self.view)

    def play(
        self, seconds: int, card: tuple[int, float, float], *, steps: bool = True, loss: str = "2.0"
    ) -> None:
        for _ in range(seconds):
            self.now_s += 1.0
            if steps:
                self.step += 1
                line = f"step {self.step}/90000 loss {loss}"
                self.listener.log_bytes(0, line.encode(), True)
                self.ears.reader.feed(line, self.clock.wall_s())
            self.watch.sampled(self.sample(card))

    def sample(self, card: tuple[int, float, float]) -> HostSample:
        util, power, cpu = card
        process = ProcessSample(77, run=RUN, cpu_pct=cpu)
        gpu = GpuSample(
            0,
            "G0",
            util_pct=util,
            power_w=power,
            power_limit_w=700.0,
            processes=(process,),
            processes_age_s=0.1,
        )
        tree = ProcessTree(77, RUN, "S", cpu, workers=0)
        facts = HostFacts(platform="vast", cores=16)
        return HostSample(
            BOX, self.clock.wall_s(), facts=facts, gpus=(gpu,), trees=(tree,), cpu_pct=20.0
        )

    def incidents(self) -> list[Incident]:
        return list(self.parts.incidents.all())

    def open(self) -> list[str]:
        return [one.finding.signature for one in self.incidents() if one.state == "open"]


def test_a_hang_is_one_incident_of_its_run_and_recovers_with_the_step() -> None:
    desk = Desk()
    desk.begin()
    desk.play(400, BUSY)
    desk.play(400, SPIN, steps=False)
    [incident] = desk.incidents()
    assert (incident.family, incident.severity, incident.run, incident.gpu) == (
        "hang",
        "fatal",
        RUN,
        0,
    )
    assert (incident.host, incident.profile, incident.finding.facts["step"]) == (BOX, "sft", 400)
    assert {one.source for one in incident.evidence} >= {"log", "nvml", "proc"}
    desk.play(60, BUSY)
    assert [one.state for one in desk.incidents()] == ["recovered"]


def test_a_run_whose_link_was_down_is_not_judged_by_that_time() -> None:
    desk = Desk()
    desk.begin()
    desk.play(300, BUSY)
    desk.book.host_lost(BOX)
    desk.now_s += 3600
    desk.begin(replace(desk.view, log_bytes=1))
    desk.play(30, DEAD, steps=False)
    desk.play(100, BUSY)
    assert desk.told == []


def test_a_log_that_cannot_be_followed_is_no_silent_run() -> None:
    desk = Desk()
    desk.begin()
    desk.play(300, BUSY)
    desk.listener.failed(StorageError("disk_full"))
    desk.play(2000, DEAD, steps=False)
    assert desk.told == []


def test_a_start_that_its_profile_waits_for_belongs_to_others() -> None:
    desk = Desk(readiness=Readiness(log="ready"))
    desk.begin()
    desk.play(60, BUSY)
    desk.play(2500, DEAD, steps=False)
    assert desk.told == []


@pytest.mark.parametrize(
    ("kind", "readiness"),
    [("vllm", Readiness(port=8000, http=("/health",))), ("command", Readiness(port=8000))],
)
def test_a_quiet_server_is_idle_and_not_hung(kind: str, readiness: Readiness) -> None:
    desk = Desk(readiness=readiness)
    desk.begin(replace(desk.view, kind=kind, state="ready"))
    desk.play(100, BUSY, steps=False)
    desk.play(1400, DEAD, steps=False)
    assert desk.open() == ["idle-cards"]
    assert desk.incidents()[0].finding.cause == "idle_server"


def test_a_new_attempt_begins_anew_and_an_end_closes_what_is_open() -> None:
    desk = Desk()
    desk.begin()
    desk.play(400, BUSY)
    desk.play(400, SPIN, steps=False)
    desk.begin(replace(desk.view, attempt=2))
    assert [one.state for one in desk.incidents()] == ["recovered"]
    desk.play(400, BUSY)
    desk.play(400, SPIN, steps=False)
    ended = replace(desk.view, state="exited", code=1)
    desk.book.record(ended)
    desk.watch.changed(ended)
    assert [one.state for one in desk.incidents()] == ["closed"]


def test_what_the_profile_wants_is_obeyed() -> None:
    desk = Desk()
    desk.parts.wishes.put(RUN, Wishes(stall_s=None, idle_s=None))
    desk.begin()
    desk.play(400, BUSY)
    desk.play(2000, DEAD, steps=False)
    assert desk.told == []
    desk.parts.wishes.put(RUN, Wishes(stall_s=20.0))
    desk.watch.wished(RUN)
    desk.play(60, BUSY)
    desk.play(45, DEAD, steps=False)
    assert desk.open() == ["hang-silence"]


def test_a_starved_run_is_told_and_an_xid_of_its_card_explains_a_hang() -> None:
    desk = Desk()
    desk.begin()
    desk.play(300, LOW)
    assert desk.open() == ["starved-input"]
    xid = Finding("hardware", "xid-79", "fatal", cause="gpu_lost")
    desk.parts.incidents.report(xid, host=BOX, gpu=0)
    desk.play(400, SPIN, steps=False)
    assert "hang-silence" not in desk.open(), "the fault of the card is the cause"


def test_a_run_on_several_hosts_hangs_once() -> None:
    desk = Desk()
    member = Member(RUN, 0, (BOX, HostName("other")))
    mate = Finding("hang", "hang-silence", "fatal", cause="hang_spinning")
    desk.parts.incidents.report(mate, host=HostName("other"), run=member.ids[1], profile="sft")
    desk.begin(replace(desk.view, notes=((GANG_NOTE, gang_note(member)),)))
    desk.play(400, BUSY)
    desk.play(400, SPIN, steps=False)
    assert [one.host for one in desk.incidents()] == ["other"]


def test_a_loss_that_is_none_is_told_once_whoever_sees_it_first() -> None:
    desk = Desk()
    desk.begin()
    desk.play(60, BUSY)
    desk.play(10, BUSY, loss="nan")
    assert desk.open() == ["nan-reported"]
    other = Desk()
    other.begin()
    seen = Finding("nan", "nan-loss", "warning", offset=900, line=7, text="loss: nan")
    other.parts.incidents.report(seen, host=BOX, run=RUN, profile="sft")
    other.now_s += 500
    other.play(10, BUSY, loss="nan")
    assert other.open() == ["nan-loss"]


def test_a_paid_host_without_runs_is_told_with_its_price() -> None:
    desk = Desk(price_per_h=2.4, currency="USD")
    desk.play(1300, DEAD, steps=False)
    [incident] = desk.incidents()
    assert (incident.finding.signature, incident.severity, incident.run) == (
        "idle-host",
        "notice",
        None,
    )
    assert incident.finding.facts["price_per_h"] == 2.4
    desk.play(5, BUSY, steps=False)
    assert [one.state for one in desk.incidents()] == ["recovered"]


def test_a_machine_of_one_s_own_may_be_idle() -> None:
    desk = Desk(local=True, price_per_h=2.4)
    desk.play(1300, DEAD, steps=False)
    assert desk.told == []


def test_leak_and_oom_turned_off_silence_samples_of_that_run_alone() -> None:
    clock, bus = FakeClock(lambda: 1000.0), EventBus(raise_it)
    desk, wishes = IncidentDesk(bus, clock), WatchWishes()
    watch = SampleWatch(desk, lambda host: {0: RUN, 1: RunId("q-2")}, wishes)
    wishes.put(RUN, Wishes(oom=False))
    for at_s in range(60):
        gpus = tuple(
            GpuSample(index, f"G{index}", mem_used_mib=24_500, mem_total_mib=24_576)
            for index in (0, 1)
        )
        watch.take(HostSample(BOX, float(at_s), gpus=gpus))
    assert [(one.family, one.gpu) for one in desk.all()] == [("near_full", 1)]


@pytest.mark.parametrize(
    ("finding", "wishes", "wanted"),
    [
        (Finding("leak", "memory-trend-7", "warning", cause="leak_gpu"), Wishes(leak=False), False),
        (
            Finding("near_full", "full-soon", "warning", cause="full_soon"),
            Wishes(leak=False),
            False,
        ),
        (Finding("leak", "memory-trend-7", "warning", cause="leak_gpu"), Wishes(oom=False), True),
        (Finding("gpu_oom", "torch-oom-21", "fatal"), Wishes(oom=False), False),
        (Finding("hang", "hang-silence", "fatal"), Wishes(oom=False, leak=False), True),
    ],
    ids=["leak", "soon", "leak stays", "oom", "hang stays"],
)
def test_what_each_flag_silences(finding: Finding, wishes: Wishes, wanted: bool) -> None:
    assert wishes.wants(finding) is wanted


# -- with a real run -----------------------------------------------------------------------


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = make_bench(tmp_path)
    bench.parts.bus.subscribe(bench.runs.heard)
    bench.connect()
    yield bench
    await bench.runs.close()


async def test_a_real_run_that_stands_is_told_within_its_profile_s_time(bench: Bench) -> None:
    """Steps, then nothing: its card spins at a fraction of the power that its steps took."""
    script = (
        "i=0; while [ ! -e stand ]; do i=$((i+1)); echo step $i/900 loss 1.$i; sleep 0.1; done; "
        "while [ ! -e go ]; do sleep 0.1; done"
    )
    more = f"cwd = '{bench.folder}'\n"
    path = bench.folder / "stands.toml"
    path.write_text(
        f"name = 'stands'\nkind = 'command'\n{more}[command]\nscript = '''{script}'''\n[watch]\nstall = '3s'\n"
    )
    plan = await bench.runs.plan(str(path))
    run = await bench.runs.launch(plan)
    await until(lambda: (bench.runs.book.find(run).progress.step or 0) > 3, "it steps")
    hung: list[Incident] = []

    def sample(card: tuple[int, float, float]) -> HostSample:
        process = ProcessSample(77, run=run, cpu_pct=card[2])
        gpu = GpuSample(
            0, "G0", util_pct=card[0], power_w=card[1], power_limit_w=700.0, processes=(process,)
        )
        return HostSample(HERE, 0.0, gpus=(gpu,))

    async def feed(card: tuple[int, float, float], holds: Callable[[], object]) -> None:
        def fed() -> object:
            bench.runs.sampled(sample(card))
            hung[:] = [one for one in bench.parts.incidents.all() if one.family == "hang"]
            return holds()

        await until(fed, "the samples show it", 40.0)

    watch = bench.runs._life.pulses._living[HERE][run].pulse
    await feed(BUSY, lambda: watch._state.normal_power)
    (bench.folder / "stand").touch()
    await feed(SPIN, lambda: hung)
    assert [(one.run, one.finding.cause) for one in hung] == [(run, "hang_spinning")]
    (bench.folder / "go").touch()
    view: RunView = await bench.ended(bench.runs.book.find(run))
    assert view.code == 0
    await until(lambda: bench.parts.incidents.all()[0].state == "closed", "it is closed")
