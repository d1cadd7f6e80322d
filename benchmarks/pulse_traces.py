"""Traces of runs that hang, starve, slow down or idle, and of healthy ones that look just like them.

Each is a list of acts played second by second; noise comes from a seed. A trace names the signature that
must be found, or none, and the cause where only one is right.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from cockpit.domain.incidents import Finding
from cockpit.domain.models import (
    DiskSample,
    GpuSample,
    HostFacts,
    HostName,
    HostSample,
    NetSample,
    ProcessSample,
    ProcessTree,
    RunId,
)
from cockpit.domain.progress import Marks
from cockpit.domain.pulse import RunPulse
from cockpit.domain.pulse_beat import Beat
from cockpit.domain.pulse_levels import LEVELS, Levels
from cockpit.domain.runs import Progress

RUN: Final = RunId("q-1")
LIMIT_W: Final = 700.0


@dataclass(frozen=True, slots=True)
class Act:
    """So many seconds in which everything stays as it is. `step_s` None: no step is done."""

    seconds: float
    util: float = 97.0
    power: float = 560.0
    step_s: float | None = 1.0
    every: int = 1
    """The log speaks of every so-manieth step."""
    log: bool = True
    """Bytes come, with or without a step."""
    main_cpu: float | None = 60.0
    state: str = "S"
    workers: int = 8
    worker_cpu: float = 30.0
    blocked: int = 0
    phase: str = ""
    moves: bool = False
    """Another counter moves: an evaluation's bar."""
    net: float = 0.1
    disk: float = 0.2
    iowait: float = 0.5
    throttled: float | None = None
    dips: float = 0.0
    """In so much of each step, use falls to nothing."""
    data_s: float | None = None
    loss: float = 2.0
    tokens_s: float | None = None
    throttle: tuple[str, ...] = ()
    stranger: bool = False
    unseen: bool = False
    """The link is down."""
    running: int | None = None
    starting: bool = False
    util_of: tuple[float, ...] = ()
    """Of each card, where they differ."""


@dataclass(frozen=True, slots=True)
class Trace:
    name: str
    acts: tuple[Act, ...]
    wanted: str = ""
    cause: str = ""
    cards: int = 2
    stepped: bool = True
    serving: bool = False
    closes: bool = False
    """It must be over at the end."""


@dataclass(slots=True)
class Heard:
    """What the watch said of a trace."""

    opened: list[tuple[float, str, str, str]] = field(default_factory=list)
    """(second, signature, cause, severity) of everything new or worse."""
    findings: list[Finding] = field(default_factory=list)
    still_open: tuple[Finding, ...] = ()


def play(trace: Trace, seed: int = 0, levels: Levels = LEVELS, every: int = 1) -> Heard:
    """Feed the trace to a watch of its own."""
    pulse, heard, known = RunPulse(levels), Heard(), set[str]()
    for beat in beats(trace, seed, every):
        for signal in pulse.feed(beat):
            name = signal.finding.signature
            heard.findings.append(signal.finding)
            if signal.action == "open" and name not in known:
                known.add(name)
                heard.opened.append(
                    (beat.at_s, name, signal.finding.cause, signal.finding.severity)
                )
            elif signal.action != "open":
                known.discard(name)
    heard.still_open = pulse.open_findings
    return heard


def beats(trace: Trace, seed: int = 0, every: int = 1) -> Iterator[Beat]:
    """A look every so many seconds."""
    player = _Player(trace, random.Random(f"{trace.name}/{seed}"))
    for act in trace.acts:
        for second in range(round(act.seconds)):
            player.tick(act)
            if not act.unseen and second % every == 0:
                yield player.beat(act)


