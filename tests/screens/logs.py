"""Logs for tests of the log view: numbered lines, and a count of every line that was read."""

from __future__ import annotations

from cockpit.engine.api import LogLine
from tests.screens.fake_engine import FakeLog


class CountingLog(FakeLog):
    """Remembers which lines were read, by number."""

    def __init__(self, count: int = 0) -> None:
        self.read: list[int] = []
        super().__init__([f"line {number}" for number in range(1, count + 1)])

    def line(self, position: int) -> LogLine:
        found = super().line(position)
        self.read.append(found.number)
        return found


def texts(*lines: str) -> FakeLog:
    return FakeLog(list(lines))


def stamped(*times: float | None) -> FakeLog:
    """A log with one line for each time of arrival."""
    return FakeLog(
        [LogLine(n, n * 10, f"line {n}", (), at_s) for n, at_s in enumerate(times, start=1)]
    )
