"""Logs that a host's sh is asked about together: one question for all tails that are at their end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cockpit.domain.models import RunId
from cockpit.engine.bounds import end
from cockpit.errors import CockpitError

QUICK_S: Final = 0.1
CALM_S: Final = 1.0
SLOWER: Final = 1.3
"""Each look that finds nothing new makes the next one wait longer: a look costs the host a process."""


@dataclass(frozen=True, slots=True)
class LogState:
    size: int | None
    ended: bool
    """An end is recorded."""


@dataclass(frozen=True, slots=True)
class _Waiter:
    run: RunId
    size: int
    woken: asyncio.Future[None]


class Growth:
    """Wakes whoever waits for a log to change."""

    def __init__(
        self, ask: Callable[[Sequence[RunId]], Awaitable[Mapping[RunId, LogState]]]
    ) -> None:
        self._ask = ask
        self._waiters: list[_Waiter] = []
        self._looking: asyncio.Task[None] | None = None

    async def changed(self, run: RunId, size: int, limit_s: float) -> None:
        """Return when the log is not `size` bytes long any more, its end is recorded, or after `limit_s`."""
        waiter = _Waiter(run, size, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            await asyncio.wait({waiter.woken}, timeout=limit_s)
        finally:
            self._waiters.remove(waiter)

    async def close(self) -> None:
        if self._looking is not None:
            await end(self._looking)

    async def _look(self) -> None:
        pause_s = QUICK_S
        while self._waiters:
            await asyncio.sleep(pause_s)
            try:
                states = await self._ask(sorted({waiter.run for waiter in self._waiters}))
            except CockpitError:
                states = {}
                pause_s = CALM_S
            changed = [waiter for waiter in self._waiters if _is_news(waiter, states)]
            for waiter in changed:
                if not waiter.woken.done():
                    waiter.woken.set_result(None)
            pause_s = QUICK_S if changed else min(CALM_S, pause_s * SLOWER)


def _is_news(waiter: _Waiter, states: Mapping[RunId, LogState]) -> bool:
    state = states.get(waiter.run)
    return state is None or state.ended or state.size != waiter.size
