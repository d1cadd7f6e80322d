"""Where one is in a log: following its end or reading at an anchor that new lines do not move."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.widgets.log_index import Lines

Row = tuple[int, int]
"""A line's number, and which of its wrapped rows."""
_LANDS_AT = 3
"""A jump lands a third down, so that what led to it is in sight."""


class LogWindow:
    """Arithmetic only. It asks how many rows a line takes, and only for lines that come into view."""

    def __init__(self, lines: Lines, rows_of: Callable[[int], int]) -> None:
        self._lines = lines
        self._rows_of = rows_of
        self.height = 1
        self.follow = True
        self._top = 0
        self._sub = 0
        self._cursor = 0

    @property
    def cursor(self) -> int:
        """Number of the line that is acted on: the last one while following."""
        count = len(self._lines)
        if not count:
            return 0
        if self.follow:
            return self._lines.at(count - 1)
        place = min(self._lines.place_of(self._cursor), count - 1)
        return self._lines.at(place)

    @property
    def place(self) -> int:
        """Place of the first visible line among those shown."""
        return self._start()[0]

    @property
    def at_top(self) -> bool:
        return self._start() == (0, 0)

    @property
    def at_bottom(self) -> bool:
        return self.follow or self._start() >= self._bottom()

    def use(self, lines: Lines) -> None:
        """Show other lines of the same log; the anchor stays on its line or the next one."""
        if not self.follow:
            place, _sub = self._start()
            self._top = self._lines.at(place) if len(self._lines) else 0
            self._cursor = self.cursor
        self._lines = lines

    def visible(self) -> list[Row]:
        """The rows in view, from the top."""
        rows: list[Row] = []
        count = len(self._lines)
        place, sub = self._start()
        while place < count and len(rows) < self.height:
            number = self._lines.at(place)
            rows += [(number, row) for row in range(sub, self._rows_of(number))]
            place, sub = place + 1, 0
        return rows[: self.height]

    def scroll(self, rows: int) -> None:
        """Up for negative: that leaves follow at once. Down to the last line resumes it."""
        if rows == 0 or (rows > 0 and self.follow):
            return
        place, sub = self._start()
        self._hold(*self._moved(place, sub, rows))
        if rows > 0 and self._start() >= self._bottom():
            self.follow = True
        self._keep_cursor_in_view()

    def to_start(self) -> None:
        self._hold(0, 0)
        self._keep_cursor_in_view()
        self._cursor = self._lines.at(0) if len(self._lines) else 0

    def to_end(self) -> None:
        self.follow = True

    def to_place(self, place: int) -> None:
        """From the scrollbar: put this place at the top."""
        self._hold(max(0, min(place, len(self._lines) - 1)), 0)
        if self._start() >= self._bottom():
            self.follow = True
        self._keep_cursor_in_view()

    def show(self, number: int) -> None:
        """Jump to a line and stay there, whatever arrives."""
        count = len(self._lines)
        if not count:
            return
        place = min(self._lines.place_of(number), count - 1)
        if (self._lines.at(place), 0) not in self.visible() or self.follow:
            self._hold(*self._moved(place, 0, -(self.height // _LANDS_AT)))
        self._cursor = self._lines.at(place)

    def point_at(self, number: int) -> None:
        """Put the cursor on a line in view (a click); reading begins."""
        self._hold(*self._start())
        self._cursor = number

    def move_cursor(self, lines: int) -> None:
        """The cursor by lines; the view follows it, and the last line resumes follow."""
        count = len(self._lines)
        if not count or (self.follow and lines > 0):
            return
        place = min(self._lines.place_of(self.cursor), count - 1) + lines
        self._hold(*self._start())
        self._cursor = self._lines.at(max(0, min(place, count - 1)))
        self._bring_into_view(max(0, min(place, count - 1)))
        if lines > 0 and place >= count - 1:
            self.follow = True

    def _start(self) -> Row:
        """Place and wrapped row of the first row in view."""
        bottom = self._bottom()
        if self.follow:
            return bottom
        place = min(self._lines.place_of(self._top), max(0, len(self._lines) - 1))
        sub = self._sub if len(self._lines) and self._lines.at(place) == self._top else 0
        return min((place, sub), bottom)

    def _bottom(self) -> Row:
        """The start from which the last row of the log is the last row in view."""
        place, need = len(self._lines), self.height
        while place > 0 and need > 0:
            place -= 1
            need -= self._rows_of(self._lines.at(place))
        return place, max(0, -need)

    def _hold(self, place: int, sub: int) -> None:
        if self.follow:
            self._cursor = self.cursor
        self.follow = False
        self._top = self._lines.at(place) if len(self._lines) else 0
        self._sub = sub

    def _moved(self, place: int, sub: int, rows: int) -> Row:
        count = len(self._lines)
        while rows < 0 and (place > 0 or sub > 0):
            if sub == 0:
                place -= 1
                sub = self._rows_of(self._lines.at(place))
            taken = min(sub, -rows)
            sub, rows = sub - taken, rows + taken
        while rows > 0 and place < count:
            left = self._rows_of(self._lines.at(place)) - sub
            if rows < left:
                return place, sub + rows
            place, sub, rows = place + 1, 0, rows - left
        return min((place, sub), self._bottom())

    def _bring_into_view(self, place: int) -> None:
        number = self._lines.at(place)
        seen = [row[0] for row in self.visible()]
        if number in seen:
            return
        if not seen or number < seen[0]:
            self._hold(place, 0)
        else:
            self._hold(*self._moved(place, self._rows_of(number), -self.height))

    def _keep_cursor_in_view(self) -> None:
        seen = self.visible()
        if seen and not self.follow:
            self._cursor = max(seen[0][0], min(self._cursor, seen[-1][0]))
