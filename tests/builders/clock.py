"""Time for tests: an event loop whose clock jumps to the next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
START_S = 1_000.0
STUCK_AFTER_S = 10.0


class _JumpingSelector(selectors.DefaultSelector):
    """Polls real descriptors, and turns every wait for a timer into a jump of the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(STUCK_AFTER_S)
            if not ready:
                raise RuntimeError("every task waits for something that no timer will bring")
            return ready
        self.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio on a clock of its own: an hour of back-off passes in microseconds, in the right order.

    Threads, subprocesses and sockets do not know this clock: use it for code without real I/O.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


class FakeClock:
    """What the engine calls `Clock`, read from the virtual loop; `wall_s` starts at a fixed moment."""

    def __init__(self, loop_time: Callable[[], float], wall_offset_s: float = 1_700_000_000.0):
        self._loop_time = loop_time
        self.wall_offset_s = wall_offset_s

    def now_s(self) -> float:
        return self._loop_time()

    def wall_s(self) -> float:
        return self.wall_offset_s + self._loop_time() - START_S


def run_virtual(main: Callable[[FakeClock], Coroutine[Any, Any, Result]]) -> Result:
    """Run `main(clock)` to its end on a virtual loop; a task that it leaves behind is an error."""
    loop = VirtualLoop()
    try:
        result = loop.run_until_complete(main(FakeClock(loop.time)))
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        assert not left, f"left running: {left}"
        return result
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
