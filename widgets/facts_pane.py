"""Paragraphs of which a few change every second: only their lines are painted again."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Region
from textual.strip import Strip

from cockpit.widgets.kept_lines import KeptLines
from cockpit.widgets.text_pane import Para, TextPane


class FactsPane(TextPane):
    """A text pane for facts that move."""

    def __init__(self, title: str = "", *, foot: str = "", id: str | None = None) -> None:
        super().__init__(title, foot=foot, id=id)
        self._lines = KeptLines(self, super().render_line)

    def render_line(self, y: int) -> Strip:
        return self._lines.line(y)

    def refresh(self, *regions: Region, **how: bool) -> FactsPane:
        if not regions:
            self._lines.forget()
        super().refresh(*regions, **how)
        return self

    def show(self, paras: Sequence[Para], *, from_top: bool = False) -> None:
        if len(paras) != len(self._paras) or from_top:
            super().show(paras, from_top=from_top)
        elif tuple(paras) != self._paras:
            self._paras = tuple(paras)
            self._lines.redraw_changed()
