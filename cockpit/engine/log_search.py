"""Looking through a run's whole log where it lies, and reading the part around a place in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cockpit.domain.masking import Masker
from cockpit.domain.models import RunId
from cockpit.domain.run_spec import Json
from cockpit.domain.text import safe_line
from cockpit.engine.agent import RunAgent
from cockpit.engine.api import LogHit, LogPart
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.log_window import LogWindow
from cockpit.errors import ProtocolError, RunError

ANSWER_S: Final = 30.0
AROUND_BYTES: Final = 48 * 1024
MARGIN_BYTES: Final = 16 * 1024
"""Read beyond both edges: no secret is longer."""
EXCERPT_BYTES: Final = 160
MOST_LINES: Final = 400
MOST_ROUNDS: Final = 100_000

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
    fields: dict[str, Json] = {
        "run": run,
        "text": text,
        "backward": backward,
        "ignore_case": text == text.lower(),
    }
    for _round in range(MOST_ROUNDS):
        told = await agent.ask("search", {**fields, "offset": offset}, limit_s=ANSWER_S)
        at, size = _place(told.get("at")), _place(told.get("size"))
        if at is None or size is None:
            raise ProtocolError(run=run, why="search")
        if (hit := _place(told.get("hit"))) is not None:
            return LogHit(hit, size)
        if at == 0 or at >= size:
            return None
        if not (at < offset if backward else at > offset):
            raise ProtocolError(run=run, why="search")
        on_progress(1 - at / size if backward else at / size)
        offset = at
    raise ProtocolError(run=run, why="search")


def _place(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and 0 <= value < 1 << 62 else None


async def log_around(agent: HostAgent, run: RunId, offset: int, masker: Masker) -> LogPart:
    """Lines before and behind a place, masked as everything that is shown. Raises RunUnknown, TransportError.

    More is read than is shown: a secret that lies across the edge is covered whole.
    """
    start = max(0, offset - AROUND_BYTES // 2)
    first = max(0, start - MARGIN_BYTES)
    read = await agent.read(run, first, AROUND_BYTES + 2 * MARGIN_BYTES)
    covered = masker.stream()
    shown = covered.feed(read.data) + covered.finish()
    shown = shown[start - first : start - first + AROUND_BYTES]
    here = offset - start
    cut = shown.find(b"\n", 0, here) + 1 if start else 0
    window = LogWindow(offset=start + cut, number=1)
    window.feed(shown[cut:], None)
    window.end()
    lines = tuple(window.line(place) for place in range(len(window)))
    before = sum(line.offset <= offset for line in lines)
    top = max(0, before - MOST_LINES // 2)
    return LogPart(lines[top : top + MOST_LINES], read.size, _excerpt(shown, here))


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
