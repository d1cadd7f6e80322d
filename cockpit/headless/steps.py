"""How far runs are, for `cockpit ps`: read from the last lines of their logs, which every session leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from cockpit.config.paths import Home
from cockpit.domain.lines import LineAssembler
from cockpit.domain.progress import ProgressReader
from cockpit.domain.runs import Progress, RunView
from cockpit.engine.bounds import within
from cockpit.engine.engine import Engine
from cockpit.engine.mirror import mirror_path
from cockpit.errors import CockpitError
from cockpit.headless.session import runs_of

TAIL_BYTES = 64 * 1024
LIMIT_S = 3.0
ASKED_AT_MOST = 64


async def with_steps(engine: Engine, home: Home, views: Sequence[RunView]) -> list[RunView]:
    """The runs with their progress: live ones from their hosts, the others from the copies here."""
    live = [view for view in views if not view.ended and view.log_bytes][:ASKED_AT_MOST]
    asked = await asyncio.gather(*(_from_host(engine, view) for view in live))
    told = {view.run: found for view, found in zip(live, asked, strict=True) if found is not None}
    done = []
    for view in views:
        found = told.get(view.run)
        if found is None and view.progress == Progress():
            found = await asyncio.to_thread(_from_copy, home, view)
        done.append(view if found is None else replace(view, progress=found))
    return done


async def _from_host(engine: Engine, view: RunView) -> Progress | None:
    """None when the host does not say in time; the tail may be in the middle of a hole, which tells nothing."""
    start = max(0, (view.log_bytes or 0) - TAIL_BYTES)
    with suppress(CockpitError, asyncio.TimeoutError):
        agent = await runs_of(engine).of_host(view.host).agent(LIMIT_S)
        piece = await within(LIMIT_S, agent.read(view.run, start, TAIL_BYTES))
        return progress_of(piece.data, begins_a_line=start == 0)
    return None


def _from_copy(home: Home, view: RunView) -> Progress | None:
    """From the end of what was followed of its log on this computer."""
    try:
        with mirror_path(home, view.host, view.run).open("rb") as file:
            size = file.seek(0, 2)
            start = max(0, size - TAIL_BYTES)
            file.seek(start)
            return progress_of(file.read(TAIL_BYTES), begins_a_line=start == 0)
    except OSError:
        return None


def progress_of(data: bytes, *, begins_a_line: bool) -> Progress:
    """What the lines say, an unfinished one and a bar's present state included."""
    if not begins_a_line:
        data = data.partition(b"\n")[2] or data.rpartition(b"\r")[2]
    reader, lines = ProgressReader(), LineAssembler()
    for line in lines.feed(data):
        reader.feed(line.text)
    reader.feed(lines.open_text)
    return reader.progress
