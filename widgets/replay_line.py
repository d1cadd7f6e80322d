"""The line below the header of every screen of a replay: that it is one, where it is, how one moves in it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from textual.strip import Strip
from textual.widget import Widget

from cockpit.i18n import _
from cockpit.widgets.drawing import Line, Piece, pieces_width
from cockpit.widgets.look import Look, look_of

BAR_CELLS = 18


@dataclass(frozen=True, slots=True)
class ReplayFacts:
    """All that the line shows; equal facts are not drawn again."""

    wall_s: int
    passed_s: int
    span_s: int
    speed: float
    is_playing: bool
    is_over: bool
    is_whole: bool = True
    incident_s: int | None = None
    """Seconds from the beginning."""


class ReplayLine(Widget):
    DEFAULT_CSS = """
    ReplayLine { height: 1; width: 100%; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._facts: ReplayFacts | None = None

    def show(self, facts: ReplayFacts) -> None:
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def render_line(self, y: int) -> Strip:
        look, width = look_of(self), self.size.width
        line = Line(look.bar_text).add(f" {_('REPLAY')} ", look.warn_badge).add(" ")
        facts = self._facts
        if facts is None:
            return line.strip(width)
        for part in _parts(look, facts):
            if line.cells + pieces_width(part) + 2 <= width:
                line.add(" ").add_all(part).add(" ")
        return line.strip(width)


def _parts(look: Look, facts: ReplayFacts) -> list[list[Piece]]:
    """The most important first: parts leave from the right when the width does not hold them."""
    strong, quiet = look.bar_text, look.bar_muted
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(facts.wall_s))
    parts: list[list[Piece]] = [
        [(clock, strong)],
        [(_state(facts), look.bar_key if facts.is_playing else strong)],
        [(f"{_minutes(facts.passed_s)} / {_minutes(facts.span_s)}", strong)],
        _bar(look, facts),
    ]
    if not facts.is_whole:
        parts.append([(_("cut off"), look.warn_badge)])
    keys = [("space", _("pause")), (", .", _("10 s")), ("- +", _("speed"))]
    if facts.incident_s is not None:
        keys.insert(0, ("I", _("incident")))
    parts += [[(key, look.bar_key), (" " + words, quiet)] for key, words in keys]
    return parts


def _state(facts: ReplayFacts) -> str:
    if facts.is_over:
        return _("at its end")
    return (
        f"{facts.speed:g}x"
        if facts.is_playing
        else _("paused at {speed}x").format(speed=f"{facts.speed:g}")
    )


def _bar(look: Look, facts: ReplayFacts) -> list[Piece]:
    """Where it is, and where the incident opened."""
    is_plain = look.glyphs.name == "ascii"
    rail, here, there = ("-", "o", "!") if is_plain else ("─", "●", look.glyphs.warning)
    span_s = max(1, facts.span_s)
    place = min(BAR_CELLS - 1, facts.passed_s * BAR_CELLS // span_s)
    mark = None
    if facts.incident_s is not None:
        mark = min(BAR_CELLS - 1, facts.incident_s * BAR_CELLS // span_s)
    pieces: list[Piece] = []
    for cell in range(BAR_CELLS):
        if cell == place:
            pieces.append((here, look.bar_key))
        elif cell == mark:
            pieces.append((there, look.warn_badge))
        else:
            pieces.append((rail, look.bar_muted))
    return pieces


def _minutes(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02}"
