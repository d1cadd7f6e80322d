"""An engine without hosts: real stores, a clock that stands still, and a note of what was asked of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import tomli

from cockpit.config.hosts import HostSpec
from cockpit.config.pasted import parse_pasted
from cockpit.domain.incidents import Evidence, Finding, Incident, Remedy
from cockpit.domain.models import HostName, HostSample, LinkState, RunId
from cockpit.domain.mutes import Mute, mute_of
from cockpit.domain.past_runs import PastRun
from cockpit.domain.runs import Progress, RunView
from cockpit.engine.api import (
    Around,
    EngineApi,
    Forwarded,
    LaunchPlan,
    LinePlace,
    LogHit,
    LogLine,
    LogPart,
    ProfileEntry,
    StopReport,
)
from cockpit.engine.events import Event, IncidentChanged, LinkChanged, OnEvent, RunChanged
from cockpit.engine.fleet import FleetStore, HostState
from cockpit.engine.incidents_api import Mend
from cockpit.errors import CockpitError, Fact, RunUnknown
from tests.builders.samples import AT_S

WALL_S = AT_S
"""The wall clock of every fake: 2023-11-14 22:13:20 UTC."""
NOW_S = 1_000.0

_RANK = {"fatal": 0, "warning": 1, "notice": 2}
_STATE_RANK = {"open": 0, "applied": 0, "seen": 1}


class FakeRuns:
    """A RunStore that tests write to."""

    def __init__(self) -> None:
        self.version = 0
        self._views: dict[RunId, RunView] = {}

    def all(self) -> Sequence[RunView]:
        return sorted(self._views.values(), key=lambda view: -(view.started_s or 0))

    def get(self, run: RunId) -> RunView | None:
        return self._views.get(run)

    def put(self, view: RunView) -> RunView | None:
        before = self._views.get(view.run)
        self._views[view.run] = view
        self.version += 1
        return before


class FakeIncidents:
    """An IncidentStore that tests write to."""

    def __init__(self) -> None:
        self.version = 0
        self._incidents: dict[str, Incident] = {}

    def all(self) -> Sequence[Incident]:
        return sorted(
            self._incidents.values(),
            key=lambda one: (
                _STATE_RANK.get(one.state, 2), _RANK[one.severity], -one.opened_s, one.key
            ),
        )  # fmt: skip

    def get(self, key: str) -> Incident | None:
        return self._incidents.get(key)

    def put(self, incident: Incident) -> Incident | None:
        before = self._incidents.get(incident.key)
        self._incidents[incident.key] = incident
        self.version += 1
        return before

    def set_state(
        self, key: str, state: Literal["open", "seen", "applied", "closed"], why: str = ""
    ) -> None:
        self.put(replace(self._incidents[key], state=state, state_why=why))


class FakeLog:
    """A RunLog over lines that a test gives, one string each."""

    def __init__(self, lines: Sequence[str | LogLine] = (), *, ended: bool = False) -> None:
        self.version = 0
        self.open_text = ""
        self.ended = ended
        self.closed = False
        self.total_bytes = 0
        self.dropped = 0
        self._lines: list[LogLine] = []
        for line in lines:
            self.append(line)

    @property
    def first_number(self) -> int:
        return self.dropped + 1

    @property
    def total_lines(self) -> int:
        return self.dropped + len(self._lines)

    def append(self, line: str | LogLine) -> None:
        text = line if isinstance(line, str) else line.text
        if isinstance(line, str):
            line = LogLine(number=self.total_lines + 1, offset=self.total_bytes, text=line)
        self._lines.append(line)
        self.total_bytes += len(text.encode()) + 1
        self.version += 1

    def drop_oldest(self, count: int) -> None:
        del self._lines[:count]
        self.dropped += count
        self.version += 1

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, position: int) -> LogLine:
        return self._lines[position]

    def close(self) -> None:
        self.closed = True


class FakeEngine:
    """Implements EngineApi. `calls` holds (method, arguments) of everything that was asked."""

    def __init__(self) -> None:
        self.fleet = FleetStore()
        self.runs = FakeRuns()
        self.incidents = FakeIncidents()
        self.hosts: dict[HostName, HostSpec] = {}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.logs: dict[RunId, FakeLog] = {}
        self.profile_entries: list[ProfileEntry] = []
        self.plans: dict[str, LaunchPlan | CockpitError] = {}
        self.stop_reports: dict[RunId, StopReport | CockpitError] = {}
        self.failures: dict[str, CockpitError] = {}
        """By method: what it raises when it is called next and after."""
        self.overrides: dict[str, Sequence[str]] = {}
        self.mends: dict[str, Mend | CockpitError] = {}
        self.fetches: set[RunId] = set()
        self.whole_log = ""
        self.lines_around = 400
        """How many lines before and behind a place in it are read at once."""
        self.search_waits: asyncio.Event | None = None
        """A search answers once it is set."""
        self.past_runs: dict[RunId, PastRun] = {}
        self.remembered: dict[RunId, Sequence[Incident]] = {}
        self.earlier: Sequence[Incident] = ()
        self.contexts: dict[int, Sequence[LogLine]] = {}
        """By offset: the lines around it."""
        self.mutes: tuple[Mute, ...] = ()
        self.keeps_mutes = True
        self.secret = ""
        self.arounds: dict[RunId, Around] = {}
        self.forwards: dict[HostName, Sequence[Forwarded]] = {}
        self.clock_s = NOW_S
        self._listeners: list[OnEvent] = []

    # -- what tests do ---------------------------------------------------------------------------

    def with_host(
        self,
        sample: HostSample | str,
        link: LinkState | None = None,
        code: str | None = None,
        *,
        price: float | None = None,
        currency: str = "USD",
        age_s: float = 0.2,
        spec: HostSpec | None = None,
        **why: Fact,
    ) -> FakeEngine:
        """Add a host with its newest sample (or only its name); live unless told otherwise."""
        name = HostName(sample) if isinstance(sample, str) else sample.host
        self.hosts[name] = spec or HostSpec(
            name=name,
            host="203.0.113.5",
            port=41234,
            user="root",
            price_per_h=price,
            currency=currency,
        )
        self.fleet.add(name)
        if not isinstance(sample, str):
            self.fleet.record(sample, self.clock_s - age_s)
            link = link or ("degraded" if sample.gpu_error_code else "live")
            code = code or sample.gpu_error_code
        self.fleet.set_link(name, link or "connecting", code, **why)
        self.fleet.update(
            name,
            address="203.0.113.5:41234",
            latency_s=0.041,
            key_type="ED25519",
            fingerprint="SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8",
            noise=b"Welcome to your instance!\n" if name == "vast-a" else b"",
        )
        return self

    def state(self, host: str) -> HostState:
        return self.fleet.hosts[HostName(host)]

    def with_history(
        self, host: str, utils: Sequence[int | None], mems: Sequence[int | None]
    ) -> FakeEngine:
        """Fill every card's history, newest last, one point a second up to the newest sample."""
        state = self.state(host)
        assert state.latest is not None
        for number, key in enumerate(list(state.history)):
            history = state.history[key]
            for column in (history.at_s, history.util_pct, history.mem_used_mib):
                column.clear()
            for back, (util, mem) in enumerate(zip(utils, mems, strict=True)):
                shifted = None if util is None else max(0, min(100, util - 2 * number))
                history.at_s.append(state.latest.at_s - len(utils) + 1 + back)
                history.util_pct.append(shifted)
                history.mem_used_mib.append(mem)
        return self

    def publish(self, event: Event) -> None:
        for listener in list(self._listeners):
            listener(event)

    def put_run(self, view: RunView) -> RunView:
        """Store a run and tell everyone who listens."""
        before = self.runs.put(view)
        self.publish(RunChanged(view, before, self.wall_s()))
        return view

    def put_incident(self, incident: Incident) -> Incident:
        """Store an incident and tell everyone who listens."""
        before = self.incidents.put(incident)
        self.publish(IncidentChanged(incident, before, self.wall_s()))
        return incident

    def set_link(self, host: str, link: LinkState, code: str | None = None, **why: Fact) -> None:
        before = self.fleet.set_link(HostName(host), link, code, **why)
        self.publish(LinkChanged(HostName(host), before, link, code, self.wall_s()))

    def asked(self, method: str) -> list[tuple[Any, ...]]:
        """The arguments of every call of `method`."""
        return [arguments for name, arguments in self.calls if name == method]

    def _note(self, method: str, *arguments: Any) -> None:
        self.calls.append((method, arguments))
        if method in self.failures:
            raise self.failures[method]

    # -- EngineApi -------------------------------------------------------------------------------

    def now_s(self) -> float:
        return self.clock_s

    def wall_s(self) -> float:
        return WALL_S + self.clock_s - NOW_S

    def subscribe(self, listener: OnEvent) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def start(self) -> None:
        self._note("start")

    async def close(self) -> None:
        self._note("close")

    def focus(self, host: HostName | None) -> None:
        self._note("focus", host)

    def set_interval(self, seconds: float) -> None:
        self._note("set_interval", seconds)

    def probe_now(self, hosts: Sequence[HostName] = ()) -> None:
        self._note("probe_now", tuple(hosts))

    def connect(self, host: HostName) -> None:
        self._note("connect", host)

    def disconnect(self, host: HostName) -> None:
        self._note("disconnect", host)

    async def add_host(self, name: str, pasted: str, *, replace: bool = False) -> HostSpec:
        self._note("add_host", name, pasted, replace)
        read = parse_pasted(pasted)
        spec = HostSpec(HostName(name), host=read.host, port=read.port, user=read.user)
        self.hosts[spec.name] = spec
        self.fleet.add(spec.name)
        return spec

    async def remove_host(self, host: HostName) -> None:
        self._note("remove_host", host)
        self.hosts.pop(host, None)
        self.fleet.remove(host)

    async def reload_hosts(self) -> None:
        self._note("reload_hosts")

    async def trust(self, host: HostName, fingerprint: str) -> None:
        self._note("trust", host, fingerprint)

    def shell_argv(self, host: HostName) -> list[str]:
        self._note("shell_argv", host)
        return ["true"]

    def profiles(self) -> Sequence[ProfileEntry]:
        return self.profile_entries

    async def plan(
        self,
        profile: str,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        chosen = None if gpus is None else tuple(gpus)
        self._note("plan", profile, tuple(hosts), chosen, tuple(overrides))
        plan = self.plans[profile]
        if isinstance(plan, CockpitError):
            raise plan
        return plan

    async def plan_again(
        self,
        run: RunId,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        chosen = None if gpus is None else tuple(gpus)
        self._note("plan_again", run, tuple(hosts), chosen, tuple(overrides))
        plan = self.plans[run]
        if isinstance(plan, CockpitError):
            raise plan
        return plan

    def past(self, run: RunId) -> PastRun | None:
        return self.past_runs.get(run)

    async def past_incidents(self, run: RunId) -> Sequence[Incident]:
        return self.remembered.get(run, ())

    async def earlier_incidents(self, limit: int = 300) -> Sequence[Incident]:
        self._note("earlier_incidents", limit)
        return self.earlier[:limit]

    async def log_context(
        self, incident: Incident, offset: int, before: int = 3, after: int = 2
    ) -> Sequence[LogLine]:
        self._note("log_context", incident.key, offset)
        return self.contexts.get(offset, ())

    async def masked_text(self, incident: Incident, text: str) -> str:
        return text.replace(self.secret, "*" * len(self.secret)) if self.secret else text

    async def mute(self, mute: Mute) -> bool:
        self._note("mute", mute)
        self._set_mutes((mute, *(one for one in self.mutes if one.id != mute.id)))
        return self.keeps_mutes

    async def unmute(self, mute_id: str) -> bool:
        self._note("unmute", mute_id)
        self._set_mutes(tuple(one for one in self.mutes if one.id != mute_id))
        return self.keeps_mutes

    async def refresh_mutes(self) -> None:
        self._note("refresh_mutes")

    def _set_mutes(self, mutes: tuple[Mute, ...]) -> None:
        self.mutes = mutes
        for one in self.incidents.all():
            rule = mute_of(one, mutes, self.wall_s())
            if rule != one.mute:
                self.put_incident(replace(one, mute=rule))

    async def set_remark(self, run: RunId, remark: str) -> None:
        self._note("set_remark", run, remark)
        self.put_run(replace(self.runs.get(run) or run_view(run), remark=remark))

    def around(self, run: RunId) -> Around:
        return self.arounds.get(run, Around())

    def host_forwards(self, host: HostName) -> Sequence[Forwarded]:
        return self.forwards.get(host, ())

    async def launch(self, plan: LaunchPlan) -> RunId:
        self._note("launch", plan)
        return RunId("r-new")

    async def stop(self, run: RunId) -> StopReport:
        self._note("stop", run)
        report = self.stop_reports.get(run, StopReport(run, ("INT",)))
        if isinstance(report, CockpitError):
            raise report
        return report

    async def signal_process(self, host: HostName, pid: int, started_ticks: int, name: str) -> None:
        self._note("signal_process", host, pid, started_ticks, name)

    def log(self, run: RunId) -> FakeLog:
        self._note("log", run)
        if run not in self.logs:
            raise RunUnknown(run=run)
        return self.logs[run]

    def fetch(self, run: RunId) -> bool:
        self._note("fetch", run)
        return run in self.fetches

    async def search_log(
        self,
        run: RunId,
        text: str,
        offset: int,
        *,
        backward: bool,
        on_progress: Callable[[float], None],
        is_regex: bool = False,
    ) -> LogHit | None:
        """In `whole_log`, as a host would; regular expressions are taken as they stand."""
        self._note("search_log", run, text, offset, backward)
        if self.search_waits is not None:
            await self.search_waits.wait()
        data = self.whole_log.encode()
        places = [
            one.start()
            for one in re.finditer(text if is_regex else re.escape(text), self.whole_log)
        ]
        places = [len(self.whole_log[:place].encode()) for place in places]
        near = [place for place in places if (place < offset if backward else place >= offset)]
        return LogHit(near[-1 if backward else 0], len(data)) if near else None

    async def line_place(
        self, run: RunId, number: int, *, on_progress: Callable[[float], None]
    ) -> LinePlace:
        self._note("line_place", run, number)
        lines = self.whole_log.encode().splitlines(keepends=True)
        at = len(b"".join(lines[: number - 1]))
        size = len(self.whole_log.encode())
        return LinePlace(at, size, missing=max(0, number - len(lines)))

    async def log_around(self, run: RunId, offset: int) -> LogPart:
        lines = self._whole_lines()
        before = max(1, sum(line.offset <= offset for line in lines))
        return self._part_of(lines, before - self.lines_around, before + self.lines_around)

    async def log_page(self, run: RunId, offset: int, *, older: bool) -> LogPart:
        self._note("log_page", run, offset, older)
        lines = self._whole_lines()
        place = sum(line.offset < offset for line in lines)
        if older:
            return self._part_of(lines, place - self.lines_around, place)
        return self._part_of(lines, place, place + self.lines_around)

    def _whole_lines(self) -> list[LogLine]:
        lines, at = [], 0
        for number, text in enumerate(self.whole_log.splitlines(), 1):
            lines.append(LogLine(number, at, text))
            at += len(text.encode()) + 1
        return lines

    def _part_of(self, lines: list[LogLine], first: int, last: int) -> LogPart:
        size = len(self.whole_log.encode())
        taken, rest = lines[max(0, first) : last], lines[last:]
        if not taken:
            return LogPart((), size, start=size, end=size)
        end = rest[0].offset if rest else size
        return LogPart(tuple(taken), size, start=taken[0].offset, end=end)

    async def save_log(self, run: RunId, target: Path) -> int:
        self._note("save_log", run, target)
        return self.logs[run].total_bytes

    def relaunch_overrides(self, incident: Incident) -> Sequence[str]:
        return self.overrides.get(incident.key, ())

    async def mend(self, incident: Incident) -> Mend:
        """What a test gave; else the first change that the incident has."""
        given = self.mends.get(incident.key)
        if isinstance(given, CockpitError):
            raise given
        if given is not None:
            return given
        remedy = next((one for one in incident.finding.remedies if one.patch), None)
        if remedy is None:
            return Mend(None, note="nothing")
        past = None if incident.run is None else self.past_runs.get(incident.run)
        again = incident.run if past is not None and past.has_origin else None
        hosts = () if incident.host is None else (incident.host,)
        overrides = tuple(self.overrides.get(incident.key, ()))
        return Mend(remedy, overrides, self._profile(incident.profile), hosts, again=again)

    def _profile(self, name: str | None) -> dict[str, object]:
        entry = next((one for one in self.profile_entries if one.name == name), None)
        if entry is None or not entry.path.exists():
            return {}
        return tomli.loads(entry.path.read_text("utf-8"))


def _fits(engine: FakeEngine) -> EngineApi:
    """Here the type checker compares the fake with the protocol."""
    return engine


def run_view(run: str = "r-7f3a", **changes: Any) -> RunView:
    """A fine-tune under way on vast-a."""
    view = RunView(
        run=RunId(run),
        profile="qwen-lora",
        kind="accelerate",
        host=HostName("vast-a"),
        state="running",
        gpus=(0,),
        started_s=WALL_S - 2_472,
        log_bytes=1_204_331,
        progress=Progress(step=812, total_steps=2000, loss=1.8342, step_s=2.97, eta_s=3_580),
        command=("python", "train.py", "--lr", "1e-4"),
        tags=("sft",),
    )
    return replace(view, **changes)


def oom_incident(key: str = "r-7f3a:gpu_oom", **changes: Any) -> Incident:
    """A card that did not hold the activations, with one remedy that is a profile change."""
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has …"
    finding = Finding(
        family="gpu_oom",
        signature="torch_oom",
        severity="fatal",
        facts={
            "tried_mib": 1792,
            "free_mib": 809,
            "total_mib": 24166,
            "in_use_mib": 23347,
            "gpu_index": 0,
        },
        line=12_391,
        offset=1_190_112,
        text=text,
        remedies=(
            Remedy("batch_smaller", {"from": 8, "to": 4}, {"accelerate.args": ["--batch", "4"]}),
            Remedy("gradient_checkpointing"),
        ),
    )
    incident = Incident(
        key=key,
        finding=finding,
        opened_s=WALL_S - 33,
        last_s=WALL_S - 33,
        host=HostName("vast-a"),
        gpu=0,
        run=RunId("r-7f3a"),
        profile="qwen-lora",
        evidence=(Evidence(WALL_S - 33, "log", text, offset=1_190_112, line=12_391),),
    )
    return replace(incident, **changes)


def leak_incident(key: str = "r-11c0:leak", **changes: Any) -> Incident:
    finding = Finding(
        family="leak",
        signature="memory_trend",
        severity="warning",
        facts={"slope_mib_per_h": 412, "eta_s": 18_000, "eta_low_s": 14_400, "eta_high_s": 25_200},
    )
    incident = Incident(
        key=key,
        finding=finding,
        opened_s=WALL_S - 240,
        last_s=WALL_S - 1,
        host=HostName("a100"),
        gpu=0,
        run=RunId("r-11c0"),
        profile="vllm-7b",
    )
    return replace(incident, **changes)
