"""How a run's code and results get on, while they do: on stderr, whatever is printed beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Literal

from cockpit.domain.models import RunId
from cockpit.engine.bounds import end
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event, LaunchStep
from cockpit.headless.run_report import TALK_EVERY_S, RunReport, words_for
from cockpit.headless.session import runs_of
from cockpit.headless.wishes import Wishes

PROGRESS = frozenset({"code_sending", "fetching"})
TOLD = PROGRESS | {"code_sent", "fetched", "fetched_nothing", "fetch_failed"}
"""Steps that are told here, and by nobody else."""


@asynccontextmanager
async def steps_told(engine: Engine, report: RunReport) -> AsyncIterator[None]:
    """For as long as something is sent or fetched."""
    steps: asyncio.Queue[LaunchStep | None] = asyncio.Queue()

    def heard(event: Event) -> None:
        if isinstance(event, LaunchStep) and event.code in TOLD:
            steps.put_nowait(event)

    unsubscribe = engine.subscribe(heard)
    telling = asyncio.ensure_future(_tell(steps, engine, report))
    try:
        yield
    finally:
        unsubscribe()
        steps.put_nowait(None)
        try:
            await asyncio.wait({telling}, timeout=TALK_EVERY_S)
        finally:
            await end(telling)


async def _tell(steps: asyncio.Queue[LaunchStep | None], engine: Engine, report: RunReport) -> None:
    told_s: float | None = None
    while (step := await steps.get()) is not None:
        now_s = engine.now_s()
        if step.code in PROGRESS:
            if told_s is not None and now_s - told_s < TALK_EVERY_S:
                continue
            told_s = now_s
        await report.say(words_for(step.code, {"text": step.text}))


async def start_unless_stopped(
    engine: Engine, work: Coroutine[Any, Any, object], wishes: Wishes
) -> Literal["started", "left", "dropped"]:
    """As `or_leave`; while code is on its way nothing runs, so that one ctrl+c drops it all."""
    asked = asyncio.Event()

    def heard(event: Event) -> None:
        if isinstance(event, LaunchStep) and event.code == "launch_sending":
            asked.set()

    async def stopped_before() -> None:
        await wishes.stop.wait()
        if asked.is_set():
            await asyncio.Event().wait()

    unsubscribe = engine.subscribe(heard)
    task, left = asyncio.ensure_future(work), asyncio.ensure_future(wishes.leave.wait())
    stopped = asyncio.ensure_future(stopped_before())
    either: set[asyncio.Future[Any]] = {task, left, stopped}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return "started"
        return "dropped" if not asked.is_set() else "left"
    finally:
        unsubscribe()
        await end(*either)


async def fetch_results(engine: Engine, run: RunId, report: RunReport, wishes: Wishes) -> None:
    """Bring what the run's profile asks for, and wait for it; ctrl+c leaves it for the next time."""
    fetcher, view = runs_of(engine).fetcher, engine.runs.get(run)
    if view is None or not view.ended or wishes.leave.is_set():
        return
    async with steps_told(engine, report):
        if not fetcher.begin(view):
            return
        waits: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(work)
            for work in (fetcher.settled(run), wishes.leave.wait(), _next(wishes.stop))
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(*waits)


async def _next(event: asyncio.Event) -> None:
    """A ctrl+c that comes from here on: the one that stopped the run is over."""
    if event.is_set():
        event.clear()
    await event.wait()
