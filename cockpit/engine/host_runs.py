"""The runs of one host: an agent on its link, a list asked for again and again, a follower for each live run.

Followers outlive agents and links; each new agent resumes them where their mirrors end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import FINAL_STATES
from cockpit.engine.agent import RunAgent
from cockpit.engine.backoff import Backoff
from cockpit.engine.bounds import attempt, end, within
from cockpit.engine.clock import Clock
from cockpit.engine.follow import FollowListener, RunFollower
from cockpit.engine.mirror import Mirror, mirror_path
from cockpit.engine.run_book import RunBook
from cockpit.errors import CockpitError, HostUnreachable, LinkLost, ProtocolError
from cockpit.transport.base import HostTransport

log = logging.getLogger(__name__)

BUSY_INTERVAL_S = 2.0
"""Between two lists while a run lives; its end is heard at once from its tail."""
CALM_INTERVAL_S = 15.0
OPEN_LIMIT_S = 60.0
CLOSE_LIMIT_S = 5.0
FOLLOWED_AT_MOST = 32


@dataclass(frozen=True, slots=True)
class RunParts:
    """What the runs of every host share."""

    home: Home
    clock: Clock
    book: RunBook
    make_agent: Callable[[HostSpec, HostTransport], RunAgent]
    listener: Callable[[HostName, RunFollower], FollowListener]
    """Who turns a follower's findings and progress into incidents and states."""
    on_ended: Callable[[HostName, RunRecord], None]
    jitter: Callable[[], float]


class HostRuns:
    """Asks one host about its runs for as long as its link holds, again and again."""

    def __init__(self, spec: HostSpec, parts: RunParts) -> None:
        self.spec = spec
        self.host = spec.name
        self._parts = parts
        self._serving: asyncio.Task[None] | None = None
        self._agent: RunAgent | None = None
        self._failure: CockpitError | None = None
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self._followers: dict[RunId, RunFollower] = {}
        self._following: dict[RunId, asyncio.Task[None]] = {}
        self._maskers: dict[RunId, Masker] = {}
        self.listed = asyncio.Event()
        """Set once the host has answered with its runs."""

    # -- the link ------------------------------------------------------------------------

    def up(self, transport: HostTransport) -> None:
        self._failure = None
        self._serving = asyncio.ensure_future(self._serve(transport))

    def down(self) -> None:
        """The link is gone: every wait on it ends by itself, followers keep what they have."""
        if self._serving is not None:
            self._serving.cancel()
        self._set_agent(None, None)
        self.listed.clear()
        self._parts.book.host_lost(self.host)

    @property
    def failure(self) -> CockpitError | None:
        """Why there is no agent although the link holds; None while it is being started."""
        return self._failure

    async def close(self) -> None:
        tasks = [*self._following.values()]
        if self._serving is not None:
            tasks.append(self._serving)
        await end(*tasks, limit_s=2 * CLOSE_LIMIT_S)
        for follower in self._followers.values():
            follower.close()

    # -- what others may ask -------------------------------------------------------------

    async def agent(self, limit_s: float = OPEN_LIMIT_S) -> RunAgent:
        """The host's agent, as soon as it answers. Raises what starting it raised, or HostUnreachable."""

        async def wait() -> RunAgent:
            while self._agent is None:
                if self._failure is not None:
                    raise self._failure
                self._changed.clear()
                await self._changed.wait()
            return self._agent

        try:
            return await within(limit_s, wait())
        except asyncio.TimeoutError:
            raise HostUnreachable(host=self.host, why="timeout") from None

    def expect(self, run: RunId, masker: Masker) -> None:
        """A run is about to start here: whoever follows it first covers these secrets."""
        self._maskers[run] = masker

    def follower(self, run: RunId) -> RunFollower:
        """The run's follower; made, and put to work as soon as there is an agent, when there is none."""
        follower = self._followers.get(run)
        if follower is None:
            mirror = Mirror(mirror_path(self._parts.home, self.host, run))
            masker = self._maskers.get(run, Masker())
            follower = RunFollower(run, mirror, self._parts.clock, masker)
            follower.listen(self._parts.listener(self.host, follower))
            self._followers[run] = follower
        self._resume()
        return follower

    def refresh(self) -> None:
        """Ask for the list now."""
        self._wake.set()

    # -- the agent -----------------------------------------------------------------------

    async def _serve(self, transport: HostTransport) -> None:
        backoff = Backoff(self._parts.jitter)
        while transport.connected:
            try:
                await self._serve_once(transport)
            except LinkLost as error:
                self._set_agent(None, None if transport.connected else error)
            except CockpitError as error:
                self._set_agent(None, error)
            except Exception as error:
                log.exception("runs of %s", self.host)
                self._set_agent(None, CockpitError(host=self.host, why=type(error).__name__))
            if transport.connected:
                await asyncio.sleep(backoff.next_s())

    async def _serve_once(self, transport: HostTransport) -> None:
        agent = self._parts.make_agent(self.spec, transport)
        try:
            await within(OPEN_LIMIT_S, agent.open())
            self._set_agent(agent, None)
            while True:
                self._wake.clear()
                self._take(await agent.list())
                self._resume()
                await self._pause()
        finally:
            self._set_agent(None, self._failure)
            await attempt(CLOSE_LIMIT_S, agent.close())

    async def _pause(self) -> None:
        busy = any(view.state not in FINAL_STATES for view in self._parts.book.of_host(self.host))
        timer = asyncio.get_running_loop().call_later(
            BUSY_INTERVAL_S if busy else CALM_INTERVAL_S, self._wake.set
        )
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _set_agent(self, agent: RunAgent | None, failure: CockpitError | None) -> None:
        self._agent, self._failure = agent, failure
        self._changed.set()

    def _take(self, records: Iterable[RunRecord]) -> None:
        present = []
        for record in records:
            present.append(record.run)
            self.record(record)
        self._parts.book.forget_missing(self.host, present)
        self.listed.set()

    def record(self, record: RunRecord) -> None:
        """Take what the host says of one run; a live one is followed from now on."""
        view = record.view(self.host)
        self._parts.book.record(view)
        if view.state not in FINAL_STATES and len(self._followers) < FOLLOWED_AT_MOST:
            self.follower(record.run)

    # -- followers -----------------------------------------------------------------------

    def _resume(self) -> None:
        """Put every follower that has no tail, and needs one, on the present agent."""
        if self._agent is None:
            return
        for run, follower in self._followers.items():
            task = self._following.get(run)
            if not follower.ended.is_set() and (task is None or task.done()):
                self._following[run] = asyncio.ensure_future(self._follow(self._agent, follower))

    async def _follow(self, agent: RunAgent, follower: RunFollower) -> None:
        try:
            record = await follower.follow(agent)
        except (LinkLost, ProtocolError, EOFError):
            return  # the next agent resumes it
        except CockpitError as error:
            log.warning("log of %s on %s: %s", follower.run, self.host, error)
            return
        except Exception:
            log.exception("log of %s on %s", follower.run, self.host)
            return
        self._parts.book.record(record.view(self.host))
        self._parts.on_ended(self.host, record)
