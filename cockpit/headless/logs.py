"""`cockpit logs`: a run's log, byte for byte into a pipe or file, harmless on a terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import aclosing

from cockpit.domain.lines import Line
from cockpit.domain.models import HostName, RunId
from cockpit.domain.text import LineAssembler
from cockpit.engine.agent_frames import Data, End, Hole, Truncated
from cockpit.engine.engine import Engine
from cockpit.errors import ExitCode, LinkLost
from cockpit.headless.find_run import found_run
from cockpit.headless.run_report import words_for
from cockpit.headless.session import runs_of

PIECE_BYTES = 256 * 1024
RECONNECT_LIMIT_S = 120.0


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_logs(args))


async def _logs(args: argparse.Namespace) -> int:
    async with found_run(args.run) as (engine, view):
        printer = _Printer(args.from_byte or 0)
        if args.follow:
            await _follow(engine, view.run, view.host, printer)
        else:
            await _print_once(engine, view.run, view.host, printer)
        printer.finish()
    return ExitCode.OK


class _Printer:
    """Knows where it is in the log, whatever the link does."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._terminal = sys.stdout.isatty()
        self._assembler = LineAssembler(offset=offset)

    def take(self, offset: int, data: bytes) -> None:
        data = data[max(0, self.offset - offset) :]
        self.offset = max(self.offset, offset) + len(data)
        if self._terminal:
            self._lines(self._assembler.feed(data))
        else:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def note(self, code: str, **facts: int | str) -> None:
        print(words_for(code, facts), file=sys.stderr)

    def finish(self) -> None:
        if self._terminal:
            self._lines(self._assembler.finish())

    def _lines(self, lines: list[Line]) -> None:
        sys.stdout.write("".join(f"{line.text}\n" for line in lines))
        sys.stdout.flush()


async def _print_once(engine: Engine, run: RunId, host: HostName, printer: _Printer) -> None:
    agent = await runs_of(engine).of_host(host).agent()
    while True:
        piece = await agent.read(run, printer.offset, PIECE_BYTES)
        if not piece.data:
            return
        if piece.offset > printer.offset:
            printer.note("log_hole", start=printer.offset, end=piece.offset)
        printer.take(piece.offset, piece.data)


async def _follow(engine: Engine, run: RunId, host: HostName, printer: _Printer) -> None:
    """To the run's end, over any number of lost links."""
    while True:
        agent = await runs_of(engine).of_host(host).agent(RECONNECT_LIMIT_S)
        try:
            async with aclosing(agent.tail(run, printer.offset)) as frames:  # type: ignore[type-var]
                async for frame in frames:
                    if isinstance(frame, Data):
                        printer.take(frame.offset, frame.data)
                    elif isinstance(frame, Hole):
                        printer.note("log_hole", start=frame.start, end=frame.end)
                        printer.offset = frame.end
                    elif isinstance(frame, Truncated):
                        printer.note("log_truncated", run=run)
                        printer.offset = frame.offset
                    elif isinstance(frame, End):
                        return
        except LinkLost as lost:
            printer.note("link_lost", host=host, why=str(lost.facts.get("why") or ""))
        await asyncio.sleep(0.2)
