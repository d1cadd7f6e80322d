"""A framed pane that scrolls: border, title, foot and a scrollbar in its right border, drawn line by line."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widget import Widget

from cockpit.domain.text import cut_end
from cockpit.i18n import _
from cockpit.widgets.drawing import Line, width_of
from cockpit.widgets.log_bar import thumb_rows
from cockpit.widgets.look import Look, look_of

WHEEL_ROWS = 3


class FramedPane(Widget, can_focus=True):
    """Subclasses say how many rows there are and draw one of them."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    FramedPane { width: 1fr; height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", _("Up"), show=False, id="pane.up"),
        Binding("down,j", "move(1)", _("Down"), show=False, id="pane.down"),
        Binding("pageup,ctrl+u", "move_page(-1)", _("Page up"), show=False, id="pane.page_up"),
        Binding("pagedown,ctrl+d", "move_page(1)", _("Page down"), show=False, id="pane.page_down"),
        Binding("home,g", "move_to_end(-1)", _("Start"), show=False, id="pane.start"),
        Binding("end,G", "move_to_end(1)", _("End"), show=False, id="pane.end"),
    ]

    def __init__(self, title: str = "", *, foot: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self._title = title
        self._foot = foot
        self._top_row = 0

    # What subclasses give.

    @property
    def row_count(self) -> int:
        raise NotImplementedError

    def row_strip(self, row: int, look: Look, width: int) -> Strip:
        raise NotImplementedError

    def head_strip(self, look: Look, width: int) -> Strip | None:
        """A row that does not scroll, such as column names."""
        return None

    # What everybody may use.

    def name_it(self, title: str, foot: str | None = None) -> None:
        foot = self._foot if foot is None else foot
        if (title, foot) != (self._title, self._foot):
            self._title, self._foot = title, foot
            self.refresh()

    @property
    def inner_width(self) -> int:
        return max(1, self.size.width - 4)

    @property
    def rows_shown(self) -> int:
        head = self.head_strip(look_of(self), self.inner_width) is not None
        return max(1, self.size.height - 2 - head)

    @property
    def top_row(self) -> int:
        return max(0, min(self._top_row, self.row_count - self.rows_shown))

    def scroll_rows(self, rows: int) -> None:
        before = self.top_row
        self._top_row = max(0, min(before + rows, self.row_count - self.rows_shown))
        if self._top_row != before:
            self.refresh()

    def bring_into_view(self, first: int, last: int) -> None:
        """Scroll as little as needed to show these rows."""
        top = self.top_row
        if first < top:
            self._top_row = first
        elif last >= top + self.rows_shown:
            self._top_row = last - self.rows_shown + 1

    def action_move(self, step: int) -> None:
        self.scroll_rows(step)

    def action_move_page(self, step: int) -> None:
        self.scroll_rows(step * max(1, self.rows_shown - 1))

    def action_move_to_end(self, step: int) -> None:
        self.scroll_rows(step * self.row_count)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(WHEEL_ROWS)

    def row_at(self, y: int) -> int | None:
        """The row drawn at `y` of the widget; None on the frame and below the last row."""
        head = self.head_strip(look_of(self), self.inner_width) is not None
        row = self.top_row + y - 1 - head
        inside = head < y < self.size.height - 1
        return row if inside and 0 <= row < self.row_count else None

    # Drawing.

    def render_line(self, y: int) -> Strip:
        look, (width, height) = look_of(self), self.size
        border = look.ok if self.has_focus else look.faint
        if y == 0:
            return frame_top(look, width, self._title, border)
        if y == height - 1:
            return frame_bottom(look, width, self._foot, border)
        head = self.head_strip(look, self.inner_width)
        row = self.row_at(y)
        if y == 1 and head is not None:
            inner: Strip = head
        elif row is not None:
            inner = self.row_strip(row, look, self.inner_width)
        else:
            inner = Strip.blank(self.inner_width, look.text)
        left = Segment(look.glyphs.vertical, border)
        right = self._right_border(look, y - 1 - (head is not None), border)
        blank = Segment(" ", look.text)
        return Strip([left, blank, *inner, blank, right], width)

    def _right_border(self, look: Look, y: int, border: Style) -> Segment:
        start, end = thumb_rows(self.top_row, self.rows_shown, self.row_count, self.rows_shown)
        if start <= y < end:
            return Segment(look.glyphs.bars[-1], look.muted)
        return Segment(look.glyphs.vertical, border)


def frame_top(look: Look, width: int, title: str, border: Style) -> Strip:
    line = Line(look.text).add(look.glyphs.top_left, border)
    if title and width >= 8:
        line.add(f" {cut_end(title, width - 4, look.glyphs.cut)} ", look.muted)
    line.fill_to(width - 1, look.glyphs.horizontal, border)
    return line.add(look.glyphs.top_right, border).strip(width)


def frame_bottom(look: Look, width: int, foot: str, border: Style) -> Strip:
    rule = look.glyphs.horizontal
    line = Line(look.text).add(look.glyphs.bottom_left, border)
    if foot and width_of(foot) + 5 <= width:
        line.fill_to(width - width_of(foot) - 4, rule, border).add(f" {foot} ", look.muted)
    line.fill_to(width - 1, rule, border)
    return line.add(look.glyphs.bottom_right, border).strip(width)
