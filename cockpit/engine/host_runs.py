"""The runs of one host: an agent on its link, and a list asked for again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import FINAL_STATES, RunView
from cockpit.engine.backoff import Backoff
from cockpit.engine.bounds import attempt, end, within
from cockpit.engine.clock import Clock
from cockpit.engine.followers import Followers, FollowParts
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.host_clocks import steady
from cockpit.engine.run_book import RunBook
from cockpit.errors import CockpitError, HostUnreachable, LinkLost, NoPython
from cockpit.transport.base import HostTransport

log = logging.getLogger(__name__)

BUSY_INTERVAL_S = 2.0
"""Between two lists while a run lives; its end is heard at once from its tail."""
CALM_INTERVAL_S = 15.0
OPEN_LIMIT_S = 60.0
MACHINE_NOTE = "machine"
"""With each run: which machine it was started on."""
ANOTHER_MACHINE = "another_machine"
CLOSE_LIMIT_S = 5.0


MakeAgent: TypeAlias = Callable[[HostSpec, HostTransport], HostAgent]


@dataclass(frozen=True, slots=True)
class RunParts:
    """What the runs of every host share."""

    clock: Clock
    book: RunBook
    make_agent: MakeAgent
    follow: FollowParts
    follow_live: bool
    """Whether live runs are followed without being asked for."""
    jitter: Callable[[], float]
    told: Callable[[HostName, RunRecord, RunView], None] = lambda _host, _record, _view: None
    """A host spoke of a run."""
    make_sh_agent: MakeAgent | None = None
    """For a host without Python."""


class HostRuns:
    """Asks one host about its runs for as long as its link holds, again and again."""

    def __init__(self, spec: HostSpec, parts: RunParts) -> None:
        self.spec = spec
        self.host = spec.name
        self.followers = Followers(spec.name, parts.follow)
        self.listed = asyncio.Event()
        """Set while there is a link on which the host has answered with its runs."""
        self._parts = parts
        self._serving: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._agent: HostAgent | None = None
        self._failure: CockpitError | None = None
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self._missed: set[RunId] = set()
        """Known runs that the last list was without."""
        self.machine = ""
        """Which machine answers at the host's address, by its own account; empty while none has."""
        self._ahead_s = 0.0
        self._judged: set[RunId] = set()
        """Ended runs of which it was decided whether their log is news."""

    # -- the link ------------------------------------------------------------------------

    def up(self, spec: HostSpec, transport: HostTransport) -> None:
        self._stop_serving()
        self.spec = spec
        self._failure = None
        self._serving = asyncio.ensure_future(self._serve(transport))

    def down(self) -> None:
        """The link is gone: every wait on it ends by itself, followers keep what they have."""
        self._stop_serving()
        self._set_agent(None, None)
        self.listed.clear()

    def _stop_serving(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            self._leaving.add(self._serving)
            self._serving.add_done_callback(self._leaving.discard)
            self._serving = None

    @property
    def failure(self) -> CockpitError | None:
        """Why there is no agent although the link holds; None while it is being started."""
        return self._failure

    async def close(self) -> None:
        self._stop_serving()
        await self.followers.close()
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=CLOSE_LIMIT_S)

    # -- what others may ask -------------------------------------------------------------

    async def agent(
        self, limit_s: float = OPEN_LIMIT_S, *, after: HostAgent | None = None
    ) -> HostAgent:
        """The host's agent, as soon as it answers; the next one `after` one that is lost.

        Raises what starting it raised, or HostUnreachable.
        """

        async def wait() -> HostAgent:
            while self._agent is None or self._agent is after:
                if self._failure is not None:
                    raise self._failure
                self._changed.clear()
                await self._changed.wait()
            return self._agent

        try:
            return await within(limit_s, wait())
        except asyncio.TimeoutError:
            raise HostUnreachable(host=self.host, why="timeout") from None

    def refresh(self) -> None:
        """Ask for the list now."""
        self._wake.set()

    def record(self, record: RunRecord) -> None:
        """Take what the host says of one run; a live one is followed from now on.

        One that ended while we looked away is followed too, once: its log may say why.
        """
        ahead_s = record.now_s - self._parts.clock.wall_s()
        self._ahead_s = steady(ahead_s, self._ahead_s)
        view = replace(record.view(self.host), ahead_s=self._ahead_s)
        view = self._parts.book.record(view)
        self._parts.told(self.host, record, view)
        if view.host != self.host:
            return
        self.followers.go_on(view)
        if not view.ended:
            self._judged.discard(view.run)
        if not self._parts.follow_live:
            return
        is_news = self.listed.is_set() or self.followers.is_behind(view)
        if not view.ended or (is_news and view.run not in self._judged):
            self.followers.follow_unasked(view.run)
        if view.ended:
            self._judged.add(view.run)

    # -- the agent -----------------------------------------------------------------------

    async def _serve(self, transport: HostTransport) -> None:
        """One agent after the other, for as long as the link holds."""
        backoff = Backoff(self._parts.jitter)
        while transport.connected:
            started_s = self._parts.clock.now_s()
            try:
                await self._serve_once(transport)
            except LinkLost as error:
                self._set_agent(None, error if transport.connected and backoff.failures else None)
            except CockpitError as error:
                self._set_agent(None, error)
            except Exception as error:  # a host's edge: its runs are asked for again, others go on
                log.exception("runs of %s", self.host)
                self._set_agent(None, CockpitError(host=self.host, why=type(error).__name__))
            backoff.ended_after(self._parts.clock.now_s() - started_s)
            if transport.connected:
                await asyncio.sleep(backoff.next_s())

    async def _serve_once(self, transport: HostTransport) -> None:
        """Ends by raising why this agent is of no more use."""
        agent: HostAgent | None = None
        try:
            agent = await within(OPEN_LIMIT_S, self._open(transport))
            self._set_agent(agent, None)
            await self._ask_again_and_again(agent)
        except asyncio.TimeoutError:
            raise HostUnreachable(host=self.host, why="timeout") from None
        finally:
            if agent is not None:
                if self._agent is agent:
                    self._set_agent(None, self._failure)
                await attempt(CLOSE_LIMIT_S, agent.close())

    async def _open(self, transport: HostTransport) -> HostAgent:
        """By the host's Python, else by its sh. An agent that does not open has closed itself."""
        agent = self._parts.make_agent(self.spec, transport)
        try:
            self.machine = (await agent.open()).host_id
        except NoPython:
            if self._parts.make_sh_agent is None:
                raise
            agent = self._parts.make_sh_agent(self.spec, transport)
            self.machine = (await agent.open()).host_id
        return agent

    async def _ask_again_and_again(self, agent: HostAgent) -> None:
        gone = asyncio.ensure_future(agent.closed())
        try:
            while not gone.done():
                self._wake.clear()
                known = {view.run for view in self._parts.book.of_host(self.host)}
                self._take(await agent.list(), known)
                self.followers.resume()
                await self._pause(gone)
            raise gone.result()
        finally:
            await end(gone)

    async def _pause(self, gone: asyncio.Future[CockpitError]) -> None:
        """Until the next list is due, or wanted, or the agent is gone."""
        busy = any(view.state not in FINAL_STATES for view in self._parts.book.of_host(self.host))
        woken = asyncio.ensure_future(self._wake.wait())
        either: set[asyncio.Future[Any]] = {woken, gone}
        interval_s = BUSY_INTERVAL_S if busy else CALM_INTERVAL_S
        try:
            await asyncio.wait(either, timeout=interval_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(woken)

    def _set_agent(self, agent: HostAgent | None, failure: CockpitError | None) -> None:
        self._agent, self._failure = agent, failure
        self.followers.use(agent)
        self._changed.set()

    def _take(self, records: Iterable[RunRecord], known: set[RunId]) -> None:
        """`known` are the runs that we knew before the host was asked: the others may be newer."""
        present = set()
        for record in records:
            present.add(record.run)
            self.record(record)
        missing = known - present
        for view in self._parts.book.of_host(self.host):
            if view.run in missing & self._missed and not view.ended:
                if self._is_of_another_machine(view):
                    self._parts.book.out_of_reach(view.run, ANOTHER_MACHINE)
                else:
                    self._forget(view)
        self._missed = missing
        self.listed.set()

    def _is_of_another_machine(self, view: RunView) -> bool:
        """Rented addresses are used again: what ran there may well go on, somewhere else."""
        noted = dict(view.notes).get(MACHINE_NOTE)
        return bool(noted and self.machine and noted != self.machine)

    def _forget(self, view: RunView) -> None:
        """Two lists in a row were without it: its folder was removed there."""
        record = RunRecord(
            view.run, "lost", self._parts.clock.wall_s(), view.profile, reason="run_dir_gone"
        )
        self._parts.book.lost(view.run, "run_dir_gone")
        self.followers.ended_without_a_log(record)
