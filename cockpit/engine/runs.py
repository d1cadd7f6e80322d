"""Every run on every host: started, listed, followed, stopped. The engine's half that knows about jobs."""

from __future__ import annotations

import asyncio
import secrets as randomness
from collections.abc import Callable, Mapping
from pathlib import Path

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import RunSpec
from cockpit.domain.runs import RunView
from cockpit.engine.agent import RunAgent, SignalName
from cockpit.engine.api import LaunchPlan, LogLine, RunLog, StopReport
from cockpit.engine.bounds import end
from cockpit.engine.clock import Clock
from cockpit.engine.events import EventBus, LaunchStep, RunChanged
from cockpit.engine.follow import RunFollower
from cockpit.engine.host_runs import HostRuns, RunParts
from cockpit.engine.readiness import decode_ready, wait_until_ready
from cockpit.engine.run_book import RunBook
from cockpit.engine.run_watch import OnRunFinding, RunWatch
from cockpit.engine.save_log import save_log
from cockpit.errors import CockpitError, RunError, UsageError
from cockpit.launchers.base import Readiness
from cockpit.transport.base import HostTransport

READY_NOTE = "ready"
SIGNALS: Mapping[str, SignalName] = {"INT": "INT", "TERM": "TERM", "KILL": "KILL"}


