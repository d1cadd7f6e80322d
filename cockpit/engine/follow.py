"""One run's log, followed to its end: into the mirror first, then to the window, detectors and listeners.

It outlives links and agents: each new agent resumes it from the mirror's size.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from cockpit.domain.incidents import Finding
from cockpit.domain.lines import Line
from cockpit.domain.masking import Masker
from cockpit.domain.models import RunId
from cockpit.domain.progress import ProgressReader
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import Progress
from cockpit.domain.scan import Scanner
from cockpit.engine.agent_frames import Data, End, Hole, TailFrame, Truncated
from cockpit.engine.clock import Clock
from cockpit.engine.log_window import LogWindow
from cockpit.engine.mirror import Mirror

PRELOAD_BYTES = 4 << 20
"""Of a log that is here already, this much is shown and scanned when a follower starts."""
_COUNT_CHUNK = 1 << 20
_SCAN_CHUNK = 256 * 1024


class Tailing(Protocol):
    """The part of an agent that a follower needs."""

    def tail(self, run: RunId, offset: int) -> AsyncIterator[TailFrame]: ...


class FollowListener(Protocol):
    """Who wants to hear of a run's log as it comes. Every method is called on the loop and returns at once."""

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None: ...

    def log_lines(self, lines: list[Line]) -> None: ...

    def finding(self, finding: Finding) -> None: ...

    def progress(self, progress: Progress) -> None: ...


class RunFollower:
    """Follows one run for any number of listeners."""

    def __init__(self, run: RunId, mirror: Mirror, clock: Clock, masker: Masker) -> None:
        self.run = run
        self.mirror = mirror
        self.window = LogWindow()
        self.record: RunRecord | None = None
        """The final record, once every byte before it was taken."""
        self.ended = asyncio.Event()
        self._clock = clock
        self.masker = masker
        self._masked = masker.stream()
        self._scanner = Scanner()
        self._progress = ProgressReader()
        self._listeners: list[FollowListener] = []
        self._preloaded = False

    def listen(self, listener: FollowListener) -> Callable[[], None]:
        """Add a listener; the returned callable takes it off."""
        self._listeners.append(listener)

        def leave() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return leave

    async def follow(self, agent: Tailing) -> RunRecord:
        """Tail from where the mirror ends until the run has ended and all is here. Raises LinkLost, ProtocolError."""
        await self.preload()
        async for frame in agent.tail(self.run, self.mirror.size):
            if isinstance(frame, Data):
                fresh = self.mirror.write(frame.offset, frame.data)
                if fresh:
                    self._take(self.mirror.size - len(fresh), fresh, live=True)
            elif isinstance(frame, Hole):
                self._skip(frame)
            elif isinstance(frame, Truncated):
                self._start_over()
            elif isinstance(frame, End):
                return self.end(frame.record)
        raise asyncio.IncompleteReadError(b"", None)

    async def preload(self) -> None:
        """Show and scan the end of what an earlier session mirrored."""
        if self._preloaded:
            return
        self._preloaded = True
        size = self.mirror.size
        start, number = await self._line_start(max(0, size - PRELOAD_BYTES))
        self.window = LogWindow(offset=start, number=number)
        while start < size:
            piece = self.mirror.read(start, min(_SCAN_CHUNK, size - start))
            if not piece:
                break
            self._take(start, piece, live=False)
            start += len(piece)
            await asyncio.sleep(0)

    def end(self, record: RunRecord) -> RunRecord:
        """The run has ended and its log is here whole."""
        rest = self._masked.finish()
        self._lines(self.window.feed(rest, self._clock.wall_s()) if rest else [])
        self._lines(self.window.end())
        self._findings(self._scanner.finish())
        self.record = record
        self.ended.set()
        return record

    def close(self) -> None:
        self.mirror.close()

    async def _line_start(self, wanted: int) -> tuple[int, int]:
        """Offset of the first line at or after `wanted`, and its number."""
        offset, newlines = 0, 0
        while offset < wanted:
            piece = self.mirror.read(offset, min(_COUNT_CHUNK, wanted - offset))
            if not piece:
                break
            newlines += piece.count(b"\n")
            offset += len(piece)
            await asyncio.sleep(0)
        if offset == 0:
            return 0, 1
        ahead = self.mirror.read(offset, 64 * 1024)
        cut = ahead.find(b"\n")
        return (offset, newlines + 1) if cut < 0 else (offset + cut + 1, newlines + 2)

    def _take(self, offset: int, data: bytes, *, live: bool) -> None:
        for listener in tuple(self._listeners):
            listener.log_bytes(offset, data, live)
        shown = self._masked.feed(data)
        at_s = self._clock.wall_s() if live else None
        self._lines(self.window.feed(shown, at_s))
        self._findings(self._scanner.feed(shown))
        if self._progress.feed(self.window.open_text, at_s):
            self._tell_progress()

    def _lines(self, lines: list[Line]) -> None:
        if not lines:
            return
        changed = False
        for line in lines:
            changed |= self._progress.feed(line.text)
        if changed:
            self._tell_progress()
        for listener in tuple(self._listeners):
            listener.log_lines(lines)

    def _tell_progress(self) -> None:
        for listener in tuple(self._listeners):
            listener.progress(self._progress.progress)

    def _findings(self, findings: list[Finding]) -> None:
        for finding in findings:
            if finding.line is not None:
                self.window.mark(finding.line, finding.severity)
            for listener in tuple(self._listeners):
                listener.finding(finding)

    def _skip(self, hole: Hole) -> None:
        """Bytes that the host no longer has, or that we asked to skip: offsets stay true."""
        self.mirror.skip_to(hole.end)
        self.window.skip_to(hole.end, f"[{hole.end - hole.start:,} bytes are not here: {hole.why}]")

    def _start_over(self) -> None:
        self.mirror.start_over()
        self.window.start_over()
        self._scanner = Scanner()