class _Player:
    """Where a trace is: its clock, its counters."""

    def __init__(self, trace: Trace, noise: random.Random) -> None:
        self.trace, self.noise = trace, noise
        self.at_s = 1000.0
        self.done = 0.0
        self.step = 0
        self.stepped: tuple[int, float] | None = None
        self.bytes = 0
        self.marks = Marks()

    def tick(self, act: Act) -> None:
        self.at_s += 1.0
        if act.step_s is not None:
            self.done += 1.0 / (act.step_s * self.noise.uniform(0.96, 1.04))
            if int(self.done) >= self.step + act.every:
                self.step = int(self.done) // act.every * act.every
                late_s = (self.done - self.step) * act.step_s
                self.stepped = (self.step, self.at_s - min(1.0, late_s))
                self.bytes += 90
        if act.log and act.step_s is None:
            self.bytes += 40
        moves = self.marks.moves + act.moves
        bad = self.marks.bad_losses + 1 if act.loss != act.loss else 0
        stuck = self.marks.stuck_reports + 1 if act.running and not act.tokens_s else 0
        self.marks = Marks(moves, act.phase, bad, stuck)

    def beat(self, act: Act) -> Beat:
        progress = Progress(
            step=self.step if self.trace.stepped else None,
            loss=act.loss,
            step_s=act.step_s,
            data_s=act.data_s,
            tokens_s=act.tokens_s,
            requests_running=act.running,
        )
        return Beat(
            self.at_s,
            self._sample(act),
            RUN,
            gpus=tuple(range(self.trace.cards)),
            log_bytes=self.bytes,
            progress=progress,
            marks=self.marks,
            stepped=self.stepped if self.trace.stepped else None,
            is_starting=act.starting,
            is_serving=self.trace.serving,
        )

    def _sample(self, act: Act) -> HostSample:
        trees = tuple(self._tree(act, 100 + card) for card in range(self.trace.cards))
        return HostSample(
            HostName("box"),
            self.at_s,
            facts=HostFacts(cores=64),
            cpu_pct=1.0 if act.main_cpu is not None and act.main_cpu < 5 else 30.0,
            load1=8.0,
            iowait_pct=act.iowait,
            cpu_throttled_pct=act.throttled,
            disks=(DiskSample("/", read_mib_s=act.disk, write_mib_s=0.0),),
            net=NetSample(act.net * self.noise.uniform(0.95, 1.05), 0.05),
            gpus=tuple(self._card(act, card) for card in range(self.trace.cards)),
            trees=trees if act.main_cpu is not None else (),
        )

    def _card(self, act: Act, index: int) -> GpuSample:
        util, power = act.util, act.power
        if act.util_of:
            util = act.util_of[index]
            power = act.power if util > 5 else 90.0
        if act.dips and act.step_s and act.step_s < 2:
            util = util * (1 - act.dips)  # the driver's own average
        elif act.dips and act.step_s and (self.done % 1.0) < act.dips:
            util, power = 3.0, 150.0
        shown = (
            min(100, max(0, round(util + self.noise.uniform(-1.5, 1.5))))
            if util > 3
            else round(util)
        )
        own = ProcessSample(100 + index, run=RUN, cpu_pct=act.main_cpu)
        other = (ProcessSample(9000, mem_used_mib=4000),) if act.stranger else ()
        return GpuSample(
            index,
            f"GPU-{index}",
            util_pct=shown,
            power_w=power * self.noise.uniform(0.99, 1.01),
            power_limit_w=LIMIT_W,
            sm_clock_mhz=1980,
            throttle=act.throttle,
            processes=(own, *other),
            processes_age_s=0.5,
        )

    def _tree(self, act: Act, pid: int) -> ProcessTree:
        busy = act.workers if act.worker_cpu >= 85 else 0
        return ProcessTree(
            pid,
            RUN,
            act.state,
            act.main_cpu,
            act.workers,
            act.workers * act.worker_cpu,
            busy,
            act.blocked,
        )


