"""Runs that need a hand from here: a supervisor that died is replaced, a lost run is started again where
its profile says so, and what a host noted of a run is heard once, in its order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from cockpit.domain.incidents import Evidence, Finding
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_events import (
    LOW,
    LOW_SIGNATURE,
    ROOM_AGAIN,
    RunEvent,
    finding_of_event,
)
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import RunView
from cockpit.engine.agent import RunAgent
from cockpit.engine.agent_care import adopt, events_of
from cockpit.engine.bounds import end
from cockpit.engine.events import RunNoted
from cockpit.engine.host_runs import HostRuns
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError, HostUnreachable, LinkLost, NotNow

log = logging.getLogger(__name__)

DIED = "supervisor_died"
ADOPT_AGAIN_S = 30.0
RELAUNCH_AGAIN_S = 15.0
RELAUNCH_TRIES = 20
"""A host that has just restarted may take minutes until its cards answer."""
NEWS_S = 10.0
"""Of a run that is new to us, what was noted so long ago is no news."""
CLOSE_S = 1.0
_PASSING = (LinkLost, HostUnreachable, NotNow)


@dataclass(frozen=True, slots=True)
class CareParts:
    engine: EngineParts
    of_host: Callable[[HostName], HostRuns]
    looks_after: Callable[[RunId], bool]
    """Whether this engine follows the run; a list of runs alone changes nothing on a host."""
    is_ours: Callable[[RunId], bool]
    """Whether it was started from this computer, so that its profile is known here."""
    start_again: Callable[[RunView, int], Awaitable[RunRecord]]


class RunCare:
    """Hears of every record that a host tells; what it does then never holds up the list."""

    def __init__(self, parts: CareParts) -> None:
        self._parts = parts
        self._seen: dict[RunId, int] = {}
        """The newest event that was heard of each run."""
        self._tried_at: dict[tuple[str, RunId], float] = {}
        self._tries: dict[RunId, int] = {}
        self._busy: dict[tuple[str, RunId], asyncio.Task[None]] = {}
        self._left: set[RunId] = set()

    def told(self, host: HostName, record: RunRecord, view: RunView) -> None:
        if view.host != host or not self._parts.looks_after(record.run):
            return
        if record.degraded == DIED and self._is_due("adopt", record.run, ADOPT_AGAIN_S):
            self._spawn("adopt", record.run, self._adopt(host, record.run))
        if record.events > self._seen.get(record.run, 0):
            self._spawn("events", record.run, self._hear(host, record))
        if self.may_relaunch(record) and self._is_due("relaunch", record.run, RELAUNCH_AGAIN_S):
            self._spawn("relaunch", record.run, self._relaunch(record, view))

    def may_relaunch(self, record: RunRecord) -> bool:
        """A run that its host's restart ended, whose profile wants it back, and which nobody stopped."""
        run = record.run
        wanted = record.restart_on == "on-lost" and record.attempt <= record.restarts
        is_lost = record.state == "lost" and record.reason == "host_restarted"
        tries_left = run not in self._left and self._tries.get(run, 0) < RELAUNCH_TRIES
        return wanted and is_lost and tries_left and self._parts.is_ours(run)

    def leave(self, run: RunId) -> None:
        """A person ended it: it is not started again from here."""
        self._left.add(run)

    async def catch_up(self, host: HostName, record: RunRecord) -> None:
        """Hear what was noted of a run up to this record."""
        hearing = self._busy.get(("events", record.run))
        if hearing is not None:
            await asyncio.wait([hearing])
        if record.events > self._seen.get(record.run, 0):
            await self._hear(host, record)

    async def adopt_now(self, host: HostName, run: RunId) -> None:
        """Before a stop: a supervisor finds more of a run than we do from outside."""
        await self._adopt(host, run)

    async def close(self) -> None:
        await end(*self._busy.values(), limit_s=CLOSE_S)

    def _is_due(self, what: str, run: RunId, every_s: float) -> bool:
        now_s, last_s = self._parts.engine.clock.now_s(), self._tried_at.get((what, run))
        return last_s is None or now_s - last_s >= every_s

    def _spawn(self, what: str, run: RunId, work: Coroutine[Any, Any, None]) -> None:
        key = (what, run)
        if key in self._busy:
            work.close()
            return
        self._tried_at[key] = self._parts.engine.clock.now_s()
        task = self._busy[key] = asyncio.ensure_future(work)
        task.add_done_callback(lambda _task: self._busy.pop(key, None))

    # -- what is done -----------------------------------------------------------------------

    async def _adopt(self, host: HostName, run: RunId) -> None:
        runs = self._parts.of_host(host)
        try:
            agent = await runs.agent()
            if isinstance(agent, RunAgent):
                runs.record(await adopt(agent, run))
        except CockpitError as error:
            log.info("no new supervisor for %s on %s: %s", run, host, error)

    async def _relaunch(self, record: RunRecord, view: RunView) -> None:
        run = record.run
        self._tries[run] = self._tries.get(run, 0) + 1
        try:
            started = await self._parts.start_again(view, record.attempt + 1)
        except _PASSING as error:
            log.info("%s is not started again yet: %s", run, error)
        except CockpitError as error:
            self._left.add(run)
            self._note(view.host, run, "relaunch_failed", {"detail": str(error)})
        else:
            runs = self._parts.of_host(view.host)
            runs.record(started)
            runs.refresh()
            self._note(view.host, run, "relaunched", {"attempt": started.attempt})

    def _note(self, host: HostName, run: RunId, name: str, facts: dict[str, Any]) -> None:
        """Something that we did, told as a host's own notes are."""
        at_s = self._parts.engine.clock.wall_s()
        self._parts.engine.bus.publish(RunNoted(run, host, RunEvent(0, name, at_s, facts), at_s))

    async def _hear(self, host: HostName, record: RunRecord) -> None:
        seen = self._seen.get(record.run)
        try:
            agent = await self._parts.of_host(host).agent()
            if not isinstance(agent, RunAgent):
                return
            events = await events_of(agent, record.run, seen or 0)
        except CockpitError as error:
            log.info("events of %s on %s: %s", record.run, host, error)
            return
        self._seen[record.run] = max([record.events, *(event.number for event in events)])
        self._watch_disk(host, record, events, is_first=seen is None)
        for event in events:
            if seen is not None or event.at_s >= record.now_s - NEWS_S:
                at_s = self._parts.engine.clock.wall_s()
                self._parts.engine.bus.publish(RunNoted(record.run, host, event, at_s))

    def _watch_disk(
        self, host: HostName, record: RunRecord, events: tuple[RunEvent, ...], *, is_first: bool
    ) -> None:
        """A disk that fills is an incident as long as it does; of the past, only what still holds."""
        told = [event for event in events if event.name in (LOW, ROOM_AGAIN)]
        if is_first and not record.disk_low:
            return
        for event in told[-1:] if is_first else told:
            finding = finding_of_event(event)
            if finding is not None:
                self._report(host, record, finding, event)
            else:
                self._settle(host, record.run)

    def _report(self, host: HostName, record: RunRecord, finding: Finding, event: RunEvent) -> None:
        words = ", ".join(f"{name} {value}" for name, value in finding.facts.items())
        self._parts.engine.incidents.report(
            finding,
            host=host,
            run=record.run,
            profile=record.profile,
            evidence=(Evidence(event.at_s, "statvfs", words),),
        )

    def _settle(self, host: HostName, run: RunId) -> None:
        for incident in self._parts.engine.incidents.all():
            if incident.run == run and incident.finding.signature == LOW_SIGNATURE:
                self._parts.engine.incidents.settle(incident.key, "recovered")
