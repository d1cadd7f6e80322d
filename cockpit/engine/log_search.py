"""Looking through a run's whole log where it lies, and reading the part around a place in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cockpit.domain.masking import Masker
from cockpit.domain.models import RunId
from cockpit.engine.agent import RunAgent
from cockpit.engine.api import LogHit, LogPart
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.log_window import LogWindow
from cockpit.errors import ProtocolError, RunError

ANSWER_S: Final = 30.0
AROUND_BYTES: Final = 48 * 1024
MOST_LINES: Final = 400

OnProgress = Callable[[float], None]
"""Told the share of the log that was looked through."""


async def search_log(
    agent: HostAgent, run: RunId, text: str, offset: int, *, backward: bool, on_progress: OnProgress
) -> LogHit | None:
    """The nearest place before or behind `offset`; None when there is none. Lower case finds any case.

    Raises RunUnknown, RunError on a host without Python, TransportError.
    """
    if not isinstance(agent, RunAgent):
        raise RunError("search_needs_python", run=run)
    ignore_case = text == text.lower()
    while True:
        told = await agent.ask(
            "search",
            {
                "run": run,
                "text": text,
                "offset": offset,
                "backward": backward,
                "ignore_case": ignore_case,
            },
            limit_s=ANSWER_S,
        )
        at, size = _place(told.get("at")), _place(told.get("size"))
        if at is None or size is None:
            raise ProtocolError(run=run, why="search")
        if (hit := _place(told.get("hit"))) is not None:
            return LogHit(hit, size)
        if at in (0, offset) or at >= size:
            return None
        on_progress(1 - at / size if backward else at / size)
        offset = at


def _place(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and 0 <= value < 1 << 62 else None


async def log_around(agent: HostAgent, run: RunId, offset: int, masker: Masker) -> LogPart:
    """Lines before and behind a place, masked as everything that is shown. Raises RunUnknown, TransportError."""
    start = max(0, offset - AROUND_BYTES // 2)
    read = await agent.read(run, start, AROUND_BYTES)
    data = read.data
    skipped = data.find(b"\n") + 1 if start else 0
    window = LogWindow(offset=start + skipped, number=1)
    covered = masker.stream()
    shown = covered.feed(data[skipped:]) + covered.finish()
    window.feed(shown, None)
    window.end()
    lines = tuple(window.line(place) for place in range(len(window)))
    near = [line for line in lines if line.offset <= offset]
    first = max(0, len(near) - MOST_LINES // 2)
    return LogPart(lines[first : first + MOST_LINES], read.size)
