"""What a person wants of a command that follows a run, by signals: stop the run, or leave it to itself."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Wishes:
    stops: bool = True
    """Whether ctrl+c stops the run; where it does not, it leaves it."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    leave: asyncio.Event = field(default_factory=asyncio.Event)

    def interrupted(self) -> None:
        """The first ctrl+c stops the run, the second one leaves it to its end."""
        if not self.stops or self.stop.is_set():
            self.leave.set()
        self.stop.set()


@contextmanager
def heeded(wishes: Wishes) -> Iterator[None]:
    """Listen to signals: whatever ends this process, but for ctrl+c, leaves the run as it is."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, wishes.interrupted)
    for number in (signal.SIGHUP, signal.SIGTERM):
        loop.add_signal_handler(number, wishes.leave.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            loop.remove_signal_handler(number)
