"""A list of rows that draw themselves: one cursor, marks, and only changed rows repaint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from cockpit.i18n import _
from cockpit.widgets.drawing import Line
from cockpit.widgets.framed import FramedPane
from cockpit.widgets.look import Look, look_of
from cockpit.widgets.words import wrapped


class ListRow(Protocol):
    """One entry. Equal rows are not drawn again."""

    @property
    def key(self) -> str: ...

    def draw(self, look: Look, width: int) -> Line: ...


class RowList(FramedPane):
    """The cursor stays on its entry, by key, when entries come, go or change their order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", _("open"), id="list.open", tooltip=_("Go in")),
    ]

    class Moved(Message):
        """The cursor is on another entry; None when the list is empty."""

        def __init__(self, rows: RowList, key: str | None) -> None:
            super().__init__()
            self.rows = rows
            self.key = key

        @property
        def control(self) -> RowList:
            return self.rows

    class Opened(Message):
        """Enter, or a double click."""

        def __init__(self, rows: RowList, key: str) -> None:
            super().__init__()
            self.rows = rows
            self.key = key

        @property
        def control(self) -> RowList:
            return self.rows

    def __init__(
        self, title: str = "", *, columns: str = "", empty: str = "", id: str | None = None
    ) -> None:
        super().__init__(title, id=id)
        self._columns = columns
        self._empty = empty
        self._rows: tuple[ListRow, ...] = ()
        self._cursor_key: str | None = None

    # What a screen does with it.

    @property
    def cursor_key(self) -> str | None:
        return self._cursor_key

    def show(self, rows: Sequence[ListRow], *, empty: str | None = None) -> None:
        """Take the entries; repaint those that differ, or all when their order did."""
        before, after = self._rows, tuple(rows)
        if empty is not None and empty != self._empty:
            self._empty = empty
            self.refresh()
        if before == after:
            return
        self._rows = after
        if [row.key for row in before] != [row.key for row in after]:
            self._keep_cursor(before)
            self.refresh()
            return
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                self._refresh_row(number)

    def select(self, key: str) -> None:
        """Put the cursor on an entry, if it is there."""
        place = self._place_of(key)
        if place is not None:
            self._go(place)

    # Rows and columns.

    @property
    def row_count(self) -> int:
        return len(self._rows)

    def head_strip(self, look: Look, width: int) -> Strip | None:
        if not self._columns or not self._rows:
            return None
        return Line(look.text).add(self._columns, look.muted).strip(width)

    def show_columns(self, columns: str) -> None:
        if columns != self._columns:
            self._columns = columns
            self.refresh()

    def row_strip(self, row: int, look: Look, width: int) -> Strip:
        entry = self._rows[row]
        here = entry.key == self._cursor_key
        over = None
        if here:
            over = look.cursor if self.has_focus else quiet_cursor(look)
        return entry.draw(look, width).strip(width, over)

    def render_line(self, y: int) -> Strip:
        if self._rows or not 0 < y < self.size.height - 1 or not self._empty:
            return super().render_line(y)
        return self._empty_strip(y)

    def _empty_strip(self, y: int) -> Strip:
        look = look_of(self)
        lines = wrapped(self._empty, self.inner_width)
        border = look.ok if self.has_focus else look.faint
        text = lines[y - 1] if y - 1 < len(lines) else ""
        line = Line(look.text).add(look.glyphs.vertical, border).add(" " + text, look.muted)
        return (
            line.pad_to(self.size.width - 1)
            .add(look.glyphs.vertical, border)
            .strip(self.size.width)
        )

    # Moving.

    def action_move(self, step: int) -> None:
        place = self._place_of(self._cursor_key)
        self._go((0 if place is None else place) + step)

    def action_move_page(self, step: int) -> None:
        self.action_move(step * max(1, self.rows_shown - 1))

    def action_move_to_end(self, step: int) -> None:
        self._go(0 if step < 0 else len(self._rows) - 1)

    def action_open(self) -> None:
        if self._cursor_key is not None:
            self.post_message(self.Opened(self, self._cursor_key))

    def on_click(self, event: events.Click) -> None:
        place = self.row_at(event.y)
        if place is not None:
            self._go(place)
            if event.chain == 2:
                self.action_open()

    def on_resize(self) -> None:
        place = self._place_of(self._cursor_key)
        if place is not None:
            self.bring_into_view(place, place)

    def _go(self, place: int) -> None:
        if not self._rows:
            return
        place = max(0, min(place, len(self._rows) - 1))
        before, top = self._cursor_key, self.top_row
        self._cursor_key = self._rows[place].key
        self.bring_into_view(place, place)
        if self.top_row != top:
            self.refresh()
        elif before != self._cursor_key:
            for one in (self._place_of(before), place):
                if one is not None:
                    self._refresh_row(one)
        if before != self._cursor_key:
            self.post_message(self.Moved(self, self._cursor_key))

    def _keep_cursor(self, before: Sequence[ListRow]) -> None:
        """On the same entry; when it is gone, on the one that took its place."""
        if self._place_of(self._cursor_key) is None:
            old = next((n for n, row in enumerate(before) if row.key == self._cursor_key), 0)
            place = min(old, len(self._rows) - 1)
            self._cursor_key = self._rows[place].key if self._rows else None
            self.post_message(self.Moved(self, self._cursor_key))
        place = self._place_of(self._cursor_key) or 0
        self.bring_into_view(place, place)

    def _place_of(self, key: str | None) -> int | None:
        return next((n for n, row in enumerate(self._rows) if row.key == key), None)

    def _refresh_row(self, row: int) -> None:
        head = self.head_strip_rows
        y = 1 + head + row - self.top_row
        if 0 < y < self.size.height - 1:
            self.refresh(Region(0, y, self.size.width, 1))

    @property
    def head_strip_rows(self) -> int:
        return 1 if self._columns and self._rows else 0


def quiet_cursor(look: Look) -> Style:
    """Where the cursor was when the keys went elsewhere."""
    return Style(underline=True) if look.palette.ansi else Style(bgcolor=look.palette.panel)
