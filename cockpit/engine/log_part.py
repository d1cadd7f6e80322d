"""A part of a run's log as lines: around a byte, or the page before or behind the lines that one has.

More is read than is shown, so that a secret that lies across an edge is covered whole.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from cockpit.domain.masking import Masker
from cockpit.domain.models import RunId
from cockpit.domain.text import safe_line
from cockpit.engine.agent_replies import LogBytes
from cockpit.engine.api import LogPart
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.log_window import LogWindow, skip_words
from cockpit.engine.mirror_gaps import Gaps, Why

AROUND_BYTES: Final = 48 * 1024
PAGE_BYTES: Final = 64 * 1024
MARGIN_BYTES: Final = 16 * 1024
"""Read beyond both edges: no secret is longer."""
EXCERPT_BYTES: Final = 160

Where: TypeAlias = Literal["around", "older", "newer"]
Gap: TypeAlias = tuple[int, int, Why]


class LogSource(Protocol):
    """Where bytes of a log can be had."""

    async def gaps(self) -> Sequence[Gap]:
        """What it does not hold, and why."""

    async def read(self, offset: int, length: int) -> LogBytes: ...


class HostSource:
    """The log on its host."""

    def __init__(self, agent: HostAgent, run: RunId) -> None:
        self._agent = agent
        self._run = run

    async def gaps(self) -> Sequence[Gap]:
        hole = (await self._agent.status(self._run)).log_hole
        return () if hole is None else ((*hole, "dropped"),)

    async def read(self, offset: int, length: int) -> LogBytes:
        return await self._agent.read(self._run, offset, length)


class CopySource:
    """The copy on this computer, as it is now. Raises FileNotFoundError when there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size
        told = Gaps(path.with_name("gaps"))
        kinds: tuple[Why, ...] = ("dropped", "skipped")
        gaps = [(*span, why) for why in kinds for span in told.spans(why)]
        self._gaps = tuple(sorted(gap for gap in gaps if gap[0] < self.size))

    def holds(self, start: int, end: int) -> bool:
        """All of this, so that the host need not be asked."""
        is_cut = any(first < end and start < last for first, last, _why in self._gaps)
        return end <= self.size and not is_cut

    async def gaps(self) -> Sequence[Gap]:
        return self._gaps

    async def read(self, offset: int, length: int) -> LogBytes:
        return await asyncio.to_thread(self._read, offset, length)

    def _read(self, offset: int, length: int) -> LogBytes:
        fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            data = os.pread(fd, max(0, min(length, self.size - offset)), offset)
        finally:
            os.close(fd)
        return LogBytes(offset, data, self.size)


@dataclass(frozen=True, slots=True)
class _Range:
    """Bytes without a gap: [start, end) is wanted, [low, high) may be read."""

    start: int
    end: int
    low: int
    high: int


def wanted_range(offset: int, where: Where) -> tuple[int, int]:
    if where == "older":
        return max(0, offset - PAGE_BYTES), offset
    if where == "newer":
        return offset, offset + PAGE_BYTES
    start = max(0, offset - AROUND_BYTES // 2)
    return start, start + AROUND_BYTES


async def read_part(source: LogSource, offset: int, where: Where, masker: Masker) -> LogPart:
    """Whole lines, as far as they are not longer than what is read. Raises RunUnknown, TransportError.

    A gap is a part of its own, with one line that says so. `older` and `newer` begin where a part ended.
    """
    gaps = await source.gaps()
    if where == "around":
        size = (await source.read(0, 0)).size
        offset = max(0, min(offset, size - 1))
    pivot = offset - (where == "older")
    for gap in gaps:
        if gap[0] <= pivot < gap[1]:
            return await _gap_part(source, *gap)
    start, end = wanted_range(offset, where)
    low = max((gap[1] for gap in gaps if gap[1] <= pivot), default=0)
    high = min((gap[0] for gap in gaps if gap[0] > pivot), default=1 << 62)
    return await _lines_part(
        source, _Range(max(start, low), min(end, high), low, high), pivot, masker
    )


async def _gap_part(source: LogSource, first: int, last: int, why: Why) -> LogPart:
    size = (await source.read(0, 0)).size
    window = LogWindow(offset=first)
    window.skip_to(last, skip_words(last - first, why))
    return LogPart((window.line(0),), size, start=first, end=last)


async def _lines_part(source: LogSource, wanted: _Range, pivot: int, masker: Masker) -> LogPart:
    low = max(wanted.low, wanted.start - MARGIN_BYTES)
    high = min(wanted.high, wanted.end + MARGIN_BYTES)
    read = await source.read(low, max(0, high - low))
    stream = masker.stream()
    shown = stream.feed(read.data) + stream.finish()
    start = _first_line(shown, wanted, low, pivot)
    end = _last_line(shown, wanted, low, pivot, read.size)
    window = LogWindow(offset=start, number=1, kept_lines=PAGE_BYTES)
    window.feed(shown[start - low : end - low], None)
    window.end()
    lines = tuple(window.line(place) for place in range(len(window)))
    return LogPart(lines, read.size, _excerpt(shown, pivot - low), start, end)


def _first_line(shown: bytes, wanted: _Range, low: int, pivot: int) -> int:
    """The beginning of the first whole line, or of what is read when there is none before the pivot."""
    if wanted.start in (0, wanted.low, pivot):
        return wanted.start
    newline = shown.find(b"\n", wanted.start - 1 - low, pivot - low)
    return wanted.start if newline < 0 else low + newline + 1


def _last_line(shown: bytes, wanted: _Range, low: int, pivot: int, size: int) -> int:
    """Behind the last newline, unless the log or a gap comes next, or one line is longer than what is read."""
    end = min(wanted.end, low + len(shown))
    if end in (size, wanted.high, pivot + 1):
        return end
    newline = shown.rfind(b"\n", pivot - low, end - low)
    return end if newline < 0 else low + newline + 1


def _excerpt(shown: bytes, here: int) -> str:
    """The words around the place itself: a progress bar's later state may have taken its line."""
    left = max(
        0, here - EXCERPT_BYTES, shown.rfind(b"\n", 0, here) + 1, shown.rfind(b"\r", 0, here) + 1
    )
    text = shown[left : here + EXCERPT_BYTES]
    for end in (b"\n", b"\r"):
        at = text.find(end, here - left)
        text = text[:at] if at >= 0 else text
    return safe_line(text)
