"""The lines of a run's log that are kept in memory: a bounded ring over the line assembler."""

from __future__ import annotations

from collections import deque
from typing import Literal

from cockpit.domain.lines import Line
from cockpit.domain.text import LineAssembler
from cockpit.domain.units import bytes_text
from cockpit.engine.api import LogLine
from cockpit.i18n import _

KEPT_LINES = 20_000
Severity = Literal["fatal", "warning", "notice"]


class LogWindow:
    """What `RunLog` promises. The tail feeds it; screens read it."""

    def __init__(self, *, offset: int = 0, number: int = 1, kept_lines: int = KEPT_LINES) -> None:
        self._assembler = LineAssembler(offset=offset, number=number)
        self._lines: deque[LogLine] = deque(maxlen=kept_lines)
        self._marks: dict[int, Severity] = {}
        self._version = 0
        self._ended = False

    @property
    def version(self) -> int:
        return self._version

    @property
    def first_number(self) -> int:
        return self._lines[0].number if self._lines else self._assembler.number

    @property
    def total_lines(self) -> int:
        return self._assembler.number - 1

    @property
    def total_bytes(self) -> int:
        return self._assembler.end_offset

    @property
    def open_text(self) -> str:
        return self._assembler.open_text

    @property
    def ended(self) -> bool:
        return self._ended

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, position: int) -> LogLine:
        line = self._lines[position]
        mark = self._marks.get(line.number)
        if mark is None or line.severity is not None:
            return line
        return LogLine(line.number, line.offset, line.text, line.spans, line.at_s, mark)

    def feed(self, data: bytes, at_s: float | None) -> list[Line]:
        """Take the next bytes; returns the lines that they finished."""
        finished = self._assembler.feed(data)
        self._keep(finished, at_s)
        self._version += 1
        return finished

    def mark(self, number: int, severity: Severity) -> None:
        """An incident began on this line."""
        self._marks[number] = severity
        if len(self._marks) > 4096:
            self._marks.pop(next(iter(self._marks)))
        self._version += 1

    def end(self) -> list[Line]:
        """The log will not grow: an unfinished line counts as one."""
        if self._ended:
            return []
        finished = self._assembler.finish()
        self._keep(finished, None)
        self._ended = True
        self._version += 1
        return finished

    def skip_to(self, offset: int, note: str) -> None:
        """What is before `offset` will not come; a line of ours says so, and line numbers go on from here."""
        self._keep(self._assembler.finish(), None)
        number = self._assembler.number
        self._lines.append(
            LogLine(number, self._assembler.open_offset, note, ((0, len(note), "dim"),))
        )
        self._assembler = LineAssembler(offset=offset, number=number + 1)
        self._version += 1

    def start_over(self) -> None:
        """The job truncated its log; what follows starts at offset 0 again."""
        self._assembler = LineAssembler(number=self._assembler.number)
        self._version += 1

    def close(self) -> None:
        """Stop watching; the lines stay readable."""

    def _keep(self, lines: list[Line], at_s: float | None) -> None:
        for line in lines:
            row = LogLine(line.number, line.offset, line.text, line.spans, at_s)
            if line.replaces and line.replaces <= len(self._lines):
                self._lines[-line.replaces] = row
            else:
                self._lines.append(row)


def skip_words(size: int, why: Literal["dropped", "skipped"]) -> str:
    """The line that stands for bytes that are not shown."""
    if why == "skipped":
        words = _("[{size} skipped to keep up; O searches the whole log]")
    else:
        words = _("[{size} are not on the host any more]")
    return words.format(size=bytes_text(size))
