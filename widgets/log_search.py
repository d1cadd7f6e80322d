"""What a log line is asked: does it match, how bad is it, does it belong to the line before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from cockpit.engine.api import LogLine


class Level(IntEnum):
    """How bad a line says it is, by its words."""

    ALL = 0
    WARNING = 1
    ERROR = 2

    @property
    def next_floor(self) -> Level:
        return Level((self + 1) % 3)


_ERROR = re.compile(r"\b(?:ERROR|CRITICAL|FATAL|Traceback)\b|\b[A-Za-z.]*(?:Error|Exception): ")
_WARNING = re.compile(r"\bWARN(?:ING)?\b|\b[A-Za-z]*Warning: ")
_RANK = re.compile(r"^(?:\[rank\d+\]:|\[default\d+\]:|\(\w+ pid=\d+\)) ?")


def level_of(text: str) -> Level:
    if _ERROR.search(text):
        return Level.ERROR
    return Level.WARNING if _WARNING.search(text) else Level.ALL


@dataclass(frozen=True, slots=True)
class Pattern:
    """What was typed after `/` or `&`: plain text, or a regular expression after `~`.

    Lower case finds any case; one capital makes it exact.
    """

    typed: str
    _regex: re.Pattern[str]

    @classmethod
    def parse(cls, typed: str) -> Pattern | None:
        """None for nothing. Raises re.error for a regular expression with a mistake."""
        body = typed[1:] if typed.startswith("~") else re.escape(typed)
        if not body:
            return None
        flags = re.IGNORECASE if typed == typed.lower() else re.NOFLAG
        return cls(typed, re.compile(body, flags))

    def matches(self, text: str) -> bool:
        return self._regex.search(text) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        for hit in self._regex.finditer(text):
            if hit.end() > hit.start():
                yield hit.span()


class Blocks:
    """Follows the messages of a log: a traceback and the indented lines after a line are one message."""

    def __init__(self) -> None:
        self.start = 0
        self.level = Level.ALL
        self._in_traceback = False

    def take(self, line: LogLine) -> None:
        """Look at the next line; `start` and `level` are then of the message it belongs to."""
        text = _RANK.sub("", line.text)
        indented = text[:1] in (" ", "\t", "")
        continues = self.start > 0 and (indented or self._in_traceback)
        own = level_of(text)
        if continues:
            self.level = max(self.level, own)
        else:
            self.start, self.level = line.number, own
        if text.startswith("Traceback (most recent call last)"):
            self._in_traceback = True
        elif not indented:
            self._in_traceback = False
