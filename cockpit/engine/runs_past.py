"""The half of the runs that is about what was and what goes along: history, remarks, ports, kept logs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.domain.run_record import RunRecord
from cockpit.engine.api import Around, Forwarded, LaunchPlan, RunLog
from cockpit.engine.follow import RunFollower
from cockpit.engine.host_forwards import HostForwards
from cockpit.engine.kept_log import kept_log
from cockpit.engine.past_runs import PastRuns
from cockpit.engine.run_book import RunBook
from cockpit.engine.run_life import RunLife
from cockpit.engine.watched_log import WatchedLog
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError, RunUnknown

log = logging.getLogger(__name__)


class RunsPast:
    book: RunBook
    past: PastRuns
    _life: RunLife
    _parts: EngineParts
    _own_forwards: HostForwards
    _reading: set[asyncio.Task[None]]

    async def _planned(
        self,
        source: str | Origin,
        hosts: Sequence[HostName],
        gpus: Sequence[int] | None,
        overrides: Sequence[str],
    ) -> LaunchPlan:
        raise NotImplementedError

    def watch(self, run: RunId) -> tuple[RunFollower, Callable[[], None]]:
        raise NotImplementedError

    def is_up(self, host: HostName) -> bool:
        raise NotImplementedError

    async def plan_again(
        self,
        run: RunId,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        """As `plan`, of the profile text and the overrides that a run was started from."""
        origin = await self.past.history.origin(run)
        if origin is None:
            raise RunUnknown("run_not_from_here", run=run)
        return await self._planned(origin, hosts, gpus, overrides)

    def past_run(self, run: RunId) -> PastRun | None:
        return self.past.get(run)

    async def past_incidents(self, run: RunId) -> Sequence[Incident]:
        return await self.past.history.incidents(run)

    async def set_remark(self, run: RunId, remark: str) -> None:
        """Raises RunUnknown, StorageError."""
        await self.past.set_remark(self.book.find(run), remark)

    def around(self, run: RunId) -> Around:
        return self._life.around(run)

    def host_forwards(self, host: HostName) -> Sequence[Forwarded]:
        return self._own_forwards.states(host)

    def adopt(self, run: RunId) -> None:
        """Do for this run what its profile wants beside it; an engine that follows all does it for all."""
        self._life.adopt(run)

    def goes_at_once(self) -> None:
        """This cockpit leaves as soon as its run has begun: what goes along with the run is for who comes next."""
        self._life.around_runs.goes_at_once = True

    async def settled(self, run: RunId, limit_s: float) -> None:
        """Wait for what is still done for a run: its hooks and messages."""
        await self._life.around_runs.settled(run, limit_s)

    def log(self, run: RunId) -> RunLog:
        """The log as it grows; while its host is silent, what was copied of it. Raises RunUnknown, StorageError."""
        view = self.book.find(run)
        if view.host not in self._parts.hosts:
            follower = kept_log(self._parts.home, self._parts.clock, view)
            leave: Callable[[], None] = lambda: self._read(follower.close())  # noqa: E731
            over = RunRecord(view.run, "lost", self._parts.clock.wall_s(), view.profile)
            self._read(_shown(follower, over))
        else:
            follower, leave = self.watch(run)
            if not self.is_up(view.host):
                self._read(follower.prepare())
        return WatchedLog(follower, leave)

    def _read(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(_quietly(work))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)


async def _shown(follower: RunFollower, over: RunRecord) -> None:
    """All that there will be of it."""
    await follower.prepare()
    follower.end(over)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except CockpitError as error:
        log.warning("copy of a log: %s", error)
