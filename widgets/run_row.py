"""One line of the list of runs; columns leave from the right when the width does not hold them."""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style

from cockpit.domain.runs import RunView
from cockpit.domain.text import cut_middle, safe_line
from cockpit.i18n import _
from cockpit.widgets.drawing import Line, padded, padded_left
from cockpit.widgets.look import Look
from cockpit.widgets.run_words import (
    elapsed_text,
    percent_text,
    place_text,
    reason_words,
    state_sign,
    state_word,
    step_text,
)
from cockpit.widgets.serving_words import speed_text

_STATE, _SINCE, _STEP, _RUN = 11, 9, 14, 14
_GAP = 2


@dataclass(frozen=True, slots=True)
class Columns:
    """Cells of each column at a width; 0 leaves it out. State, name, host and time always stay."""

    profile: int
    place: int
    step: int
    run: int
    reason: int

    @classmethod
    def at(cls, width: int) -> Columns:
        step = _STEP if width >= 74 else 0
        run = (_RUN if width < 140 else 24) if width >= 112 else 0
        reason = 30 if width >= 132 else (20 if width >= 96 else 0)
        taken = 2 + _STATE + _SINCE + 2 * _GAP + sum(c + _GAP for c in (step, run, reason) if c)
        rest = max(24, width - taken - 2 * _GAP)
        place = min(20, rest * 2 // 5)
        return cls(min(36, rest - place), place, step, run, reason)

    def names(self) -> str:
        """The head of the list, in the same places as the rows."""
        parts = [
            "  " + padded(_("state"), _STATE),
            padded(_("run of"), self.profile),
            padded(_("host:card"), self.place),
            padded_left(_("for"), _SINCE),
        ]
        if self.step:
            parts.append(padded_left(_("step"), self.step))
        if self.reason:
            parts.append(padded(_("worth knowing"), self.reason))
        if self.run:
            parts.append(padded(_("id"), self.run))
        return (" " * _GAP).join(parts)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run and the clock of the moment; equal rows are not drawn again."""

    view: RunView
    elapsed: str
    marked: bool = False

    @classmethod
    def of(cls, view: RunView, wall_s: float, *, marked: bool = False) -> RunRow:
        return cls(view, elapsed_text(view, wall_s), marked)

    @property
    def key(self) -> str:
        return self.view.run

    def draw(self, look: Look, width: int) -> Line:
        view, columns = self.view, Columns.at(width)
        sign, style = state_sign(view, look)
        line = Line(look.text).add(sign, style)
        line.add(look.glyphs.mark if self.marked else " ", look.ok)
        at = line.cells + _STATE
        line.add(cut_middle(state_word(view), _STATE), style).pad_to(at)
        name_style = look.muted if view.ended else look.strong
        _column(
            line,
            cut_middle(safe_line(view.profile), columns.profile),
            columns.profile,
            look,
            name_style,
        )
        _column(line, cut_middle(safe_line(place_text(view)), columns.place), columns.place, look)
        line.add(" " * _GAP).add(self.elapsed.rjust(_SINCE))
        if columns.step:
            text = " ".join(filter(None, (step_text(view), percent_text(view))))
            if view.served is not None:
                text = speed_text(view.served) or text
            if len(text) > columns.step:
                text = percent_text(view)
            line.add(" " * _GAP).add(text.rjust(columns.step))
        if columns.reason:
            reason = reason_words(view)
            words = cut_middle(reason or safe_line(view.remark), columns.reason)
            _column(line, words, columns.reason, look, style if reason else look.muted)
        if columns.run:
            _column(
                line, cut_middle(safe_line(view.run), columns.run), columns.run, look, look.muted
            )
        return line


def _column(line: Line, text: str, cells: int, look: Look, style: Style | None = None) -> None:
    line.add(" " * _GAP)
    at = line.cells + cells
    line.add(text, style or look.text).pad_to(at)
