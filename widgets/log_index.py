"""Which lines of a log are shown, and which match: found a slice at a time, never all at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cockpit.engine.api import RunLog
from cockpit.widgets.log_search import Blocks, Level, Pattern

SLICE_LINES = 8000
"""Lines looked at between two frames: well above what a host can send in that time."""
_EVICTED_SLACK = 4096


class Lines(Protocol):
    """Line numbers in rising order, as a list would hold them."""

    def __len__(self) -> int: ...

    def at(self, place: int) -> int: ...

    def place_of(self, number: int) -> int:
        """Place of the first line whose number is not below `number`."""


@dataclass(slots=True)
class AllLines:
    """Every line kept, and one more for the unterminated last one. Reads nothing to say so."""

    log: RunLog

    def __len__(self) -> int:
        return len(self.log) + bool(self.log.open_text)

    def at(self, place: int) -> int:
        return self.log.first_number + place

    def place_of(self, number: int) -> int:
        return min(max(0, number - self.log.first_number), len(self))


class Found:
    """Numbers of lines that were found, growing with the log and shrinking with what it drops."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._numbers: list[int] = []
        self._next = log.first_number

    @property
    def numbers(self) -> Sequence[int]:
        return self._numbers

    @property
    def complete(self) -> bool:
        return self._next > self._log.total_lines

    def advance(self, budget: int = SLICE_LINES) -> bool:
        """Look at the next lines, at most `budget`; True when something was found or dropped."""
        log = self._log
        dropped = self._drop_before(log.first_number)
        self._next = max(self._next, log.first_number)
        before = len(self._numbers)
        base = log.first_number
        for number in range(self._next, min(log.total_lines + 1, self._next + budget)):
            self._look(number, number - base)
            self._next = number + 1
        return dropped or len(self._numbers) != before

    def _look(self, number: int, position: int) -> None:
        raise NotImplementedError

    def _drop_before(self, first: int) -> bool:
        if not self._numbers or self._numbers[0] >= first:
            return False
        gone = bisect_left(self._numbers, first)
        if gone < _EVICTED_SLACK and gone < len(self._numbers):
            return False
        del self._numbers[:gone]
        return True

    def first_kept(self) -> int:
        return bisect_left(self._numbers, self._log.first_number)


class Hits(Found):
    """Lines that match a search."""

    def __init__(self, log: RunLog, pattern: Pattern) -> None:
        super().__init__(log)
        self.pattern = pattern

    def _look(self, number: int, position: int) -> None:
        if self.pattern.matches(self._log.line(position).text):
            self._numbers.append(number)

    def after(self, number: int) -> int | None:
        """The next hit below line `number`."""
        place = bisect_right(self._numbers, number)
        return self._numbers[place] if place < len(self._numbers) else None

    def before(self, number: int) -> int | None:
        place = bisect_left(self._numbers, number) - 1
        return self._numbers[place] if place >= self.first_kept() else None

    def rank(self, number: int) -> int | None:
        """Which hit line `number` is, from 1; None when it is none."""
        place = bisect_left(self._numbers, number)
        if place < len(self._numbers) and self._numbers[place] == number:
            return place - self.first_kept() + 1
        return None

    def __len__(self) -> int:
        return len(self._numbers) - self.first_kept()


class FilteredLines(Found):
    """Lines at or above a level that match a pattern, whole messages, with some lines around them."""

    _BLOCK_LIMIT = 400

    def __init__(
        self, log: RunLog, floor: Level, pattern: Pattern | None, context: int = 0
    ) -> None:
        super().__init__(log)
        self._floor = floor
        self._pattern = pattern
        self._context = context
        self._blocks = Blocks()
        self._wanted_block = 0
        self._wanted_until = 0

    def _look(self, number: int, position: int) -> None:
        line = self._log.line(position)
        blocks = self._blocks
        blocks.take(line)
        hit = blocks.level >= self._floor and (
            self._pattern is None or self._pattern.matches(line.text)
        )
        if hit:
            self._wanted_block = blocks.start
            self._wanted_until = number + self._context
            self._take_before(number, min(blocks.start, number - self._context))
        elif blocks.start == self._wanted_block or number <= self._wanted_until:
            self._numbers.append(number)

    def _take_before(self, number: int, start: int) -> None:
        """The message up to `number`, as far as it is not there yet."""
        last = self._numbers[-1] if self._numbers else 0
        start = max(start, last + 1, number - self._BLOCK_LIMIT, self._log.first_number)
        self._numbers.extend(range(start, number + 1))

    def __len__(self) -> int:
        return len(self._numbers) - self.first_kept() + bool(self._log.open_text)

    def at(self, place: int) -> int:
        place += self.first_kept()
        return self._numbers[place] if place < len(self._numbers) else self._log.total_lines + 1

    def place_of(self, number: int) -> int:
        if number > self._log.total_lines:
            return max(0, len(self) - bool(self._log.open_text))
        return max(0, bisect_left(self._numbers, number) - self.first_kept())
