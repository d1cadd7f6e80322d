"""Runs on several hosts: prepared on all before any begins, stopped together, judged as one.

Ranks on other hosts are stopped by a cockpit that is connected; without one they wait for their own time-outs,
and are judged when a cockpit comes back.
"""

from __future__ import annotations

import asyncio
import logging
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
from cockpit.engine.bounds import end
from cockpit.engine.events import Event, RunChanged
from cockpit.engine.host_runs import HostRuns
from cockpit.engine.meeting import Meeting, arrange
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
        self._ahead_s: dict[HostName, float] = {}
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
        """Raises LaunchFailed when the host did not hear it."""
        runs = self._parts.of_host(host)
        for _try in range(CALL_TRIES):
            with suppress(LinkLost):
                agent = await runs.agent()
                if isinstance(agent, RunAgent):
                    runs.record(await go(agent, run))
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
        book = self._parts.book
        runs = [run for run in member.ids if book.get(run) is not None]
        outcomes = await asyncio.gather(
            *(self._parts.stop_one(run) for run in runs), return_exceptions=True
        )
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
        """How far the host's clock is ahead of ours."""
        self._ahead_s[host] = record.now_s - self._parts.engine.clock.wall_s()

    def heard(self, event: Event) -> None:
        if not isinstance(event, RunChanged):
            return
        self._changed.set()
        member = member_of(event.view) if has_failed(event.view) else None
        if member is not None and member.gang not in self._judging and self._is_ours(member):
            self._judging[member.gang] = asyncio.ensure_future(self._judge(member))

    def _is_ours(self, member: Member) -> bool:
        return any(self._parts.looks_after(run) for run in member.ids)

    def _is_over(self, run: RunId) -> bool:
        view = self._parts.book.get(run)
        return view is None or view.ended

    async def _judge(self, member: Member) -> None:
        """Name the first that failed, and end the others: alone they wait for it."""
        await asyncio.sleep(TOGETHER_S)
        first = self.culprit(member)
        if first is None:
            return
        self._culprits[member.gang] = first
        self._report(member, first)
        for run in member.ids:
            if not self._is_over(run):
                try:
                    await self._parts.stop_one(run)
                except CockpitError as error:
                    log.info("rank of %s on its own: %s", run, error)

    def culprit(self, member: Member) -> RunView | None:
        if (known := self._culprits.get(member.gang)) is not None:
            return known
        views = [view for run in member.ids if (view := self._parts.book.get(run)) is not None]
        return culprit(views, self._ahead_s)

    async def judged(self, member: Member) -> RunView | None:
        """Who is to blame, once nothing of it runs any more; None when all ended well, or one asked."""
        while not all(self._is_over(run) for run in member.ids):
            self._changed.clear()
            await self._changed.wait()
        task = self._judging.get(member.gang)
        if task is not None:
            await asyncio.wait({task})
        return self.culprit(member)

    def _report(self, member: Member, first: RunView) -> None:
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
