"""The drawn lines of a pane, remembered: new data repaints only the lines that differ."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from cockpit.widgets.look import Look, look_of


class KeptLines:
    """Held by a widget whose `render_line` asks it, and told to forget when all must be drawn anew."""

    def __init__(self, widget: Widget, draw: Callable[[int], Strip]) -> None:
        self._widget = widget
        self._draw = draw
        self._kept: dict[int, Strip] = {}
        self._look: Look | None = None

    def line(self, y: int) -> Strip:
        look = look_of(self._widget)
        if look is not self._look:
            self._kept, self._look = {}, look
        strip = self._kept.get(y)
        if strip is None or strip.cell_length != self._widget.size.width:
            strip = self._kept[y] = self._draw(y)
        return strip

    def forget(self) -> None:
        self._kept = {}

    def redraw_changed(self) -> None:
        """Draw anew what was drawn, and repaint the lines that came out different."""
        kept, self._kept = self._kept, {}
        width, height = self._widget.size
        for y in sorted(kept):
            if y < height and self.line(y) != kept[y]:
                self._widget.refresh(Region(0, y, width, 1))
