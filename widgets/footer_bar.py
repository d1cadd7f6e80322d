"""The last line of every screen: the keys that matter here, and the five modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from cockpit.i18n import _
from cockpit.widgets.drawing import Line, width_of
from cockpit.widgets.look import look_of

KEYS_WHEN_NARROW = 6


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key and what it does, with the action a click runs."""

    key: str
    label: str
    action: str

    @property
    def cells(self) -> int:
        return width_of(self.key) + 1 + width_of(self.label) + 2


@dataclass(frozen=True, slots=True)
class ModeHint:
    """One mode of the mode bar."""

    key: str
    label: str
    mode: str


class FooterBar(Widget):
    """Keys from the left as many as fit, whole; modes on the right, as words where there is room."""

    DEFAULT_CSS = """
    FooterBar { height: 1; width: 100%; background: $panel; }
    """

    class Pressed(Message):
        """A hint was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, modes: Sequence[ModeHint], current: str) -> None:
        super().__init__()
        self._modes = tuple(modes)
        self._current = current
        self._hints: tuple[KeyHint, ...] = ()
        self._help: KeyHint | None = None
        self._clickable: list[tuple[int, int, str]] = []

    def show(self, hints: Sequence[KeyHint], help_hint: KeyHint | None) -> None:
        if (tuple(hints), help_hint) != (self._hints, self._help):
            self._hints, self._help = tuple(hints), help_hint
            self.refresh()

    def render_line(self, y: int) -> Strip:
        look, width = look_of(self), self.size.width
        line = Line(look.bar_text).add(" ")
        self._clickable = []
        modes = self._mode_labels(width)
        room = width - line.cells - sum(width_of(label) + 1 for label, _m in modes)
        for hint in self._fitting(room, width):
            self._clickable.append((line.cells, line.cells + hint.cells - 2, hint.action))
            line.add(hint.key, look.bar_key).add(" " + hint.label, look.bar_muted).add("  ")
        line.pad_to(width - sum(width_of(label) + 1 for label, _m in modes))
        for label, mode in modes:
            style = look.bar_on if mode == self._current else look.bar_muted
            self._clickable.append(
                (line.cells, line.cells + width_of(label), f"app.mode('{mode}')")
            )
            line.add(label, style).add(" ")
        return line.strip(width)

    def _mode_labels(self, width: int) -> list[tuple[str, str]]:
        words = width >= 110
        return [
            (
                f" {hint.key} {hint.label} " if words or hint.mode == self._current else hint.key,
                hint.mode,
            )
            for hint in self._modes
        ]

    def _fitting(self, room: int, width: int) -> list[KeyHint]:
        """The first hints that fit whole beside `? help`, which always stays."""
        most = KEYS_WHEN_NARROW if width < 100 else len(self._hints)
        reserved = self._help.cells if self._help else 0
        chosen: list[KeyHint] = []
        for hint in self._hints[:most]:
            if sum(one.cells for one in chosen) + hint.cells + reserved > room:
                break
            chosen.append(hint)
        return [*chosen, *([self._help] if self._help else [])]

    def on_click(self, event: events.Click) -> None:
        for start, end, action in self._clickable:
            if start <= event.x < end:
                self.post_message(self.Pressed(action))
                return


def mode_hints() -> tuple[ModeHint, ...]:
    """The five modes in the order of their digits."""
    return (
        ModeHint("1", _("Fleet"), "fleet"),
        ModeHint("2", _("Runs"), "runs"),
        ModeHint("3", _("Incidents"), "incidents"),
        ModeHint("4", _("Launch"), "launch"),
        ModeHint("5", _("Desk"), "desk"),
    )
