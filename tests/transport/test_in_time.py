from __future__ import annotations

import asyncio

import pytest

from cockpit.transport.in_time import in_time


async def test_a_result_in_time_is_passed_on() -> None:
    assert await in_time(5, asyncio.sleep(0, "done")) == "done"


async def test_an_error_in_time_is_passed_on() -> None:
    async def fails() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await in_time(5, fails())


async def test_what_takes_too_long_is_ended() -> None:
    ended = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        await in_time(0.01, slow())
    assert ended.is_set()


async def test_a_cancellation_in_the_moment_of_the_result_is_not_lost() -> None:
    """asyncio.wait_for returns the result here, and the cancelled task goes on."""
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    dropped: list[str] = []
    waiting = asyncio.ensure_future(in_time(5, answer, dropped.append))
    await asyncio.sleep(0)
    answer.set_result("too late")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert dropped == ["too late"]
