"""Runs on several hosts: prepared on all before any begins, stopped together, judged as one.

Ranks on other hosts are stopped by a cockpit that is connected; without one they wait for their own time-outs,
and are judged when a cockpit comes back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from cockpit.config.hosts import HostSpec
from cockpit.domain.gang import Member, culprit, has_failed, member_of
from cockpit.domain.incidents import FactValue, Finding, Remedy
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import RunSpec
from cockpit.domain.runs import RunView
from cockpit.engine.agent import RunAgent
from cockpit.engine.agent_care import go
from cockpit.engine.api import LaunchPlan, StopReport
from cockpit.engine.bounds import end, within
from cockpit.engine.events import Event, RunChanged
from cockpit.engine.host_runs import HostRuns
from cockpit.engine.meeting import Meeting, arrange, check_free
from cockpit.engine.run_book import RunBook
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError, LaunchFailed, LinkLost
from cockpit.transport.base import HostTransport

log = logging.getLogger(__name__)

HOLD_S: Final = 180.0
"""A host that was prepared waits so long for the others, then lets its cards go."""
LATE_S: Final = 30.0
CALL_TRIES: Final = 3
TOGETHER_S: Final = 1.0
"""Ranks that end within a moment are heard in any order: who was first is decided after it."""
AGAIN_S: Final = 5.0
"""A rank on a host that is out of reach is asked to stop again after this."""
CLOCK_SAMPLES: Final = 16
CLOSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class GangParts:
    engine: EngineParts
    book: RunBook
    transports: Mapping[HostName, HostTransport]
    of_host: Callable[[HostName], HostRuns]
    specs: Callable[[LaunchPlan, RunSpec, Meeting], Awaitable[Sequence[RunSpec]]]
    start_one: Callable[[LaunchPlan, RunSpec], Awaitable[RunId]]
    stop_one: Callable[[RunId], Awaitable[StopReport]]
    looks_after: Callable[[RunId], bool]
    on_step: Callable[..., None]


class Gangs:
    def __init__(self, parts: GangParts) -> None:
        self._parts = parts
        self._ahead_s: dict[HostName, deque[float]] = {}
        self._judging: dict[RunId, asyncio.Task[None]] = {}
        self._culprits: dict[RunId, RunView] = {}
        self._changed = asyncio.Event()
        """A run changed."""

    # -- start ------------------------------------------------------------------------------

    async def start(self, plan: LaunchPlan, spec: RunSpec) -> RunId:
        """Every host prepared, then every host called. Raises LaunchFailed, NotNow, TransportError.

        When one cannot be prepared none begins.
        """
        parts, plans = self._parts, (plan, *plan.nodes)
        hosts = [parts.engine.hosts[one.host] for one in plans]
        parts.on_step(spec.run, plan.host, "gang_meeting")
        meeting = await self._meeting(hosts)
        address = f"{meeting.address}:{meeting.port}"
        parts.on_step(spec.run, plan.host, "gang_met", address)
        specs = await parts.specs(plan, spec, meeting)
        begun = [
            asyncio.ensure_future(parts.start_one(one, own))
            for one, own in zip(plans, specs, strict=True)
        ]
        try:
            await asyncio.gather(*begun)
            await check_free(hosts[0], parts.transports, meeting)
            await asyncio.gather(
                *(self._call(one.host, own.run) for one, own in zip(plans, specs, strict=True))
            )
        except BaseException:
            await self._let_go(begun)
            raise
        return spec.run

    async def _meeting(self, hosts: Sequence[HostSpec]) -> Meeting:
        for host in hosts:
            await self._parts.of_host(host.name).agent()
        return await arrange(hosts, self._parts.transports)

    async def _call(self, host: HostName, run: RunId) -> None:
        """Raises LaunchFailed when the host did not hear it, or nobody is left there to hear."""
        runs = self._parts.of_host(host)
        for _try in range(CALL_TRIES):
            with suppress(LinkLost):
                agent = await runs.agent()
                if isinstance(agent, RunAgent):
                    record = await go(agent, run)
                    runs.record(record)
                    if record.state == "lost":
                        break
                    return
        raise LaunchFailed("gang_not_called", host=host, run=run)

    async def _let_go(self, begun: Sequence[asyncio.Task[RunId]]) -> None:
        """Take back what was prepared, and what is still on its way; one that nobody calls ends by itself."""
        _done, late = await asyncio.wait(begun, timeout=LATE_S)
        for task in late:
            task.cancel()
        ended = await asyncio.gather(*begun, return_exceptions=True)
        stops = [self._parts.stop_one(run) for run in ended if isinstance(run, str)]
        for outcome in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(outcome, CockpitError):
                log.info("a prepared run could not be taken back: %s", outcome)

    # -- stop -------------------------------------------------------------------------------

    async def stop(self, member: Member) -> StopReport:
        """All of them at once. Raises what the first that failed raised, after all were tried."""
        stops = [self._parts.stop_one(view.run) for view in self._ranks(member)]
        outcomes = await asyncio.gather(*stops, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        reports = [outcome for outcome in outcomes if isinstance(outcome, StopReport)]
        return StopReport(
            run=member.gang,
            signals=max((report.signals for report in reports), key=len, default=()),
            left=tuple(pid for report in reports for pid in report.left),
            left_commands=tuple(word for report in reports for word in report.left_commands),
            stuck=tuple(pid for report in reports for pid in report.stuck),
            held_mib=tuple(pair for report in reports for pair in report.held_mib),
        )

    # -- while it runs ----------------------------------------------------------------------

    def told(self, host: HostName, record: RunRecord) -> None:
        """How far the host's clock is ahead of ours; the way here takes from it, so the most of late is nearest."""
        seen = self._ahead_s.setdefault(host, deque(maxlen=CLOCK_SAMPLES))
        seen.append(record.now_s - self._parts.engine.clock.wall_s())

    def heard(self, event: Event) -> None:
        if not isinstance(event, RunChanged):
            return
        self._changed.set()
        member = member_of(event.view) if has_failed(event.view) else None
        if member is not None and member.gang not in self._judging and self._is_ours(member):
            self._judging[member.gang] = asyncio.ensure_future(self._judge(member))

    def _is_ours(self, member: Member) -> bool:
        return any(self._parts.looks_after(run) for run in member.ids)

    def _ranks(self, member: Member) -> list[RunView]:
        """Those that are known and say so themselves: no host speaks for a run of another."""
        views = [view for run in member.ids if (view := self._parts.book.get(run)) is not None]
        return [view for view in views if (of := member_of(view)) and of.gang == member.gang]

    def _alive(self, member: Member) -> list[RunId]:
        return [view.run for view in self._ranks(member) if not view.ended]

    async def _judge(self, member: Member) -> None:
        """Name the first that failed, and end the others: alone they wait for it.

        A host that is out of reach meanwhile is asked when it is back, and what it then tells may name another.
        """
        await asyncio.sleep(TOGETHER_S)
        self._name(member)
        asked: set[RunId] = set()
        while on := [run for run in self._alive(member) if run not in asked]:
            self._changed.clear()
            stopped = await asyncio.gather(*(self._stopped(run) for run in on))
            asked.update(run for run, done in zip(on, stopped, strict=True) if done)
            if not all(stopped):
                with suppress(asyncio.TimeoutError):
                    await within(AGAIN_S, self._changed.wait())
        self._name(member)

    async def _stopped(self, run: RunId) -> bool:
        try:
            await self._parts.stop_one(run)
        except CockpitError as error:
            log.info("a rank goes on by itself: %s: %s", run, error)
            return False
        return True

    def _name(self, member: Member) -> None:
        first, known = self._first(member), self._culprits.get(member.gang)
        if first is not None and (known is None or known.run != first.run):
            self._culprits[member.gang] = first
            self._report(first)

    def culprit(self, member: Member) -> RunView | None:
        return self._culprits.get(member.gang) or self._first(member)

    def _first(self, member: Member) -> RunView | None:
        ahead_s = {host: max(seen) for host, seen in self._ahead_s.items()}
        return culprit(self._ranks(member), ahead_s)

    async def judged(self, member: Member) -> RunView | None:
        """Who is to blame, once nothing of it runs any more; None when all ended well, or one asked."""
        while self._alive(member):
            self._changed.clear()
            await self._changed.wait()
        task = self._judging.get(member.gang)
        if task is not None:
            await asyncio.wait({task})
        return self.culprit(member)

    def _report(self, first: RunView) -> None:
        found = member_of(first)
        facts: dict[str, FactValue] = {"rank": found.rank if found is not None else 0}
        if first.code is not None:
            facts["exitcode"] = first.code
        if first.signal is not None:
            facts["signal"] = first.signal
        finding = Finding(
            family="crash",
            signature="rank-failed",
            severity="fatal",
            facts=facts,
            cause="first_rank_failed",
            remedies=(Remedy("read_the_ranks_log"),),
        )
        self._parts.engine.incidents.report(
            finding, host=first.host, run=first.run, profile=first.profile
        )

    async def close(self) -> None:
        tasks: list[asyncio.Task[Any]] = list(self._judging.values())
        await end(*tasks, limit_s=CLOSE_S)
