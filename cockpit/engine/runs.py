"""Every run on every host: started, listed, followed, stopped. The engine's half that knows about jobs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cockpit.config.hosts import HostSpec
from cockpit.domain.gang import member_of
from cockpit.domain.incidents import Incident
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.past_runs import Origin
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import RunSpec
from cockpit.domain.runs import RunView
from cockpit.engine.agent import RunAgent, SignalName
from cockpit.engine.api import (
    Check,
    LaunchPlan,
    ProfileEntry,
    RunStore,
    StopReport,
)
from cockpit.engine.bounds import end
from cockpit.engine.events import Event
from cockpit.engine.fetching import Fetcher
from cockpit.engine.followers import FollowParts
from cockpit.engine.gang import GangParts, Gangs
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.host_forwards import HostForwards
from cockpit.engine.host_runs import HostRuns, MakeAgent, RunParts
from cockpit.engine.mirror_room import LogCopies
from cockpit.engine.run_care import DIED, CareParts, RunCare
from cockpit.engine.run_life import RunLife
from cockpit.engine.runs_incidents import RunsIncidents
from cockpit.engine.runs_logs import RunsLogs
from cockpit.engine.runs_past import RunsPast
from cockpit.engine.services import RunsService
from cockpit.engine.skipped_logs import KEEP_UP_BYTES
from cockpit.engine.starting import Starter
from cockpit.engine.wiring import EngineParts
from cockpit.errors import RunError, UsageError
from cockpit.transport.base import HostTransport

if TYPE_CHECKING:  # pydantic, which `ps` or `logs` have no use for
    from cockpit.engine.launching import Launcher

SIGNALS: Mapping[str, SignalName] = {"INT": "INT", "TERM": "TERM", "KILL": "KILL"}


def full_runs(parts: EngineParts, *, follow_live: bool = True) -> RunsService:
    """Runs by an agent on each host: the `make_runs` of every engine that may start a job."""

    def make_agent(spec: HostSpec, transport: HostTransport) -> RunAgent:
        return RunAgent(transport, spec.python or "", run_root=spec.run_root)

    def make_sh_agent(spec: HostSpec, transport: HostTransport) -> HostAgent:
        from cockpit.engine.sh_agent import ShAgent  # few hosts are without Python

        return ShAgent(transport, run_root=spec.run_root)

    return Runs(parts, make_agent, random.random, make_sh_agent, follow_live=follow_live)


class Runs(RunsLogs, RunsPast, RunsIncidents):
    """The RunsService of an engine that starts jobs: the engine tells it of links, front ends ask it."""

    def __init__(
        self,
        parts: EngineParts,
        make_agent: MakeAgent,
        jitter: Callable[[], float],
        make_sh_agent: MakeAgent | None = None,
        *,
        follow_live: bool = True,
    ) -> None:
        """`follow_live`: every run that lives is followed; without it, those that are asked for."""
        self._parts = parts
        self._transports: dict[HostName, HostTransport] = {}
        self._life = RunLife(parts, self._transports)
        self.book = self._life.book
        self.past = self._life.past
        self._life.around_runs.acts_for_all = follow_live
        self._life.around_runs.stop = self.stop
        self._launcher: Launcher | None = None
        self._starter = Starter(parts, self.of_host, self._transports.get, self._life.step)
        self.fetcher = Fetcher(
            parts, self.book, self.of_host, self._transports.get, self._life.step
        )
        self.fetcher.acts_for_all = follow_live
        self._hosts: dict[HostName, HostRuns] = {}
        self._maskers: dict[RunId, Masker] = {}
        self.past.maskers = self._maskers
        if parts.recorder is not None:
            parts.recorder.knows(self._maskers)
        self._removing: set[asyncio.Task[None]] = set()
        self._reading: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._copies = LogCopies(parts, self.book)
        follow = FollowParts(
            parts.home,
            parts.clock,
            self._life.listener,
            self._masker,
            self._life.ended,
            self._copies.limit_bytes,
            KEEP_UP_BYTES if follow_live else None,
            self._copies.uncopied,
        )
        self._care = RunCare(
            CareParts(
                parts,
                self.of_host,
                lambda run: follow_live or self._life.around_runs.is_adopted(run),
                self._life.around_runs.acts_for,
                self._start_again,
            )
        )
        self._run_parts = RunParts(
            parts.clock,
            self.book,
            make_agent,
            follow,
            follow_live,
            jitter,
            self._told,
            make_sh_agent,
        )
        self.gangs = Gangs(
            GangParts(
                parts,
                self.book,
                self._transports,
                self.of_host,
                lambda plan, spec, meeting: self._planner().gang_specs(plan, spec, meeting),
                self._start_one,
                self._stop_one,
                lambda run: follow_live or self._life.around_runs.is_adopted(run),
                self._life.step,
            )
        )
        self._own_forwards = HostForwards(parts.bus, parts.clock)

    @property
    def store(self) -> RunStore:
        return self.book

    # -- hosts and links ------------------------------------------------------------------

    def begin(self) -> None:
        """A command reads the history itself, where it is about the past."""
        if self._run_parts.follow_live:
            self.past.begin()
            self._copies.begin()

    def host_up(self, spec: HostSpec, transport: HostTransport) -> None:
        if self._run_parts.follow_live:
            self._own_forwards.up(spec, transport)
        self._transports[spec.name] = transport
        self.of_host(spec.name).up(spec, transport)
        self.fetcher.host_up(spec.name)

    def host_down(self, host: HostName) -> None:
        """While we close, links end because we end them, and nothing has happened to a run."""
        self._transports.pop(host, None)
        self._own_forwards.down(host)
        if host in self._hosts and not self._is_closing:
            self._hosts[host].down()
            self.book.host_lost(host)

    def host_removed(self, host: HostName) -> None:
        runs = self._hosts.pop(host, None)
        self._life.pulses.forget(host)
        if runs is not None:
            task = asyncio.ensure_future(runs.close())
            self._removing.add(task)
            task.add_done_callback(self._removing.discard)

    def is_up(self, host: HostName) -> bool:
        """Whether there is a connection on which a job could be started, whatever the probe says."""
        transport = self._transports.get(host)
        return transport is not None and transport.connected

    def annotate(self, sample: HostSample) -> HostSample:
        return sample  # the probe reads a process's run from its environment

    def sampled(self, sample: HostSample) -> None:
        self._life.pulses.sampled(sample)

    def heard(self, event: Event) -> None:
        self._life.heard(event)
        self.fetcher.heard(event)
        self.gangs.heard(event)

    async def close(self) -> None:
        """Let go of every host's runs, within seconds. They go on."""
        self._is_closing = True
        await self._care.close()
        await self.gangs.close()
        await self._copies.close()
        await self._life.close()
        await self.fetcher.close()
        await end(*self._removing, *self._reading)
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

    def _told(self, host: HostName, record: RunRecord, view: RunView) -> None:
        self.past.told(host, record, view)
        self._care.told(host, record, view)
        self.gangs.told(host, record)

    async def _start_again(self, view: RunView, attempt: int) -> RunRecord:
        """The next attempt of a run that its host's restart ended, from the profile of then."""
        plan = await self.plan_again(view.run, hosts=[view.host])
        spec = replace(await self.specify(plan), run=view.run)
        self._life.launched(view.run, plan.launch)
        return await self._starter.start(plan, spec, attempt)

    async def catch_up(self, record: RunRecord) -> None:
        """Hear what a host noted of a run up to this record, before its end is told."""
        view = self.book.get(record.run)
        if view is not None:
            await self._care.catch_up(view.host, record)

    def may_relaunch(self, record: RunRecord) -> bool:
        """Whether a lost run is about to be started again from here."""
        return self._care.may_relaunch(record)

    # -- what front ends ask --------------------------------------------------------------

    def profiles(self) -> Sequence[ProfileEntry]:
        return self._planner().profiles()

    def _planner(self) -> Launcher:
        """Made with the first profile: its imports take a while."""
        if self._launcher is None:
            from cockpit.engine.launching import Launcher

            self._launcher = Launcher(self._parts, self.book, self.is_up, self._transports)
        return self._launcher

    async def plan(
        self,
        profile: str,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        """Raises ProfileError, NotNow, UsageError, LaunchFailed, TransportError."""
        return await self._planned(profile, hosts, gpus, overrides)

    async def _planned(
        self,
        source: str | Origin,
        hosts: Sequence[HostName],
        gpus: Sequence[int] | None,
        overrides: Sequence[str],
    ) -> LaunchPlan:
        from cockpit.engine.origins import origin_of

        planner = self._planner()
        plan = await planner.plan(source, hosts=hosts, gpus=gpus, overrides=overrides)
        before = source.overrides if isinstance(source, Origin) else ()
        origin = origin_of(plan.profile, hosts=hosts, gpus=gpus, overrides=(*before, *overrides))
        checks = plan.checks
        if isinstance(source, Origin) and source.notified and not plan.profile.notify.urls:
            checks = (*checks, Check("notify_not_kept", "warning"))
        return replace(plan, origin=origin, checks=checks)

    def relaunch_overrides(self, incident: Incident) -> Sequence[str]:
        from cockpit.engine.launching import overrides_of

        return overrides_of(incident)

    async def launch(self, plan: LaunchPlan) -> RunId:
        """Start it; returns once the host has it on disk. Raises LaunchFailed, NotNow, TransportError."""
        return await self.start(plan, await self.specify(plan))

    async def specify(self, plan: LaunchPlan) -> RunSpec:
        """The run that `start` would start, with its id. Raises LaunchFailed, ProfileError."""
        return await self._planner().spec(plan)

    async def start(self, plan: LaunchPlan, spec: RunSpec) -> RunId:
        """As `launch`, of a run that is specified."""
        if plan.nodes:
            return await self.gangs.start(plan, spec)
        return await self._start_one(plan, spec)

    async def _start_one(self, plan: LaunchPlan, spec: RunSpec) -> RunId:
        self._life.launched(spec.run, plan.launch)
        masker = self._maskers[spec.run] = Masker(spec.secrets.values())
        try:
            self.fetcher.remember(plan, spec.run)
            await self.past.about_to_launch(plan, spec.run, masker)
            record = await self._starter.start(plan, spec)
        except BaseException:
            if spec.run not in self._starter.in_doubt:
                await self._take_back(plan, spec.run)
            raise
        runs = self.of_host(plan.host)
        self._life.adopt(spec.run, plan.profile)
        runs.record(record)
        if (view := self.book.get(spec.run)) is not None:
            await self.past.launched(plan, view, self._maskers[spec.run])
        runs.refresh()
        return spec.run

    async def _take_back(self, plan: LaunchPlan, run: RunId) -> None:
        """What was noted of a run that its host has not started."""
        self.fetcher.forget(plan.host, run)
        self._life.launched(run, None)
        self._maskers.pop(run, None)
        await self.past.not_launched(run)

    async def stop(self, run: RunId) -> StopReport:
        """The stop ladder, to its end, on every host of the run. Raises RunUnknown, TransportError."""
        member = member_of(self.book.find(run))
        return await self._stop_one(run) if member is None else await self.gangs.stop(member)

    async def verdict(self, run: RunId) -> RunView | None:
        """Of a run on several hosts, once it is over: the rank that failed first. None for any other run."""
        view = self.book.get(run)
        member = member_of(view) if view is not None else None
        return None if member is None else await self.gangs.judged(member)

    async def _stop_one(self, run: RunId) -> StopReport:
        view = self.book.find(run)
        runs = self.of_host(view.host)
        self._care.leave(view.run)
        if view.degraded == DIED:
            await self._care.adopt_now(view.host, view.run)
        outcome = await (await runs.agent()).stop(view.run)
        runs.record(outcome.record)
        runs.refresh()
        return StopReport(
            run=view.run,
            signals=outcome.signals,
            left=tuple(process.pid for process in outcome.left),
            left_commands=tuple(process.command for process in outcome.left),
            stuck=tuple(process.pid for process in outcome.left if process.state == "D"),
            held_mib=outcome.held_mib,
        )

    async def signal_process(self, host: HostName, pid: int, started_ticks: int, name: str) -> None:
        """Send a signal to the process that was shown. Raises UsageError, RunError when it is gone."""
        if name not in SIGNALS:
            raise UsageError("signal_unknown", signal=name, known=tuple(SIGNALS))
        agent = await self.of_host(host).agent()
        if not await agent.signal(pid, started_ticks, SIGNALS[name]):
            raise RunError("process_gone", host=host, pid=pid)

    def fetch(self, run: RunId) -> bool:
        """Raises RunUnknown."""
        return self.fetcher.begin(self.book.find(run), by_hand=True)
