"""A limit on a wait that loses neither a cancellation nor a result.

asyncio.wait_for (before Python 3.12) swallows a cancellation that comes in the moment the work is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

END_LIMIT_S = 5.0


async def in_time(limit_s: float, work: Awaitable[T], drop: Callable[[T], None] | None = None) -> T:
    """The result of `work`, or TimeoutError after `limit_s`. `drop` takes a result that comes too late."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        await _end(task, drop)
        raise
    if task.done():
        return task.result()
    await _end(task, drop)
    raise TimeoutError


async def _end(task: asyncio.Future[T], drop: Callable[[T], None] | None) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=END_LIMIT_S)
    if task.done() and not task.cancelled() and task.exception() is None and drop is not None:
        drop(task.result())
