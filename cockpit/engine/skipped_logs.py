"""Loads what was skipped of a host's logs to keep up with them, while nothing new comes from any of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from cockpit.domain.masking import MaskedStream
from cockpit.domain.models import RunId
from cockpit.domain.scan import Scanner
from cockpit.engine.agent_frames import Data
from cockpit.engine.follow import RunFollower
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.read_log import read_log
from cockpit.errors import CockpitError, LinkLost, ProtocolError

log = logging.getLogger(__name__)

KEEP_UP_BYTES: Final = 32 << 20
"""Further behind than this a screen would show the past: all but the last half of it is skipped at first."""
TURN_BYTES: Final = 4 << 20
"""Of one log before the next one has its turn."""
LOOK_EVERY_S: Final = 1.0
SHARE_OF_ROOM: Final = 8
"""A copy is completed up to this part of the room for all copies."""


@dataclass(slots=True)
class _Part:
    """The reading of one skipped part, so that its failures are found late rather than never."""

    at: int
    masked: MaskedStream
    scanner: Scanner = field(init=False)

    def __post_init__(self) -> None:
        self.scanner = Scanner(offset=self.at)


class SkippedLogs:
    def __init__(
        self,
        followers: Callable[[], Iterable[RunFollower]],
        room_bytes: int,
        on_whole: Callable[[RunFollower], None],
    ) -> None:
        self._followers = followers
        self._room = room_bytes
        self._on_whole = on_whole
        self._parts: dict[RunId, _Part] = {}

    def is_due(self, follower: RunFollower) -> bool:
        return follower.mirror.next_skipped(self._room) is not None

    async def load(self, agent: HostAgent) -> None:
        """For as long as this agent lives."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                while await self.turn(agent):
                    pass
            except (LinkLost, ProtocolError):
                return
            except CockpitError as error:
                log.warning("a skipped part of a log: %s", error)

    async def turn(self, agent: HostAgent) -> bool:
        """A piece of each log; False when there is none, or something newer comes."""
        due = [one for one in self._followers() if self.is_due(one)]
        for follower in due:
            if not all(one.is_quiet for one in self._followers()):
                return False
            await self._load_some(agent, follower)
            if not self.is_due(follower):
                self._parts.pop(follower.run, None)
                self._on_whole(follower)
        return bool(due)

    async def _load_some(self, agent: HostAgent, follower: RunFollower) -> None:
        span = follower.mirror.next_skipped(self._room)
        if span is None:
            return
        at, end = span
        stop = min(end, at + TURN_BYTES)
        async with aclosing(read_log(agent, follower.run, at)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Data):
                    data = piece.data[: end - at]
                    self._take(follower, at, data)
                    at += len(data)
                else:
                    follower.mirror.give_up(at, min(piece.end, end))
                    at = min(piece.end, end)
                if at >= stop:
                    return
        if at < end:
            follower.mirror.give_up(at, end)  # its job has cut it

    def _take(self, follower: RunFollower, at: int, data: bytes) -> None:
        part = self._parts.get(follower.run)
        if part is None or part.at != at:
            part = self._parts[follower.run] = _Part(at, follower.masker.stream())
        follower.mirror.fill(at, data)
        part.at += len(data)
        follower.found_later(part.scanner.feed(part.masked.feed(data)))