class RunsService:
    """Owns every host's runs; the engine tells it of links and asks it on behalf of the front ends."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        bus: EventBus,
        make_agent: Callable[[HostSpec, HostTransport], RunAgent],
        on_finding: OnRunFinding,
        jitter: Callable[[], float],
    ) -> None:
        self.book = RunBook(self._run_changed)
        self._clock = clock
        self._bus = bus
        self._on_finding = on_finding
        self._hosts: dict[HostName, HostRuns] = {}
        self._transports: dict[HostName, HostTransport] = {}
        self._watches: dict[RunId, RunWatch] = {}
        self._ready_tasks: dict[RunId, asyncio.Task[None]] = {}
        self._ready: dict[RunId, Readiness] = {}
        self._forwards: dict[RunId, tuple[tuple[int, int], ...]] = {}
        self._parts = RunParts(
            home, clock, self.book, make_agent, self._listener, self._ended, jitter
        )

    # -- hosts and links ------------------------------------------------------------------

    def add_host(self, spec: HostSpec) -> None:
        self._hosts[spec.name] = HostRuns(spec, self._parts)

    async def remove_host(self, host: HostName) -> None:
        runs = self._hosts.pop(host, None)
        if runs is not None:
            await runs.close()

    def link_up(self, host: HostName, transport: HostTransport) -> None:
        self._transports[host] = transport
        if host in self._hosts:
            self._hosts[host].up(transport)

    def link_down(self, host: HostName) -> None:
        self._transports.pop(host, None)
        if host in self._hosts:
            self._hosts[host].down()

    async def close(self) -> None:
        """Let go of every host's runs, within seconds. They go on."""
        await end(*self._ready_tasks.values())
        await asyncio.gather(*(runs.close() for runs in self._hosts.values()))

    def of_host(self, host: HostName) -> HostRuns:
        """Raises UsageError for a host that is not configured."""
        try:
            return self._hosts[host]
        except KeyError:
            raise UsageError("host_unknown", host=host, known=tuple(self._hosts)) from None

    # -- what front ends ask --------------------------------------------------------------

    async def launch(self, plan: LaunchPlan, spec: RunSpec) -> RunId:
        """Start it; returns once the host has it on disk. Raises LaunchFailed, NotNow, TransportError."""
        runs = self.of_host(plan.host)
        self._step(spec.run, plan.host, "launch_sending")
        agent = await runs.agent()
        if plan.launch is not None and plan.launch.ready is not None:
            self._ready[spec.run] = plan.launch.ready
        self._forwards[spec.run] = plan.forwards
        runs.follower(spec.run, Masker(spec.secrets.values()))
        reply = await agent.start(spec)
        self._step(spec.run, plan.host, "launch_on_disk")
        runs.record(reply.record)
        runs.refresh()
        return spec.run

    async def stop(self, run: RunId) -> StopReport:
        """The stop ladder, to its end. Raises RunUnknown, TransportError."""
        view = self.book.find(run)
        runs = self.of_host(view.host)
        outcome = await (await runs.agent()).stop(view.run)
        runs.record(outcome.record)
        runs.refresh()
        return StopReport(
            run=view.run,
            signals=outcome.signals,
            left=tuple(process.pid for process in outcome.left),
            left_commands=tuple(process.command for process in outcome.left),
        )

    async def signal_process(self, host: HostName, pid: int, started_ticks: int, name: str) -> None:
        """Send a signal to the process that was shown. Raises UsageError, RunError when it is gone."""
        if name not in SIGNALS:
            raise UsageError("signal_unknown", signal=name, known=tuple(SIGNALS))
        agent = await self.of_host(host).agent()
        if not await agent.signal(pid, started_ticks, SIGNALS[name]):
            raise RunError("process_gone", host=host, pid=pid)

    def follower(self, run: RunId) -> RunFollower:
        """Raises RunUnknown."""
        view = self.book.find(run)
        return self.of_host(view.host).follower(view.run)

    def log(self, run: RunId) -> RunLog:
        return WatchedLog(self.follower(run))

    async def save_log(self, run: RunId, target: Path) -> int:
        """Raises RunUnknown, StorageError, TransportError."""
        view = self.book.find(run)
        return await save_log(await self.of_host(view.host).agent(), view.run, target)

    # -- what followers and hosts tell ------------------------------------------------------

    def _listener(self, host: HostName, follower: RunFollower) -> RunWatch:
        watch = RunWatch(host, follower.run, self.book, self._on_finding)
        ready = self._ready.get(follower.run)
        if ready is not None:
            watch.ready_when(ready.log)
        self._watches[follower.run] = watch
        return watch

    def _ended(self, host: HostName, record: RunRecord) -> None:
        watch = self._watches.get(record.run)
        if watch is not None:
            watch.ended(record)

    def _run_changed(self, view: RunView, before: RunView | None) -> None:
        if view.state == "running":
            self._began(view)
        elif view.ended or view.state == "unreachable":
            task = self._ready_tasks.pop(view.run, None)
            if task is not None:
                task.cancel()
        self._bus.publish(RunChanged(view, before, self._clock.wall_s()))

    def _began(self, view: RunView) -> None:
        transport = self._transports.get(view.host)
        if transport is None or view.run in self._ready_tasks:
            return
        ready = self._ready.get(view.run) or decode_ready(dict(view.notes).get(READY_NOTE, ""))
        forwards = self._forwards.get(view.run, ())
        if ready is not None or forwards:
            work = self._accompany(transport, view.run, ready, forwards)
            self._ready_tasks[view.run] = asyncio.ensure_future(work)

    async def _accompany(
        self,
        transport: HostTransport,
        run: RunId,
        ready: Readiness | None,
        forwards: tuple[tuple[int, int], ...],
    ) -> None:
        """Forward the run's ports and ask until it is ready."""
        for local_port, remote_port in forwards:
            try:
                port = await transport.forward(local_port, remote_port)
            except CockpitError as error:
                self._step(run, transport.host, error.code, str(local_port))
            else:
                self._step(run, transport.host, "forwarded", f"127.0.0.1:{port} -> {remote_port}")
        if ready is not None and ready.port is not None:
            await wait_until_ready(transport, ready, self._clock.now_s)
            if transport.connected:
                self.book.ready(run)

    def _step(self, run: RunId, host: HostName, code: str, text: str = "") -> None:
        self._bus.publish(LaunchStep(run, host, code, self._clock.wall_s(), text))


class WatchedLog:
    """A follower's window as `RunLog`: after a truncation or a restart the window may be another object."""

    def __init__(self, follower: RunFollower) -> None:
        self._follower = follower

    @property
    def version(self) -> int:
        return self._follower.window.version

    @property
    def first_number(self) -> int:
        return self._follower.window.first_number

    @property
    def total_lines(self) -> int:
        return self._follower.window.total_lines

    @property
    def total_bytes(self) -> int:
        return self._follower.window.total_bytes

    @property
    def open_text(self) -> str:
        return self._follower.window.open_text

    @property
    def ended(self) -> bool:
        return self._follower.window.ended

    def __len__(self) -> int:
        return len(self._follower.window)

    def line(self, position: int) -> LogLine:
        return self._follower.window.line(position)

    def close(self) -> None:
        """The follower goes on: detectors need it as long as the run lives."""


def new_random() -> int:
    return randomness.randbits(15)
