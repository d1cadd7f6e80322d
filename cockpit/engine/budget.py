"""[budget] of a run: measured on its host's clock over all of its attempts, told at 80 % and acted upon at 100 %."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cockpit.domain.budget import (
    NEAR_PCT,
    REACHED_PCT,
    Limits,
    Price,
    due_in_s,
    finding_of_budget,
    used_pct,
)
from cockpit.domain.incidents import Finding
from cockpit.domain.models import RunId
from cockpit.domain.runs import RunView
from cockpit.engine.bounds import end
from cockpit.errors import CockpitError

log = logging.getLogger(__name__)

LOOK_AT_LEAST_EVERY_S: Final = 60.0
"""A host's clock may be set, and a laptop may sleep: the time left is measured anew."""
TRY_STOP_AGAIN_S: Final = 15.0
_MARKS: Final = (NEAR_PCT, REACHED_PCT)


@dataclass(frozen=True, slots=True)
class BudgetParts:
    view: Callable[[RunId], RunView | None]
    seconds: Callable[[RunView], float | None]
    """How long its attempts have taken, by its host's clock."""
    report: Callable[[RunView, Finding], None]
    stop: Callable[[RunId], Awaitable[object]]
    step: Callable[[RunId, str, str], None]


class Budgets:
    """One task for each run with a budget, for as long as the run lives."""

    def __init__(self, parts: BudgetParts) -> None:
        self._parts = parts
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._told: dict[RunId, int] = {}
        self._changed: dict[RunId, asyncio.Event] = {}

    def watch(self, run: RunId, limits: Limits, price: Price) -> None:
        task = self._tasks.get(run)
        self._changed.setdefault(run, asyncio.Event()).set()
        if task is None or task.done():
            self._tasks[run] = asyncio.ensure_future(self._watch(run, limits, price))

    def leave(self, run: RunId) -> None:
        if (task := self._tasks.pop(run, None)) is not None:
            task.cancel()

    async def close(self) -> None:
        await end(*self._tasks.values())

    async def _watch(self, run: RunId, limits: Limits, price: Price) -> None:
        while (view := self._parts.view(run)) is not None and not view.ended:
            seconds = self._parts.seconds(view)
            wait_s = LOOK_AT_LEAST_EVERY_S
            if seconds is not None:
                self._tell(view, limits, price, seconds)
                if limits.stops and self._told.get(run, 0) >= REACHED_PCT:
                    await self._stop(run)
                    continue
                waits = [due_in_s(limits, price, seconds, pct) for pct in _MARKS]
                later = [one for one in waits if one]
                wait_s = min([wait_s, *later])
            await self._pause(run, max(0.05, wait_s))

    async def _pause(self, run: RunId, seconds: float) -> None:
        """Until then, or until something about the run changed: it may have begun."""
        changed = self._changed[run]
        changed.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(changed.wait(), seconds)

    def _tell(self, view: RunView, limits: Limits, price: Price, seconds: float) -> None:
        used = used_pct(limits, price, seconds)
        reached = [pct for pct in _MARKS if used is not None and used >= pct]
        if reached and reached[-1] > self._told.get(view.run, 0):
            self._told[view.run] = reached[-1]
            self._parts.report(view, finding_of_budget(limits, price, seconds, reached[-1]))

    async def _stop(self, run: RunId) -> None:
        """The ladder; over a lost link it is tried until it is heard."""
        try:
            self._parts.step(run, "budget_stopping", "")
            await self._parts.stop(run)
        except CockpitError as error:
            log.warning("budget of %s: %s", run, error)
        await asyncio.sleep(TRY_STOP_AGAIN_S)
