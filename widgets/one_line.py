"""A single drawn row that its screen makes anew when something changed."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from cockpit.widgets.look import look_of


class OneLine(Widget):
    """A single drawn row that a screen gives as a strip maker."""

    DEFAULT_CSS = """
    OneLine { height: 1; width: 100%; }
    """

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._strip: Strip | None = None

    def show(self, strip: Strip) -> None:
        if strip != self._strip:
            self._strip = strip
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._strip is None:
            return Strip.blank(self.size.width, look_of(self).text)
        return self._strip.adjust_cell_length(self.size.width, look_of(self).text)
