"""What a copy of a log does not hold: parts that the host dropped, and parts that were skipped to keep up.

The note beside the copy only grows, a line for each event, so that two programs may write to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

Why: TypeAlias = Literal["dropped", "skipped"]
Span: TypeAlias = tuple[int, int]
"""Offsets of the first byte and of the one after the last."""

_KINDS: dict[str, Why] = {"dropped": "dropped", "skipped": "skipped"}
_MAX_NOTE_BYTES = 4 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Gaps:
    """Raises OSError where the note cannot be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._gaps: list[tuple[int, int, Why]] = []
        for start, end, word in _read(path):
            if word == "loaded":
                self._take_out(start, end)
            elif word in _KINDS:
                self._put_in(start, end, _KINDS[word])

    def spans(self, why: Why | None = None) -> tuple[Span, ...]:
        return tuple((start, end) for start, end, kind in self._gaps if why in (None, kind))

    def at(self, offset: int) -> tuple[int, Why] | None:
        """The end and the kind of the gap in which the byte at `offset` is."""
        return next((gap[1:] for gap in self._gaps if gap[0] <= offset < gap[1]), None)

    def add(self, start: int, end: int, why: Why) -> None:
        self._note(start, end, why)
        self._put_in(start, end, why)

    def loaded(self, start: int, end: int) -> None:
        """This part is here after all."""
        self._note(start, end, "loaded")
        self._take_out(start, end)

    def end_at(self, size: int) -> None:
        """A gap was noted, and the copy did not grow over it any more: what is behind `size` will come yet."""
        for start, end in self.spans():
            if end > size:
                self.loaded(max(start, size), end)

    def forget(self) -> None:
        self._gaps.clear()
        self._path.unlink(missing_ok=True)

    def _put_in(self, start: int, end: int, why: Why) -> None:
        for gap in self._gaps:
            if gap[1] == start and gap[2] == why:
                self._gaps.remove(gap)
                start = gap[0]
                break
        self._gaps.append((start, end, why))
        self._gaps.sort()

    def _take_out(self, start: int, end: int) -> None:
        left: list[tuple[int, int, Why]] = []
        for first, last, why in self._gaps:
            parts = ((first, min(last, start)), (max(first, end), last))
            left += [(a, b, why) for a, b in parts if a < b]
        self._gaps = left

    def _note(self, start: int, end: int, word: str) -> None:
        fd = os.open(self._path, _FLAGS, 0o600)
        try:
            os.write(fd, f"\n{start} {end} {word}\n".encode())  # behind a note that a full disk cut
        finally:
            os.close(fd)


def _read(path: Path) -> list[tuple[int, int, str]]:
    try:
        with path.open("rb") as file:
            lines = file.read(_MAX_NOTE_BYTES).decode("ascii", "replace").splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        start, end, word = (*line.split(" "), "", "", "")[:3]
        if start.isdecimal() and end.isdecimal() and int(start) < int(end):
            found.append((int(start), int(end), word))
    return found
