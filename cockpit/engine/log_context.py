"""The lines around a place of a run's log, from the copy on this computer: bounded, whole lines, secrets covered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cockpit.domain.masking import Masker
from cockpit.domain.text import LineAssembler
from cockpit.engine.api import LogLine

BEFORE_BYTES: Final = 16 * 1024
AFTER_BYTES: Final = 8 * 1024
_NEVER_CAME: Final = b"\0" * 64
"""A part of the copy that was skipped is a hole, which reads as zeros."""


def read_context(
    path: Path, offset: int, before: int, after: int, masker: Masker
) -> tuple[LogLine, ...]:
    """Some lines before, the line that holds `offset`, and some after it; nothing when the copy ends before it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return ()
    try:
        start = max(0, offset - BEFORE_BYTES)
        size = os.fstat(fd).st_size
        if not 0 <= offset < size:
            return ()
        data = os.pread(fd, offset - start + AFTER_BYTES, start)
        is_end = start + len(data) >= size
    except OSError:
        return ()
    finally:
        os.close(fd)
    return _lines(data, start, offset, before, after, masker, is_end)


def _lines(
    data: bytes, start: int, offset: int, before: int, after: int, masker: Masker, is_end: bool
) -> tuple[LogLine, ...]:
    place = offset - start
    first = _first_whole_line(data, start, place)
    last = len(data) if is_end else data.rfind(b"\n") + 1
    if last <= place:
        last = len(data)
    if (hole := data.find(_NEVER_CAME, place)) >= 0:
        last = min(last, hole)
    assembler = LineAssembler(offset=start + first)
    stream = masker.stream()
    shown = stream.feed(data[first:last]) + (stream.finish() if is_end else b"")
    found = assembler.feed(shown) + assembler.finish()
    lines = [LogLine(line.number, line.offset, line.text, line.spans) for line in found]
    return around(lines, offset, before, after)


def _first_whole_line(data: bytes, start: int, place: int) -> int:
    """Where the first line begins that is here from its beginning."""
    first = 0 if start == 0 else data.find(b"\n", 0, place) + 1
    if start and first == 0:
        return place  # one line longer than what was read: half of it could be half a secret
    hole = data.rfind(_NEVER_CAME, first, place)
    if hole < 0:
        return first
    newline = data.find(b"\n", hole, place)
    return place if newline < 0 else newline + 1


def around(lines: Sequence[LogLine], offset: int, before: int, after: int) -> tuple[LogLine, ...]:
    """Of these lines, those around the one that holds `offset`."""
    places = [number for number, line in enumerate(lines) if line.offset <= offset]
    if not places:
        return ()
    marked = places[-1]
    return tuple(lines[max(0, marked - before) : marked + after + 1])
