"""One run's log, followed to its end: into the mirror first, then to the window, detectors and listeners.

It outlives links and agents: each new agent resumes it from the mirror's size.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Literal, Protocol

from cockpit.domain.incidents import Finding
from cockpit.domain.lines import Line
from cockpit.domain.masking import Masker
from cockpit.domain.models import RunId
from cockpit.domain.progress import ProgressReader, telling
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import Progress
from cockpit.domain.scan import Scanner
from cockpit.engine.agent_frames import Data, End, Hole, TailFrame, Truncated
from cockpit.engine.bounds import end as end_tasks
from cockpit.engine.clock import Clock
from cockpit.engine.log_window import LogWindow, skip_words
from cockpit.engine.mirror import Mirror
from cockpit.errors import CockpitError, LinkLost

PRELOAD_BYTES = 4 << 20
"""Of a log that is here already, this much is shown and scanned when a follower starts."""
QUIET_S = 0.5
"""Without a byte for so long, an unfinished line is judged as it stands."""
_COUNT_CHUNK = 1 << 20
_SCAN_CHUNK = 256 * 1024

FindMasker = Callable[[], Awaitable[Masker]]


class Tailing(Protocol):
    """The part of an agent that a follower needs."""

    def tail(
        self, run: RunId, offset: int, *, keep_up_bytes: int | None = None
    ) -> AsyncIterator[TailFrame]: ...


class FollowListener(Protocol):
    """Who wants to hear of a run's log as it comes. Every method is called on the loop and returns at once."""

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None:
        """The mirror has them."""

    def log_lines(self, lines: list[Line]) -> None: ...

    def log_gap(self, start: int, end: int, why: Literal["dropped", "skipped"]) -> None:
        """These bytes will not come."""

    def log_restarts(self) -> None:
        """The job cut its log to nothing; the mirror is about to begin anew too."""

    def finding(self, finding: Finding) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def failed(self, error: CockpitError) -> None:
        """Following stopped for a reason of ours, such as a full disk; it may go on later."""


