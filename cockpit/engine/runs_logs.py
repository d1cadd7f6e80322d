"""The part of the runs that is about their logs: watched, searched, saved, masked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.engine.api import LinePlace, LogHit, LogPart
from cockpit.engine.follow import RunFollower
from cockpit.engine.host_runs import HostRuns
from cockpit.engine.log_part import (
    MARGIN_BYTES,
    CopySource,
    HostSource,
    Where,
    read_part,
    wanted_range,
)
from cockpit.engine.log_search import LineCount, LogSearch, NextAgent, over_lost_links
from cockpit.engine.masks import NAMES_NOTE, masker_of
from cockpit.engine.mirror import mirror_path
from cockpit.engine.run_book import RunBook
from cockpit.engine.save_log import save_log
from cockpit.engine.wiring import EngineParts
from cockpit.errors import TransportError

RECONNECT_S = 30.0
"""A search waits so long for its host to come back."""


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
        is_regex: bool = False,
    ) -> LogHit | None:
        """It goes on after a lost link. Raises RunUnknown, RunError, TransportError."""
        view = self.book.find(run)
        search = LogSearch(
            view.run, text, offset, backward=backward, on_progress=on_progress, is_regex=is_regex
        )
        return await over_lost_links(self._agents(view.host), search.by)

    async def line_place(
        self, run: RunId, number: int, *, on_progress: Callable[[float], None]
    ) -> LinePlace:
        """As `search_log`."""
        view = self.book.find(run)
        return await over_lost_links(
            self._agents(view.host), LineCount(view.run, number, on_progress).by
        )

    def _agents(self, host: HostName) -> NextAgent:
        return lambda lost: self.of_host(host).agent(RECONNECT_S, after=lost)

    async def log_around(self, run: RunId, offset: int) -> LogPart:
        """Raises RunUnknown, TransportError."""
        return await self._part(run, offset, "around")

    async def log_page(self, run: RunId, offset: int, *, older: bool) -> LogPart:
        """Raises RunUnknown, TransportError."""
        return await self._part(run, offset, "older" if older else "newer")

    async def _part(self, run: RunId, offset: int, where: Where) -> LogPart:
        """From the copy here where it has all of that, else from the host; what we have, if there is no way to it."""
        view = self.book.find(run)
        masker = await self._masker(view.host, view.run)
        copy = await asyncio.to_thread(self._copy, view.host, view.run)
        start, end = wanted_range(offset, where)
        if copy is not None and copy.holds(max(0, start - MARGIN_BYTES), end + MARGIN_BYTES):
            return await read_part(copy, offset, where, masker)
        try:
            return await over_lost_links(
                self._agents(view.host),
                lambda agent: read_part(HostSource(agent, view.run), offset, where, masker),
            )
        except TransportError:
            if copy is None or not copy.size:
                raise
            return await read_part(copy, min(offset, copy.size), where, masker)

    def _copy(self, host: HostName, run: RunId) -> CopySource | None:
        try:
            return CopySource(mirror_path(self._parts.home, host, run))
        except OSError:
            return None

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
