"""The followers of one host's runs: one for each live run and each that is looked at.

They outlive agents and links; each new agent resumes them where their mirrors end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cockpit.config.paths import Home
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import RunView
from cockpit.engine.bounds import end
from cockpit.engine.clock import Clock
from cockpit.engine.follow import FollowListener, RunFollower
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.mirror import Mirror, mirror_path
from cockpit.engine.skipped_logs import SHARE_OF_ROOM, SkippedLogs
from cockpit.errors import CockpitError, LinkLost, ProtocolError

log = logging.getLogger(__name__)

CLOSE_LIMIT_S = 5.0
DEFAULT_ROOM_BYTES = 4 << 30
UNASKED_AT_MOST = 32
"""Live runs of a host that are followed without being asked for: an agent carries 64 tails."""


@dataclass(frozen=True, slots=True)
class FollowParts:
    """What the followers of every host share."""

    home: Home
    clock: Clock
    listener: Callable[[HostName, RunFollower], FollowListener]
    """Who turns a follower's findings and progress into incidents and states."""
    find_masker: Callable[[HostName, RunId], Awaitable[Masker]]
    on_end: Callable[[HostName, RunRecord], None]
    """A log is here to its end."""
    copy_limit_bytes: int | None = None
    """No copy of one log grows beyond this."""
    keep_up_bytes: int | None = None
    """Rather skip than be further behind. Without it every byte is waited for."""
    on_uncopied: Callable[[HostName, RunId, CockpitError], None] = lambda _host, _run, _error: None
    """A log is watched and no longer copied."""


class Followers:
    def __init__(self, host: HostName, parts: FollowParts) -> None:
        self._host = host
        self._parts = parts
        self._agent: HostAgent | None = None
        self._skipped: SkippedLogs | None = None
        if parts.keep_up_bytes is not None:
            room = (parts.copy_limit_bytes or DEFAULT_ROOM_BYTES) // SHARE_OF_ROOM
            self._skipped = SkippedLogs(lambda: self._followers.values(), room, self._drop_if_done)
        self._loading: asyncio.Task[None] | None = None
        self._followers: dict[RunId, RunFollower] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._followers)

    def get(self, run: RunId) -> RunFollower:
        """The run's follower; made, and put to work as soon as there is an agent, when there is none.

        Raises StorageError.
        """
        follower = self._followers.get(run)
        if follower is None:
            path = mirror_path(self._parts.home, self._host, run)
            mirror = Mirror(
                path,
                self._parts.copy_limit_bytes,
                lambda error: self._parts.on_uncopied(self._host, run, error),
            )
            find_masker = self._parts.find_masker
            follower = RunFollower(
                run,
                mirror,
                self._parts.clock,
                lambda: find_masker(self._host, run),
                self._parts.keep_up_bytes,
            )
            follower.listen(self._parts.listener(self._host, follower))
            self._followers[run] = follower
        self.resume()
        return follower

    def follow_unasked(self, run: RunId) -> None:
        """A run lives: its log is watched even when nobody looks at it."""
        if run not in self._followers and len(self._followers) < UNASKED_AT_MOST:
            try:
                self.get(run)
            except CockpitError as error:
                log.warning("log of %s on %s: %s", run, self._host, error)

    def is_behind(self, view: RunView) -> bool:
        """A copy was begun here, and the log has grown since."""
        path = mirror_path(self._parts.home, self._host, view.run)
        try:
            return path.stat().st_size < (view.log_bytes or 0)
        except OSError:
            return False

    def watch(self, run: RunId) -> RunFollower:
        """As `get`, and kept until `unwatch`. Raises StorageError."""
        follower = self.get(run)
        follower.watchers += 1
        return follower

    def unwatch(self, follower: RunFollower) -> None:
        follower.watchers = max(0, follower.watchers - 1)
        self._drop_if_done(follower)

    def go_on(self, view: RunView) -> None:
        """A run that had ended got another attempt: who looks at its log sees the rest of it too."""
        follower = self._followers.get(view.run)
        if follower is None or follower.record is None:
            return
        if not view.ended or follower.record.attempt < view.attempt:
            follower.go_on()
            self.resume()

    def ended_without_a_log(self, record: RunRecord) -> None:
        """The host has nothing of this run any more: what is here is all that there will be."""
        follower = self._followers.get(record.run)
        if follower is not None and not follower.ended.is_set():
            task = self._tasks.pop(record.run, None)
            if task is not None:
                task.cancel()
            self._take_end(follower.end(record))

    def use(self, agent: HostAgent | None) -> None:
        """The agent that tails from here on; None while there is none."""
        self._agent = agent
        if self._loading is not None:
            self._loading.cancel()
            self._close_later(self._loading)
            self._loading = None
        if agent is not None and self._skipped is not None:
            self._loading = asyncio.ensure_future(self._skipped.load(agent))
        self.resume()

    def resume(self) -> None:
        """Put every follower that has no tail, and needs one, on the present agent."""
        if self._agent is None:
            return
        for run, follower in self._followers.items():
            task = self._tasks.get(run)
            if not follower.ended.is_set() and (task is None or task.done()):
                self._tasks[run] = asyncio.ensure_future(self._follow(self._agent, follower))

    async def close(self) -> None:
        loading = [] if self._loading is None else [self._loading]
        await end(*loading, *self._tasks.values(), *self._closing, limit_s=CLOSE_LIMIT_S)
        await asyncio.gather(*(follower.close() for follower in self._followers.values()))

    async def _follow(self, agent: HostAgent, follower: RunFollower) -> None:
        try:
            record = await follower.follow(agent)
        except (LinkLost, ProtocolError):
            return  # the next agent resumes it
        except CockpitError as error:
            log.warning("log of %s on %s: %s", follower.run, self._host, error)
            follower.fail(error)
        except Exception as error:  # a run's edge: its log is tried again, the others go on
            log.exception("log of %s on %s", follower.run, self._host)
            follower.fail(CockpitError(why=type(error).__name__))
        else:
            self._take_end(record)

    def _take_end(self, record: RunRecord) -> None:
        self._parts.on_end(self._host, record)
        self._drop_if_done(self._followers[record.run])

    def _drop_if_done(self, follower: RunFollower) -> None:
        """An ended run that nobody looks at costs nothing from here on."""
        if not follower.ended.is_set() or follower.watchers:
            return
        if self._loading is not None and self._skipped and self._skipped.is_due(follower):
            return
        if self._followers.get(follower.run) is follower:
            del self._followers[follower.run]
            self._tasks.pop(follower.run, None)
            self._close_later(asyncio.ensure_future(follower.close()))

    def _close_later(self, task: asyncio.Task[None]) -> None:
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
