"""The part of the runs that is about their logs: watched, searched, saved, masked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.engine.api import LogHit, LogPart
from cockpit.engine.follow import RunFollower
from cockpit.engine.host_runs import HostRuns
from cockpit.engine.log_search import log_around, search_log
from cockpit.engine.masks import NAMES_NOTE, masker_of
from cockpit.engine.mirror import mirror_path
from cockpit.engine.run_book import RunBook
from cockpit.engine.save_log import save_log
from cockpit.engine.wiring import EngineParts


class RunsLogs:
    """Mixed into Runs."""

    book: RunBook
    _parts: EngineParts
    _maskers: dict[RunId, Masker]

    def of_host(self, host: HostName) -> HostRuns:
        raise NotImplementedError

    def watch(self, run: RunId) -> tuple[RunFollower, Callable[[], None]]:
        """The run's follower, kept until the callable is called. Raises RunUnknown, StorageError."""
        view = self.book.find(run)
        followers = self.of_host(view.host).followers
        follower = followers.watch(view.run)
        return follower, lambda: followers.unwatch(follower)

    async def search_log(
        self,
        run: RunId,
        text: str,
        offset: int,
        *,
        backward: bool,
        on_progress: Callable[[float], None],
    ) -> LogHit | None:
        """Raises RunUnknown, RunError, TransportError."""
        view = self.book.find(run)
        agent = await self.of_host(view.host).agent()
        return await search_log(
            agent, view.run, text, offset, backward=backward, on_progress=on_progress
        )

    async def log_around(self, run: RunId, offset: int) -> LogPart:
        """Raises RunUnknown, TransportError."""
        view = self.book.find(run)
        agent = await self.of_host(view.host).agent()
        return await log_around(agent, view.run, offset, await self._masker(view.host, view.run))

    async def save_log(self, run: RunId, target: Path) -> int:
        """Raises RunUnknown, StorageError, TransportError."""
        view = self.book.find(run)
        return await save_log(await self.of_host(view.host).agent(), view.run, target)

    async def masker(self, run: RunId) -> Masker:
        """What covers the run's secrets, as far as they are known here. Raises RunUnknown."""
        view = self.book.find(run)
        return await self._masker(view.host, view.run)

    async def _masker(self, host: HostName, run: RunId) -> Masker:
        if run not in self._maskers:
            view = self.book.get(run)
            noted = dict(view.notes).get(NAMES_NOTE, "") if view is not None else ""
            folder = mirror_path(self._parts.home, host, run).parent
            self._maskers[run] = await masker_of(folder, noted)
        return self._maskers[run]
