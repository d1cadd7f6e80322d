"""Waiting with an end to it: every wait for a host or a task has a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def within(
    limit_s: float, work: Awaitable[Result], *, paused: Callable[[], bool] = lambda: False
) -> Result:
    """The result of `work`, or TimeoutError after `limit_s`; while `paused()` the limit does not run out."""
    task = asyncio.ensure_future(work)
    try:
        while True:
            await asyncio.wait({task}, timeout=limit_s)
            if task.done():
                return task.result()
            if not paused():
                raise asyncio.TimeoutError
    finally:
        await end(task)


async def end(*tasks: asyncio.Future[Any], limit_s: float = 5.0) -> None:
    """Cancel what still runs and wait for it, `limit_s` at most; their outcome is nobody's business any more."""
    running = {task for task in tasks if not task.done()}
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=limit_s)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()


async def attempt(limit_s: float, work: Coroutine[Any, Any, object]) -> None:
    """Do something that may fail or hang without consequence: a farewell, a hint."""
    await end_after(limit_s, asyncio.ensure_future(work))


async def end_after(limit_s: float, task: asyncio.Future[Any]) -> None:
    """Let `task` run for `limit_s`, then cancel it."""
    try:
        await asyncio.wait({task}, timeout=limit_s)
    finally:
        await end(task)
