"""Looking through a run's whole log where it lies: for a text, and for one of its lines by its number.

The host goes through it in short requests, so that each can be cancelled, and asked again after a lost link.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import Json
from cockpit.engine.api import LinePlace, LogHit
from cockpit.engine.host_agent import HostAgent
from cockpit.errors import LinkLost, ProtocolError, RunError

MOST_ROUNDS: Final = 100_000
STUCK_ROUNDS: Final = 30
"""Without getting on, while it is not said that others are before us."""

OnProgress: TypeAlias = Callable[[float], None]
"""Told the share of the log that was looked through."""
NextAgent: TypeAlias = Callable[[HostAgent | None], Awaitable[HostAgent]]
"""The agent that comes after one that is lost. Raises what keeps us from the host."""
Found = TypeVar("Found")


class LogWork:
    """Knows how far it has come, whoever is asked next."""

    def __init__(self, run: RunId, offset: int, on_progress: OnProgress) -> None:
        self.run = run
        self.offset = offset
        self.on_progress = on_progress

    def fields(self) -> Mapping[str, Json]:
        raise NotImplementedError

    def is_on(self, at: int) -> bool:
        """Whether this place is nearer to the end of the work."""
        return at > self.offset

    def share(self, at: int, size: int) -> float:
        return at / size if size else 1.0

    async def rounds(self, agent: HostAgent) -> tuple[dict[str, object], int]:
        """Ask until there is an answer; that, and the size of the log."""
        stuck = 0
        for _round in range(MOST_ROUNDS):
            told = await agent.search({"run": self.run, "offset": self.offset, **self.fields()})
            at, size = place_in(told, "at"), place_in(told, "size")
            if at is None or size is None:
                raise ProtocolError(run=self.run, why="search")
            self.note(told)
            if "hit" in told or told.get("through") is True:
                return told, size
            stuck = 0 if self.is_on(at) else stuck + (told.get("waits") is not True)
            if stuck > STUCK_ROUNDS:
                break
            if self.is_on(at):
                self.offset = at
                self.on_progress(self.share(at, size))
        raise ProtocolError(run=self.run, why="search")

    def note(self, told: Mapping[str, object]) -> None:
        """What an answer says beside the place."""


class LogSearch(LogWork):
    """The nearest place of a text before or behind a byte. Lower case finds any case."""

    def __init__(
        self,
        run: RunId,
        text: str,
        offset: int,
        *,
        backward: bool,
        on_progress: OnProgress,
        is_regex: bool = False,
    ) -> None:
        """Raises RunError for a regular expression with a mistake."""
        super().__init__(run, offset, on_progress)
        self._text = text
        self._backward = backward
        self._is_regex = is_regex
        if is_regex:
            check_pattern(run, text)

    def fields(self) -> Mapping[str, Json]:
        return {
            "text": self._text,
            "backward": self._backward,
            "regex": self._is_regex,
            "ignore_case": self._text == self._text.lower(),
        }

    def is_on(self, at: int) -> bool:
        return at < self.offset if self._backward else at > self.offset

    def share(self, at: int, size: int) -> float:
        return 1 - super().share(at, size) if self._backward else super().share(at, size)

    async def by(self, agent: HostAgent) -> LogHit | None:
        """None when there is none. Raises RunUnknown, RunError, TransportError."""
        told, size = await self.rounds(agent)
        if "hit" not in told:
            return None
        hit = place_in(told, "hit")
        if hit is None:
            raise ProtocolError(run=self.run, why="search")
        return LogHit(hit, size)


class LineCount(LogWork):
    """Where a line begins, by its number from 1."""

    def __init__(self, run: RunId, number: int, on_progress: OnProgress) -> None:
        super().__init__(run, 0, on_progress)
        self._left = max(0, number - 1)
        self._passed = 0

    def fields(self) -> Mapping[str, Json]:
        return {"lines": self._left}

    def note(self, told: Mapping[str, object]) -> None:
        left, passed = place_in(told, "left"), place_in(told, "passed")
        if left is None or passed is None or left > self._left:
            raise ProtocolError(run=self.run, why="lines")
        self._left, self._passed = left, self._passed + passed

    async def by(self, agent: HostAgent) -> LinePlace:
        """The last place of a log that has fewer lines. Raises RunUnknown, RunError, TransportError."""
        told, size = await self.rounds(agent)
        at = place_in(told, "hit" if "hit" in told else "at")
        if at is None:
            raise ProtocolError(run=self.run, why="lines")
        return LinePlace(at, size, missing=self._left, uncounted_bytes=self._passed)


def check_pattern(run: RunId, text: str) -> None:
    """What our own Python does not understand, the host's will not either."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise RunError("bad_pattern", run=run, detail=str(error)[:200]) from error


async def over_lost_links(
    next_agent: NextAgent, work: Callable[[HostAgent], Awaitable[Found]]
) -> Found:
    """Go on with the next agent where the last one was lost."""
    agent: HostAgent | None = None
    while True:
        agent = await next_agent(agent)
        try:
            return await work(agent)
        except LinkLost:
            continue


async def search_log(
    agent: HostAgent,
    run: RunId,
    text: str,
    offset: int,
    *,
    backward: bool,
    on_progress: OnProgress,
    is_regex: bool = False,
) -> LogHit | None:
    """By one agent. Raises RunUnknown, RunError, TransportError."""
    search = LogSearch(
        run, text, offset, backward=backward, on_progress=on_progress, is_regex=is_regex
    )
    return await search.by(agent)


def place_in(told: Mapping[str, object], key: str) -> int | None:
    value = told.get(key)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and 0 <= value < 1 << 62 else None