WORK: Final = Act(500)
SPIN: Final = Act(600, util=100, power=150, step_s=None, log=False, main_cpu=100.0, worker_cpu=0.0)
DEAD: Final = Act(1150, util=0, power=90, step_s=None, log=False, main_cpu=1.0, worker_cpu=0.0)
LOW: Final = Act(600, util=31, power=230, step_s=3.0)
EVAL: Final = Act(300, util=95, power=480, step_s=None, moves=True, phase="evaluate")
SAVE: Final = Act(
    120, util=0, power=95, step_s=None, log=False, main_cpu=95.0, phase="save", disk=300
)
COMPILE: Final = Act(
    1100, util=2, power=100, step_s=None, log=False, main_cpu=400.0, phase="compile"
)
STARTING: Final = Act(60, util=0, power=90, step_s=None, main_cpu=90.0)
SERVER: Final = Act(600, util=70, power=400, step_s=None, running=4, tokens_s=900.0)
UNASKED: Final = replace(
    SERVER, seconds=900, util=0, power=90, tokens_s=0.0, running=0, log=False, main_cpu=2.0
)
HALF: Final = replace(WORK, util_of=(97, 97, 0, 0))
FEW: Final = replace(LOW, workers=1, worker_cpu=50.0, main_cpu=20.0)
CROWDED: Final = replace(LOW, worker_cpu=99.0)
LONGER: Final = Act(1500, step_s=2.1, power=500, tokens_s=8900.0)

SICK: Final[tuple[Trace, ...]] = (
    Trace("collective", (STARTING, WORK, SPIN), "hang-silence", "hang_spinning"),
    Trace("collective with heartbeats", (WORK, replace(SPIN, log=True)), "hang-silence", "hang_spinning"),
    Trace("one rank dead", (WORK, replace(SPIN, util_of=(0, 100, 100, 100))), "hang-silence", "hang_spinning", cards=4),
    Trace("deadlock", (WORK, DEAD), "hang-silence", "hang_blocked"),
    Trace("deadlock with heartbeats", (WORK, replace(DEAD, log=True)), "hang-silence", "hang_blocked"),
    Trace("no counter", (WORK, DEAD), "hang-silence", "hang_blocked", stepped=False),
    Trace("dead disk", (WORK, replace(DEAD, state="D", iowait=25)), "hang-silence", "hang_disk"),
    Trace("hangs and goes on", (WORK, replace(SPIN, seconds=400), WORK), "hang-silence", "hang_spinning", closes=True),
    Trace("found hung", (replace(DEAD, seconds=5, step_s=1.0), DEAD), "hang-silence", "hang_blocked"),
    Trace("server without tokens", (SERVER, replace(SERVER, seconds=60, tokens_s=0.0)), "server-stuck", serving=True),
    Trace("few cores", (replace(LOW, worker_cpu=99.0),), "starved-input", "starved_cpu"),
    Trace("quota", (replace(LOW, throttled=60.0, worker_cpu=99.0),), "starved-input", "starved_quota"),
    Trace("slow disk", (replace(LOW, blocked=7, worker_cpu=6.0, iowait=28),), "starved-input", "starved_disk"),
    Trace("python", (replace(LOW, main_cpu=100.0, workers=0),), "starved-input", "starved_python"),
    Trace("network", (replace(LOW, net=110.0, worker_cpu=4.0),), "starved-input", "starved_network"),
    Trace("too few workers", (FEW,), "starved-input", "starved_workers"),
    Trace("waits by its log", (replace(LOW, util=70, data_s=1.4),), "starved-input", "starved_workers"),
    Trace("starved later", (WORK, replace(LOW, worker_cpu=99.0)), "starved-input", "starved_cpu"),
    Trace("starved and mended", (WORK, CROWDED, WORK), "starved-input", "starved_cpu", closes=True),
    Trace("starved, seldom logged", (replace(CROWDED, every=25, seconds=900),), "starved-input", "starved_cpu"),
    Trace("starved, with an inner bar", (replace(CROWDED, moves=True),), "starved-input", "starved_cpu"),
    Trace("starved, and says that it loads", (replace(CROWDED, phase="load"),), "starved-input", "starved_cpu"),
    Trace("a little slower", (WORK, Act(700, step_s=1.32, power=500)), "slow-steps"),
    Trace("much slower", (WORK, Act(700, step_s=1.9, power=430)), "slow-steps", "slow_waiting"),
    Trace("hot", (WORK, Act(700, step_s=1.4, power=420, throttle=("thermal_hw",))), "slow-steps", "slow_throttled"),
    Trace("a neighbour", (WORK, Act(700, step_s=1.6, stranger=True)), "slow-steps", "slow_neighbour"),
    Trace("slow and mended", (WORK, Act(900, step_s=1.7, power=400), WORK), "slow-steps", closes=True),
    Trace("unoverlapped sync", (Act(1500, step_s=12.0, dips=0.35),), "util-swings", "swings_ranks"),
    Trace("left on", (WORK, replace(DEAD, seconds=1500, main_cpu=60.0)), "idle-cards", "idle_cpu"),
    Trace("a server nobody asks", (SERVER, replace(UNASKED, seconds=1500)), "idle-cards", "idle_server", serving=True),
    Trace("never began", (replace(DEAD, seconds=1400, main_cpu=1.0),), "idle-cards", "idle_run", stepped=False),
    Trace("two of four cards", (replace(HALF, seconds=1500),), "idle-cards", "idle_some", cards=4),
    Trace("diverged", (WORK, Act(60, loss=float("nan"))), "nan-reported"),
)  # fmt: skip

