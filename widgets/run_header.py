"""The first lines of a run's screen: what it is, where, how far, and what it has cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from cockpit.domain.runs import RunView
from cockpit.domain.server_sample import ServerSample
from cockpit.domain.text import cut_middle, safe_line
from cockpit.domain.units import duration_text, mib_pair_text
from cockpit.i18n import _
from cockpit.widgets.drawing import Line, Piece, pieces_width
from cockpit.widgets.gauges import spark
from cockpit.widgets.look import Look, look_of
from cockpit.widgets.run_words import (
    cards_text,
    percent_text,
    reason_words,
    state_sign,
    state_word,
    step_text,
)
from cockpit.widgets.serving_words import kv_role, kv_text, speed_text, time_text

LOSS_CELLS = 12
_GAP = 3


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All that the header shows; equal facts are not drawn again."""

    view: RunView
    elapsed: str = ""
    cost: str = ""
    link: str = ""
    """Why the numbers may be old, in words; empty when the link is live."""
    mem_used_mib: int | None = None
    mem_total_mib: int | None = None
    losses: tuple[float, ...] = ()


class RunHeader(Widget):
    """One row when it fits, two when it does not; parts leave from the right."""

    DEFAULT_CSS = """
    RunHeader { height: 1; width: 100%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._facts: RunFacts | None = None

    def show(self, facts: RunFacts) -> None:
        if facts == self._facts:
            return
        self._facts = facts
        self._fit_height()
        self.refresh()

    def on_resize(self) -> None:
        self._fit_height()

    def _fit_height(self) -> None:
        if self._facts is None or not self.size.width:
            return
        look = look_of(self)
        both = [*identity(look, self._facts), *progress(look, self._facts)]
        rows = 1 if _width(both) <= self.size.width else 2
        if rows != self.size.height:
            self.styles.height = rows

    def render_line(self, y: int) -> Strip:
        look, (width, height) = look_of(self), self.size
        if self._facts is None:
            return Strip.blank(width, look.text)
        parts = identity(look, self._facts) if y == 0 else []
        if height == 1 or y == 1:
            parts = [*parts, *progress(look, self._facts)]
        return _line(look, parts, width)


Part = list[Piece]


def _width(parts: Sequence[Part]) -> int:
    return 1 + sum(pieces_width(part) + _GAP for part in parts) - (_GAP - 1)


def _line(look: Look, parts: Sequence[Part], width: int) -> Strip:
    line = Line(look.text).add(" ")
    for number, part in enumerate(parts):
        gap = 0 if number == 0 else _GAP
        if number and line.cells + gap + pieces_width(part) > width:
            break
        line.add(" " * gap).add_all(part)
    return line.strip(width)


def identity(look: Look, facts: RunFacts) -> list[Part]:
    """Who, where, in what state and for how long."""
    view = facts.view
    sign, style = state_sign(view, look)
    name: Part = [
        (sign, style),
        (" ", look.text),
        (cut_middle(safe_line(view.profile), 32), look.strong),
    ]
    place: Part = [(cut_middle(safe_line(view.host), 24), look.text)]
    if view.gpus:
        place.append(("  GPU " + cards_text(view.gpus), look.muted))
    state: Part = [(state_word(view), style)]
    if facts.elapsed:
        words = _(" after {time}") if view.ended else " {time}"
        state.append((words.format(time=facts.elapsed), look.text))
    parts = [name, place, state]
    if reason := reason_words(view):
        parts.append([(reason, style)])
    if facts.link and not view.ended:
        parts.append([(facts.link, look.warn)])
    return parts


def progress(look: Look, facts: RunFacts) -> list[Part]:
    """How far, how fast, how well, how much; only what the log or the host told."""
    view, told = facts.view, facts.view.progress
    parts: list[Part] = []
    if view.served is not None:
        parts += serving(look, view.served)
    if step := step_text(view):
        words = step if step.startswith(("step", "epoch")) else _("step {step}").format(step=step)
        parts.append([(words, look.text), ("  " + percent_text(view), look.strong)])
    if told.eta_s is not None and not view.ended:
        parts.append(_labelled(look, _("eta"), duration_text(told.eta_s)))
    if told.loss is not None:
        part = _labelled(look, _("loss"), f"{told.loss:.4g}")
        if len(facts.losses) > 1:
            part.append((" " + loss_spark(look, facts.losses), look.ok))
        parts.append(part)
    if told.step_s is not None:
        parts.append([(f"{told.step_s:.2f} s/step", look.text)])
    if told.tokens_s is not None and view.served is None:
        parts.append([(f"{told.tokens_s:.0f} tokens/s", look.text)])
    if facts.mem_total_mib is not None and not view.ended:
        pair = mib_pair_text(facts.mem_used_mib, facts.mem_total_mib)
        parts.append(_labelled(look, _("memory"), pair))
    if facts.cost:
        parts.append([(facts.cost, look.text)])
    return parts


def serving(look: Look, served: ServerSample) -> list[Part]:
    """What a server says of itself, in place of steps and loss."""
    parts: list[Part] = []
    if speed := speed_text(served):
        parts.append([(speed, look.strong)])
    if served.running is not None:
        parts.append(_labelled(look, _("in work"), str(served.running)))
    if served.waiting is not None:
        style = look.warn if served.waiting else look.text
        parts.append([(_("waiting") + " ", look.muted), (str(served.waiting), style)])
    if kv := kv_text(served):
        parts.append([("KV ", look.muted), (kv, getattr(look, kv_role(served)))])
    if served.ttft_p95_s is not None:
        parts.append(_labelled(look, _("first token p95"), time_text(served.ttft_p95_s)))
    return parts


def _labelled(look: Look, label: str, value: str) -> list[tuple[str, Style]]:
    return [(label + " ", look.muted), (value, look.text)]


def loss_spark(look: Look, losses: Sequence[float]) -> str:
    """The last losses between their own least and greatest; a flat line is low."""
    recent = list(losses)[-LOSS_CELLS:]
    low, high = min(recent), max(recent)
    span = (high - low) or 1.0
    return spark([0.06 + (value - low) / span for value in recent], 1.07, look.glyphs)
