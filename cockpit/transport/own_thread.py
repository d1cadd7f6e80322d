"""Blocking calls that may hang (a dead DNS server, an NFS home) each in a thread of their own.

The loop's default executor has a handful of threads: one hanging host would delay all the others.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_own_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`function(...)` off the loop. Cancelling leaves the thread to end by itself; it keeps nobody from exiting."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if answer.cancelled():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(value)  # type: ignore[arg-type]

    def work() -> None:
        value: T | None = None
        failure: BaseException | None = None
        try:
            value = function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting task
            failure = error
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(settle, value, failure)
            except RuntimeError:
                return

    threading.Thread(target=work, name=f"cockpit-{function.__name__}", daemon=True).start()
    return await answer
