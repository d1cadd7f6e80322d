"""Reads a run's local log in order while it grows: its bytes, what is missing, where it begins anew."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from cockpit.engine.mirror import Mirror
from cockpit.engine.mirror_gaps import Why

Note = TypeVar("Note")


@dataclass(frozen=True, slots=True)
class Gap:
    """The bytes before `end` will not come."""

    end: int


@dataclass(frozen=True, slots=True)
class Missing:
    """These bytes are not in the copy; the host may have them."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Restart:
    """What follows is a new log."""


@dataclass(frozen=True, slots=True)
class Bytes:
    data: bytes


class LogCursor(Generic[Note]):
    """Bytes and notes in one order: a note comes after the bytes that were there when it was made."""

    def __init__(self, mirror: Mirror, offset: int = 0) -> None:
        self._mirror = mirror
        self._fd = os.open(mirror.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._position = offset
        self._size = mirror.size
        self._notes: deque[tuple[int, Note | Gap | Missing | Restart]] = deque()
        for start, end in mirror.gaps:
            if end > offset:
                gap, first = mirror.gap_at(start), max(start, offset)
                is_skipped = gap is not None and gap[1] == "skipped"
                self._notes.append((first, Missing(first, end) if is_skipped else Gap(end)))

    def grew(self, size: int) -> None:
        self._size = max(self._size, size)

    def gap(self, start: int, end: int, why: Why = "dropped") -> None:
        if start >= self._size:
            self._notes.append((start, Missing(start, end) if why == "skipped" else Gap(end)))
            self._size = end

    def restarts(self) -> None:
        """The file is about to be put aside; ours stays open until it is read."""
        self._notes.append((self._size, Restart()))
        self._size = 0

    def note(self, note: Note, at: int | None = None) -> None:
        self._notes.append((self._size if at is None else at, note))

    def next(self, limit: int) -> Bytes | Gap | Missing | Restart | Note | None:
        """The next thing in order; None when there is nothing at present."""
        mark = self._notes[0][0] if self._notes else self._size
        if self._position < mark:
            data = os.pread(self._fd, min(limit, mark - self._position), self._position)
            if data:
                self._position += len(data)
                return Bytes(data)
            return self._not_kept(mark)
        return self._take_note() if self._notes else None

    def _not_kept(self, mark: int) -> Gap | Missing:
        """They came when the copy had no room any more."""
        start, self._position = self._position, mark
        is_past = any(isinstance(note, Restart) for _at, note in self._notes)
        return Gap(mark) if is_past else Missing(start, mark)

    def close(self) -> None:
        os.close(self._fd)

    def _take_note(self) -> Gap | Missing | Restart | Note:
        note = self._notes.popleft()[1]
        if isinstance(note, Gap | Missing):
            self._position = note.end
        elif isinstance(note, Restart):
            os.close(self._fd)
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(self._mirror.path, flags)
            self._position = 0
        return note
