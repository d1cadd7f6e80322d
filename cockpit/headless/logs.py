"""`cockpit logs`: a run's log, byte for byte into a pipe or file, harmless on a terminal."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial

from cockpit.config.paths import Home
from cockpit.domain.gang import gang_of, member_id
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView
from cockpit.engine.agent_frames import Data, End, Hole, Truncated
from cockpit.engine.engine import Engine
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.read_log import read_log
from cockpit.errors import CockpitError, ExitCode, LinkLost, RunUnknown, TransportError
from cockpit.headless.find_run import found_run, rank_of
from cockpit.headless.local_log import local_copy, print_copy, say_what_is_missing
from cockpit.headless.past import remembered
from cockpit.headless.run_report import RunReport, make_report, words_for
from cockpit.headless.session import link_failure, runs_of
from cockpit.headless.streams import ReaderGone

RECONNECT_LIMIT_S = 30.0
TICK_S = 0.5


def main(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_logs(args))
    except ReaderGone as error:
        raise BrokenPipeError from error


async def _logs(args: argparse.Namespace) -> int:
    report = make_report(args.json)
    offset: int = args.from_byte or 0
    is_found = False
    try:
        async with found_run(args.run) as (engine, view):
            is_found = True
            view = view if args.rank is None else rank_of(engine, view, args.rank)
            await _print(engine, view, report, offset, follow=args.follow)
    except (RunUnknown, TransportError) as error:
        if is_found:
            raise
        wanted = RunId(args.run)
        if args.rank is not None:
            wanted = member_id(gang_of(wanted) or wanted, args.rank)
        return await _print_local(wanted, report, offset, error)
    return ExitCode.OK


async def _print_local(wanted: str, report: RunReport, offset: int, error: CockpitError) -> int:
    """The host does not have it, or cannot be asked: what was copied here is better than nothing."""
    home = Home.from_environ()
    copy = local_copy(home, wanted)
    if copy is None:
        raise error
    await report.say(words_for(error.code, error.facts))
    await report.say(words_for("log_from_copy", {"run": copy.run, "path": str(copy.path)}))
    printed = await print_copy(copy, report, offset)
    view = next((one.view for one in await remembered(home) if one.run == copy.run), None)
    lacks = await say_what_is_missing(printed, copy, view, report)
    return ExitCode.UNAVAILABLE if lacks else ExitCode.OK


async def _print(
    engine: Engine, view: RunView, report: RunReport, offset: int, *, follow: bool
) -> None:
    masker = await runs_of(engine).masker(view.run)
    report.about(view.run, view.host, masker)
    printer = _Printer(engine, report, masker, max(0, offset))
    if offset < 0:
        find = partial(_count_back, back=-offset)
        await _over_lost_links(engine, view.run, view.host, printer, find)
    await report.jump(printer.offset)
    work = _follow if follow else _print_once
    await _over_lost_links(engine, view.run, view.host, printer, work)
    await printer.finish()


class _Printer:
    """Knows where it is in the log, whatever the link does."""

    def __init__(self, engine: Engine, report: RunReport, masker: Masker, offset: int) -> None:
        self.offset = offset
        self._engine = engine
        self._report = report
        self._masked = masker.stream()

    async def take(self, offset: int, data: bytes) -> None:
        fresh = data[max(0, self.offset - offset) :]
        self.offset = max(self.offset, offset) + len(fresh)
        await self._report.output(self._masked.feed(fresh), self._engine.wall_s())

    async def jump(self, offset: int, code: str, run: RunId) -> None:
        await self._report.output(self._masked.finish(), self._engine.wall_s())
        await self._report.jump(offset)
        await self.say(code, {"run": run, "start": self.offset, "end": offset})
        self.offset = offset

    async def say(self, code: str, facts: dict[str, object]) -> None:
        await self._report.say(words_for(code, facts))

    async def tick(self) -> None:
        await self._report.tick(self._engine.wall_s())

    async def finish(self) -> None:
        await self._report.output(self._masked.finish(), self._engine.wall_s())
        await self._report.finish(self._engine.wall_s())


Work = Callable[[HostAgent, RunId, _Printer], Awaitable[None]]


async def _over_lost_links(
    engine: Engine, run: RunId, host: HostName, printer: _Printer, work: Work
) -> None:
    """Begin again where the last connection ended. Raises what keeps us from the host for good."""
    while True:
        state = engine.fleet.hosts[host]
        if state.link in ("auth_failed", "host_key"):
            raise link_failure(state)
        try:
            agent = await runs_of(engine).of_host(host).agent(RECONNECT_LIMIT_S)
            await work(agent, run, printer)
            return
        except LinkLost:
            await printer.say("run_link_lost", {"host": host, "run": run})
            await asyncio.sleep(TICK_S)


async def _count_back(agent: HostAgent, run: RunId, printer: _Printer, *, back: int) -> None:
    """Begin so many bytes before the end that the log has now."""
    printer.offset = max(0, (await agent.read(run, 0, 0)).size - back)


async def _print_once(agent: HostAgent, run: RunId, printer: _Printer) -> None:
    async with aclosing(read_log(agent, run, printer.offset)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Hole):
                await printer.jump(piece.end, "log_hole", run)
            else:
                await printer.take(piece.offset, piece.data)


async def _follow(agent: HostAgent, run: RunId, printer: _Printer) -> None:
    """To the run's end."""
    ticking = asyncio.ensure_future(_tick(printer))
    try:
        async with aclosing(agent.tail(run, printer.offset)) as frames:
            async for frame in frames:
                if isinstance(frame, Data):
                    await printer.take(frame.offset, frame.data)
                elif isinstance(frame, Hole):
                    await printer.jump(frame.end, "log_hole", run)
                elif isinstance(frame, Truncated):
                    await printer.jump(frame.offset, "log_truncated", run)
                elif isinstance(frame, End):
                    return
    finally:
        ticking.cancel()


async def _tick(printer: _Printer) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        await printer.tick()