class RunFollower:
    """Follows one run for any number of listeners."""

    def __init__(
        self,
        run: RunId,
        mirror: Mirror,
        clock: Clock,
        find_masker: FindMasker | None = None,
        keep_up_bytes: int | None = None,
    ) -> None:
        """With `keep_up_bytes` it skips rather than be further behind."""
        self.run = run
        self.mirror = mirror
        self.window = LogWindow()
        self.record: RunRecord | None = None
        """The final record, once every byte before it was taken."""
        self.ended = asyncio.Event()
        self.masker = Masker()
        """Known once `prepare` has returned."""
        self.watchers = 0
        """Who looks at it: while somebody does it is kept, ended or not."""
        self._clock = clock
        self._find_masker = find_masker
        self._keep_up_bytes = keep_up_bytes
        self._masked = self.masker.stream()
        self._scanner = Scanner()
        self._progress = ProgressReader()
        self._listeners: list[FollowListener] = []
        self._preparation: asyncio.Future[None] | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self.on_shown: Callable[[int, int, bytes], None] | None = None
        """Hears what comes live, secrets covered: its offset, the number of its first line, the bytes."""

    def listen(self, listener: FollowListener) -> Callable[[], None]:
        """Add a listener; the returned callable takes it off."""
        self._listeners.append(listener)

        def leave() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return leave

    async def follow(self, agent: Tailing) -> RunRecord:
        """Tail from where the mirror ends until the run has ended and all is here.

        Raises LinkLost, ProtocolError, RunError, StorageError.
        """
        await self.prepare()
        frames = agent.tail(self.run, self.mirror.size, keep_up_bytes=self._keep_up_bytes)
        try:
            async for frame in frames:
                if isinstance(frame, End):
                    return self.end(frame.record)
                self._take_frame(frame)
                await asyncio.sleep(0)  # many may be here already, and others have a turn
        finally:
            self._expect_quiet(False)
            close = getattr(frames, "aclose", None)
            if close is not None:
                await close()
        raise LinkLost(why="tail ended")

    async def prepare(self) -> None:
        """Find the run's secrets, then show and scan the end of what an earlier session mirrored. Once."""
        if self._preparation is None:
            self._preparation = asyncio.ensure_future(self._prepare())
        await asyncio.shield(self._preparation)

    def end(self, record: RunRecord) -> RunRecord:
        """The run has ended and its log is here whole."""
        self._release()
        self._lines(self.window.end())
        self._findings(self._scanner.finish())
        self.record = record
        self.ended.set()
        return record

    def go_on(self) -> None:
        """Its host has begun another attempt of it."""
        self.record = None
        self.ended.clear()

    @property
    def reader(self) -> ProgressReader:
        """What its log has told of its progress."""
        return self._progress

    @property
    def is_quiet(self) -> bool:
        """No byte has come for a moment."""
        return self._quiet is None

    def found_later(self, findings: list[Finding]) -> None:
        """In a part that was skipped and has been loaded since: its lines are not in the window."""
        for finding in findings:
            for listener in tuple(self._listeners):
                listener.finding(replace(finding, line=None))

    def fail(self, error: CockpitError) -> None:
        for listener in tuple(self._listeners):
            listener.failed(error)

    async def close(self) -> None:
        self._expect_quiet(False)
        if self._preparation is not None:
            await end_tasks(self._preparation)
        self.mirror.close()

    # -- what is here already ----------------------------------------------------------------

    async def _prepare(self) -> None:
        if self._find_masker is not None:
            self.masker = await self._find_masker()
            self._masked = self.masker.stream()
        size = self.mirror.size
        start, number = await self._line_start(max(0, size - PRELOAD_BYTES))
        self.window = LogWindow(offset=start, number=number)
        self._scanner = Scanner(offset=start, line=number)
        while start < size:
            if (gap := self.mirror.gap_at(start)) is not None:
                self._skip(start, *gap)
                start = gap[0]
                continue
            piece = self.mirror.read(start, min(_SCAN_CHUNK, size - start))
            if not piece:
                break
            self._take(start, piece, live=False)
            start += len(piece)
            await asyncio.sleep(0)

    async def _line_start(self, wanted: int) -> tuple[int, int]:
        """Offset of the first line at or after `wanted`, and its number."""
        offset, newlines = 0, 0
        while offset < wanted:
            if (gap := self.mirror.gap_at(offset)) is not None:
                offset = gap[0]
                continue
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

    # -- what comes --------------------------------------------------------------------------

    def _take_frame(self, frame: TailFrame) -> None:
        if isinstance(frame, Data):
            fresh = self.mirror.write(frame.offset, frame.data)
            if fresh:
                self._take(self.mirror.size - len(fresh), fresh, live=True)
                self._expect_quiet(True)
        elif isinstance(frame, Hole):
            start = self.mirror.size
            self.mirror.skip_to(frame.end, frame.why)
            self._skip(start, frame.end, frame.why)
        elif isinstance(frame, Truncated):
            self._start_over()

    def _take(self, offset: int, data: bytes, *, live: bool) -> None:
        for listener in tuple(self._listeners):
            listener.log_bytes(offset, data, live)
        self._show(self._masked.feed(data), self._clock.wall_s() if live else None)

    def _show(self, masked: bytes, at_s: float | None) -> None:
        if not masked:
            return
        if self.on_shown is not None and at_s is not None:
            self.on_shown(self.window.total_bytes, self.window.total_lines + 1, masked)
        self._lines(self.window.feed(masked, at_s), at_s)
        self._findings(self._scanner.feed(masked, at_s=at_s))
        if self._progress.feed(self.window.open_text, at_s):
            self._tell_progress()

    def _release(self) -> None:
        """What was held back as the possible beginning of a secret is none."""
        self._show(self._masked.finish(), self._clock.wall_s())

    def _lines(self, lines: list[Line], at_s: float | None = None) -> None:
        if not lines:
            return
        changed = False
        for line in telling(lines):
            changed |= self._progress.feed(line.text, at_s)
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

    def _skip(self, start: int, end: int, why: Literal["dropped", "skipped"]) -> None:
        """Bytes that the host no longer has, or that we asked to skip: offsets stay true."""
        self._release()
        self._findings(self._scanner.finish())
        self.window.skip_to(end, skip_words(end - start, why))
        self._scanner = Scanner(offset=end, line=self.window.total_lines + 1)
        for listener in tuple(self._listeners):
            listener.log_gap(start, end, why)

    def _start_over(self) -> None:
        self._release()
        self._findings(self._scanner.finish())
        for listener in tuple(self._listeners):
            listener.log_restarts()
        self.mirror.start_over()
        self.window.start_over()
        self._scanner = Scanner(line=self.window.total_lines + 1)

    # -- silence -----------------------------------------------------------------------------

    def _expect_quiet(self, wanted: bool) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
        if wanted:
            self._quiet = asyncio.get_running_loop().call_later(QUIET_S, self._hush)

    def _hush(self) -> None:
        self._quiet = None
        self._findings(self._scanner.quiet())
