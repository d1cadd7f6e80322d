"""One run from here to its end: its log, its events, its incidents, in the order in which they happened."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import ExitStack, aclosing
from typing import Any, Literal

from cockpit.domain.incidents import Finding
from cockpit.domain.lines import Line
from cockpit.domain.masking import MaskedStream, Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import Progress
from cockpit.engine.agent_frames import Data
from cockpit.engine.bounds import attempt, end
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event, LinkChanged
from cockpit.engine.follow import RunFollower
from cockpit.errors import CockpitError, ExitCode, HostUnreachable, LinkLost, RunError
from cockpit.headless.log_cursor import Bytes, Gap, LogCursor, Missing, Restart
from cockpit.headless.missing_log import missing_log
from cockpit.headless.run_report import TALK_EVERY_S, RunReport, words_for
from cockpit.headless.run_teller import RunTeller
from cockpit.headless.session import link_failure, runs_of
from cockpit.headless.streams import ReaderGone
from cockpit.headless.wishes import Wishes

PIECE_BYTES = 256 * 1024
FAREWELL_S = 1.0
NOTES_S = 2.0
_FINAL_LINKS = ("auth_failed", "host_key")


class StopFailed:
    """A stop came to nothing; it may be asked for again."""

    def __init__(self, error: CockpitError) -> None:
        self.error = error


class StopAsked:
    """The person wants the run to end."""


Note = Event | StopFailed | StopAsked


class RunFollowing:
    """Prints one run, from its first byte, until it has ended or is left. Make it before the run starts."""

    def __init__(self, engine: Engine, report: RunReport, run: RunId, host: HostName) -> None:
        self._engine = engine
        self._report = report
        self._run = run
        self._host = host
        self._runs = runs_of(engine)
        self._tell = RunTeller(engine, report, run, host)
        self._earlier: list[Event] = list(self._runs.past.troubles)
        self._cursor: LogCursor[Note] | None = None
        self._scanned = 0
        """Bytes that the detectors have seen: an incident belongs behind them."""
        self._wake = asyncio.Event()
        self._failure: CockpitError | None = None
        self._started = False
        self._masked: MaskedStream = Masker().stream()
        self._unsubscribe = engine.subscribe(self._heard)

    async def to_end(self, wishes: Wishes) -> int:
        """The exit code that the command ends with; NOT_NOW when the run was left to itself."""
        with ExitStack() as stack:
            stack.callback(self._unsubscribe)
            follower, unwatch = self._runs.watch(self._run)
            stack.callback(unwatch)
            self._cursor = LogCursor(follower.mirror)
            stack.callback(self._cursor.close)
            for event in self._earlier:
                self._cursor.note(event, at=0)
            stack.callback(follower.listen(self))
            return await self._pumped(follower, wishes)

    async def _pumped(self, follower: RunFollower, wishes: Wishes) -> int:
        pump = asyncio.ensure_future(self._pump(follower))
        left = asyncio.ensure_future(wishes.leave.wait())
        stopper = asyncio.ensure_future(self._stop_when_asked(wishes))
        waker = asyncio.ensure_future(self._wake_at_end(follower))
        either: set[asyncio.Future[Any]] = {pump, left}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if pump.done():
                return pump.result()
        except ReaderGone:
            pass
        except (CockpitError, OSError):
            await self._say_goodbye(wishes)
            raise
        finally:
            await end(pump, left, stopper, waker)
        await self._say_goodbye(wishes)
        return ExitCode.NOT_NOW  # how it will end is not known: that is no success

    async def _wake_at_end(self, follower: RunFollower) -> None:
        """The end of a run that printed nothing is no event where its state was heard before."""
        await follower.ended.wait()
        self._wake.set()

    async def _say_goodbye(self, wishes: Wishes) -> None:
        code = "run_left_stopping" if wishes.stops and wishes.stop.is_set() else "run_left"
        words = words_for(code, {"run": self._run, "host": self._host})
        await attempt(FAREWELL_S, self._report.say(words))

    # -- the pump ---------------------------------------------------------------------------

    async def _pump(self, follower: RunFollower) -> int:
        """Everything that is printed goes through here, one thing after the other."""
        assert self._cursor is not None
        await follower.prepare()
        self._report.about(self._run, self._host, follower.masker)
        self._masked = follower.masker.stream()
        told_s = self._engine.now_s()
        while True:
            self._wake.clear()
            while (item := self._cursor.next(PIECE_BYTES)) is not None:
                await self._print(item)
                if self._engine.now_s() - told_s >= self._report.tick_s:
                    told_s = self._engine.now_s()
                    await self._tick()
            if self._failure is not None:
                raise self._failure
            if follower.record is not None and not self._runs.may_relaunch(follower.record):
                return await self._ended(follower.record)
            await self._pause(self._report.tick_s)
            if self._engine.now_s() - told_s >= self._report.tick_s:
                told_s = self._engine.now_s()
                await self._tick()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except asyncio.TimeoutError:
            return

    async def _tick(self) -> None:
        await self._report.tick(self._engine.wall_s())
        if self._report.tells_samples:
            await self._tell.sample()

    async def _print(self, item: Bytes | Gap | Missing | Restart | Note) -> None:
        if isinstance(item, Bytes):
            await self._tell_started()
            await self._report.output(self._masked.feed(item.data), self._engine.wall_s())
        elif isinstance(item, Gap):
            await self._jump(item.end, "log_hole")
        elif isinstance(item, Restart):
            await self._jump(0, "log_truncated")
        elif isinstance(item, Missing):
            await self._print_missing(item)
        elif isinstance(item, StopAsked):
            await self._tell.state("run.stopping")
        elif isinstance(item, StopFailed):
            await self._report.say(words_for(item.error.code, item.error.facts))
        else:
            await self._tell.event(item)

    async def _jump(self, offset: int, code: str) -> None:
        await self._report.output(self._masked.finish(), self._engine.wall_s())
        await self._report.jump(offset)
        await self._report.say(words_for(code, {"run": self._run}))

    async def _print_missing(self, part: Missing) -> None:
        """The copy has no room for them: what is printed is whole all the same."""
        pieces = missing_log(self._runs, self._host, self._run, part.start, part.end)
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Data):
                    await self._print(Bytes(piece.data))
                else:
                    await self._jump(piece.end, "log_hole")

    async def _tell_started(self) -> None:
        """Output proves that it has started, whatever we have heard so far, unless a hook printed it."""
        if self._started:
            return
        if not self._tell.has_told("run.started"):
            await self._ask_for_cards()
            view = self._engine.runs.get(self._run)
            if view is not None and view.started_s is None and view.state != "lost":
                return
            await self._tell.state("run.started")
        self._started = True

    async def _ask_for_cards(self) -> None:
        runs = self._runs.of_host(self._host)
        try:
            runs.record(await (await runs.agent(5.0)).status(self._run))
        except CockpitError:
            return  # what we know of it must do

    async def _ended(self, record: RunRecord) -> int:
        await attempt(NOTES_S, self._runs.catch_up(record))
        while self._cursor is not None and (item := self._cursor.next(PIECE_BYTES)) is not None:
            await self._print(item)
        at_s = self._engine.wall_s()
        await self._report.output(self._masked.finish(), at_s)
        await self._report.finish(at_s)
        view = record.view(self._host)
        if view.started_s is not None:
            await self._tell_started()
        if record.signals or record.reason == "cancelled":  # a stop that was over before we looked
            await self._tell.state("run.stopping", view)
        await self._tell.ended(view)
        status = view.exit_status
        return int(ExitCode.NOT_NOW) if status is None else status

    # -- FollowListener ---------------------------------------------------------------------

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None:
        self._scanned = offset + len(data)
        if self._cursor is not None:
            self._cursor.grew(self._scanned)
        self._wake.set()

    def log_lines(self, lines: list[Line]) -> None:
        """The bytes are printed, not the lines."""

    def log_gap(self, start: int, end: int, why: Literal["dropped", "skipped"]) -> None:
        self._scanned = end
        if self._cursor is not None:
            self._cursor.gap(start, end, why)
        self._wake.set()

    def log_restarts(self) -> None:
        self._scanned = 0
        if self._cursor is not None:
            self._cursor.restarts()
        self._wake.set()

    def finding(self, finding: Finding) -> None:
        """The engine makes an incident of it, and that is told."""

    def progress(self, progress: Progress) -> None:
        self._tell.progress = progress

    def failed(self, error: CockpitError) -> None:
        """A log that cannot be kept here cannot be shown; what the host says of a run is tried again."""
        if not isinstance(error, RunError):
            self._failure = error
        self._wake.set()

    # -- what is heard ------------------------------------------------------------------------

    def _heard(self, event: Event) -> None:
        if not self._tell.concerns(event):
            return
        if isinstance(event, LinkChanged) and event.after in _FINAL_LINKS:
            self._failure = link_failure(self._engine.fleet.hosts[self._host])
        self._note(event)

    def _note(self, note: Note) -> None:
        if self._cursor is None:
            if not isinstance(note, StopAsked | StopFailed):
                self._earlier.append(note)
            return
        self._cursor.note(note, at=self._scanned)
        self._wake.set()

    # -- stopping -----------------------------------------------------------------------------

    async def _stop_when_asked(self, wishes: Wishes) -> None:
        """The ladder, over any number of lost links; the host climbs it to its end without us too."""
        await wishes.stop.wait()
        if not wishes.stops:
            return
        self._note(StopAsked())
        while True:
            try:
                await self._engine.stop(self._run)
                return
            except (LinkLost, HostUnreachable) as error:
                self._note(StopFailed(error))
                await asyncio.sleep(TALK_EVERY_S)
            except CockpitError as error:
                self._note(StopFailed(error))
                return


async def or_leave(work: Coroutine[Any, Any, object], wishes: Wishes) -> bool:
    """True when `work` is done; False when the person would not wait for it."""
    task, left = asyncio.ensure_future(work), asyncio.ensure_future(wishes.leave.wait())
    either: set[asyncio.Future[Any]] = {task, left}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        await end(task, left)
