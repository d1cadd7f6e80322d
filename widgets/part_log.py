"""A part of a log as the log view shows one: it grows at both ends, by pages, and forgets what is far away."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from cockpit.engine.api import LogLine, LogPart

MOST_LINES = 20_000
FIRST_UNKNOWN = 1 << 40
"""Lines are numbered from here on where nobody counted those before: pages in front take lower numbers."""


class PartLog:
    """A `RunLog` whose lines are those of a few parts that follow each other."""

    ended = True
    open_text = ""

    def __init__(self, part: LogPart) -> None:
        self.version = 0
        self.start, self.end = part.start, part.end
        self.size = part.size
        """Of the whole log, as far as it was told."""
        self._lines: deque[LogLine] = deque()
        self.first_number = 1 if part.start == 0 else FIRST_UNKNOWN
        self._take_behind(part)

    @property
    def is_counted(self) -> bool:
        """Whether the numbers are those of the whole log."""
        return self.first_number < FIRST_UNKNOWN // 2

    def count_from(self, number: int) -> None:
        """The first line has this number in the whole log. To be called before anybody looks at it."""
        self.first_number = number
        self._lines = deque(replace(line, number=at) for at, line in enumerate(self._lines, number))

    @property
    def total_lines(self) -> int:
        return self.first_number + len(self._lines) - 1

    @property
    def total_bytes(self) -> int:
        return self.size

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, position: int) -> LogLine:
        return self._lines[position]

    def close(self) -> None:
        """Nothing is watched."""

    def add(self, part: LogPart, *, older: bool) -> None:
        """The page before, or the one behind. What is then too much at the other end is forgotten."""
        self.size = max(self.size, part.size)
        if older:
            self._take_before(part)
        else:
            self._take_behind(part)
        self.version += 1

    def _take_before(self, part: LogPart) -> None:
        for line in reversed(part.lines):
            self.first_number -= 1
            self._lines.appendleft(replace(line, number=self.first_number))
        self.start = part.start
        while len(self._lines) > MOST_LINES:
            self.end = self._lines.pop().offset

    def _take_behind(self, part: LogPart) -> None:
        for line in part.lines:
            self._lines.append(replace(line, number=self.total_lines + 1))
        self.end = part.end
        while len(self._lines) > MOST_LINES:
            self._lines.popleft()
            self.first_number += 1
            self.start = self._lines[0].offset