LOOK_ALIKES: Final[tuple[Trace, ...]] = (
    Trace("healthy", (STARTING, replace(WORK, seconds=3000))),
    Trace("long compilation", (STARTING, COMPILE, WORK)),
    Trace("compilation again", (WORK, COMPILE, WORK)),
    Trace("seldom logged", (replace(WORK, every=200, seconds=3000),)),
    Trace("seldom logged, little power", (replace(WORK, every=300, seconds=3000, util=99, power=300),)),
    Trace("wordless save", (WORK, replace(SAVE, seconds=150, phase="", disk=30), WORK)),
    Trace("checkpoints", (WORK, SAVE, WORK, SAVE, WORK)),
    Trace("slow checkpoint", (WORK, replace(SAVE, seconds=800, main_cpu=3.0, state="D"), WORK)),
    Trace("one rank saves", (WORK, replace(SPIN, seconds=500, phase="save", disk=200), WORK)),
    Trace("evaluations", (WORK, EVAL, WORK, EVAL, WORK)),
    Trace("evaluation that generates", (WORK, replace(EVAL, seconds=1200, power=260, util=98), WORK)),
    Trace("quiet evaluation", (WORK, replace(EVAL, seconds=1200, moves=False, log=False, phase=""), WORK)),
    Trace("quiet and busy", (replace(WORK, seconds=2000, step_s=None, log=False),), stepped=False),
    Trace("long steps", (replace(WORK, seconds=4000, step_s=600.0),)),
    Trace("download first", (replace(DEAD, seconds=2000, net=40.0), WORK)),
    Trace("upload between", (WORK, replace(DEAD, seconds=1000, net=30.0), WORK)),
    Trace("tokenising first", (replace(DEAD, seconds=1100, main_cpu=900.0), WORK)),
    Trace("warm-up", (Act(100, step_s=9.0, util=40, power=250), WORK)),
    Trace("accumulation", (replace(WORK, seconds=2000, step_s=30.0),)),
    Trace("epoch starts", (WORK, replace(LOW, seconds=90), WORK, replace(LOW, seconds=90), WORK)),
    Trace("curriculum", (WORK, Act(1500, step_s=2.1))),
    Trace("curriculum by tokens", (replace(WORK, tokens_s=9000.0), LONGER)),
    Trace("link down", (WORK, replace(WORK, seconds=2400, unseen=True), WORK)),
    Trace("down while it stands", (WORK, replace(SPIN, seconds=60), replace(SPIN, unseen=True), WORK)),
    Trace("one bad batch", (WORK, Act(2, loss=float("nan")), WORK)),
    Trace("idle server", (SERVER, UNASKED), serving=True),
    Trace("silent script", (replace(DEAD, seconds=1100),), stepped=False),
    Trace("stuck start", (replace(DEAD, seconds=2000, starting=True),)),
    Trace("two of four cards for a while", (replace(HALF, seconds=900), WORK), cards=4),
    Trace("short swings", (replace(WORK, seconds=1800, step_s=1.0, dips=0.2),)),
    Trace("end of a run", (WORK, replace(SAVE, seconds=300, phase="save"), replace(DEAD, seconds=200))),
)  # fmt: skip
