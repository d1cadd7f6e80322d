"""Every run on every host: started, listed, followed, stopped. The engine's half that knows about jobs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cockpit.config.hosts import HostSpec
from cockpit.domain.incidents import Incident
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import RunView
from cockpit.engine.agent import RunAgent, SignalName
from cockpit.engine.api import LaunchPlan, ProfileEntry, RunLog, RunStore, StopReport
from cockpit.engine.bounds import end
from cockpit.engine.events import Event, LaunchStep, RunChanged
from cockpit.engine.follow import RunFollower
from cockpit.engine.host_runs import HostRuns, RunParts
from cockpit.engine.launching import READY_NOTE, Launcher, overrides_of
from cockpit.engine.readiness import decode_ready, wait_until_ready
from cockpit.engine.run_book import RunBook
from cockpit.engine.run_watch import RunFinding, RunWatch
from cockpit.engine.save_log import save_log
from cockpit.engine.services import RunsService
from cockpit.engine.watched_log import WatchedLog
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError, RunError, UsageError
from cockpit.launchers.base import Launch, Readiness
from cockpit.transport.base import HostTransport

SIGNALS: Mapping[str, SignalName] = {"INT": "INT", "TERM": "TERM", "KILL": "KILL"}


def full_runs(parts: EngineParts) -> RunsService:
    """Runs by an agent on each host: the `make_runs` of every engine that may start a job."""

    def make_agent(spec: HostSpec, transport: HostTransport) -> RunAgent:
        return RunAgent(transport, spec.python or "", run_root=spec.run_root)

    return Runs(parts, make_agent, random.random)


class Runs:
    """The RunsService of an engine that starts jobs: the engine tells it of links, front ends ask it."""

    def __init__(
        self,
        parts: EngineParts,
        make_agent: Callable[[HostSpec, HostTransport], RunAgent],
        jitter: Callable[[], float],
    ) -> None:
        self.book = RunBook(self._run_changed)
        self._parts = parts
        self._clock = parts.clock
        self._bus = parts.bus
        self._launcher = Launcher(parts)
        self._hosts: dict[HostName, HostRuns] = {}
        self._transports: dict[HostName, HostTransport] = {}
        self._watches: dict[RunId, RunWatch] = {}
        self._companions: dict[RunId, asyncio.Task[None]] = {}
        self._launches: dict[RunId, Launch] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._run_parts = RunParts(
            parts.home, parts.clock, self.book, make_agent, self._listener, self._ended, jitter
        )

    @property
    def store(self) -> RunStore:
        return self.book

    # -- hosts and links ------------------------------------------------------------------

    def host_up(self, spec: HostSpec, transport: HostTransport) -> None:
        self._transports[spec.name] = transport
        self.of_host(spec.name).up(transport)

    def host_down(self, host: HostName) -> None:
        self._transports.pop(host, None)
        if host in self._hosts:
            self._hosts[host].down()

    def host_removed(self, host: HostName) -> None:
        runs = self._hosts.pop(host, None)
        if runs is not None:
            task = asyncio.ensure_future(runs.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def annotate(self, sample: HostSample) -> HostSample:
        """The probe reads a process's run from its environment; there is nothing to add."""
        return sample

    def sampled(self, sample: HostSample) -> None: ...

    def heard(self, event: Event) -> None: ...

    async def close(self) -> None:
        """Let go of every host's runs, within seconds. They go on."""
        await end(*self._companions.values(), *self._closing)
        await asyncio.gather(*(runs.close() for runs in self._hosts.values()))

    def of_host(self, host: HostName) -> HostRuns:
        """Raises UsageError for a host that is not configured."""
        runs = self._hosts.get(host)
        if runs is None:
            if host not in self._parts.hosts:
                known = tuple(self._parts.hosts)
                raise UsageError("host_unknown", host=host, known=known)
            runs = self._hosts[host] = HostRuns(self._parts.hosts[host], self._run_parts)
        return runs

    # -- what front ends ask --------------------------------------------------------------

    def profiles(self) -> Sequence[ProfileEntry]:
        return self._launcher.profiles()

    async def plan(
        self,
        profile: str,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        """Raises ProfileError, NotNow, UsageError, TransportError."""
        return await self._launcher.plan(profile, hosts=hosts, gpus=gpus, overrides=overrides)

    def relaunch_overrides(self, incident: Incident) -> Sequence[str]:
        return overrides_of(incident)

    async def launch(self, plan: LaunchPlan) -> RunId:
        """Start it; returns once the host has it on disk. Raises LaunchFailed, NotNow, TransportError."""
        spec = self._launcher.spec(plan)
        runs = self.of_host(plan.host)
        self._step(spec.run, plan.host, "launch_sending")
        agent = await runs.agent()
        if plan.launch is not None:
            self._launches[spec.run] = plan.launch
        runs.expect(spec.run, Masker(spec.secrets.values()))
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
        watch = RunWatch(host, follower.run, self.book, self._report)
        launch = self._launches.get(follower.run)
        if launch is not None and launch.ready is not None:
            watch.ready_when(launch.ready.log)
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
            task = self._companions.pop(view.run, None)
            if task is not None:
                task.cancel()
        self._bus.publish(RunChanged(view, before, self._clock.wall_s()))

    def _report(self, found: RunFinding) -> None:
        self._parts.incidents.report(
            found.finding,
            host=found.host,
            gpu=found.gpu,
            run=found.run,
            profile=found.profile,
            evidence=found.evidence,
        )

    def _began(self, view: RunView) -> None:
        transport = self._transports.get(view.host)
        if transport is None or view.run in self._companions:
            return
        launch = self._launches.get(view.run)
        ready = launch.ready if launch else decode_ready(dict(view.notes).get(READY_NOTE, ""))
        forwards = launch.forwards if launch else ()
        if ready is not None or forwards:
            work = self._accompany(transport, view.run, ready, forwards)
            self._companions[view.run] = asyncio.ensure_future(work)

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
