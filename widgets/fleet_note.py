"""One quiet line under the fleet: what is filtered, how it is sorted, what lies below."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from cockpit.widgets.drawing import Line, width_of
from cockpit.widgets.look import look_of


class FleetNote(Widget):
    """Left words, right words; no row at all when there is nothing to say."""

    DEFAULT_CSS = """
    FleetNote { height: 0; width: 100%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._left = self._right = ""
        self._wrong = False

    def show(self, left: str, right: str, *, wrong: bool = False) -> None:
        if (left, right, wrong) == (self._left, self._right, self._wrong):
            return
        self._left, self._right, self._wrong = left, right, wrong
        height = 1 if left or right else 0
        if self.styles.height is None or self.styles.height.value != height:
            self.styles.height = height
        self.refresh()

    def render_line(self, y: int) -> Strip:
        look, width = look_of(self), self.size.width
        line = Line(look.muted).add(" ").add(self._left, look.warn if self._wrong else look.muted)
        line.pad_to(width - width_of(self._right) - 1)
        return line.add(self._right, look.text).strip(width)
