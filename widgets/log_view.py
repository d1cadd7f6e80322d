"""A tail on a run's log, drawn line by line: only lines in view are read, and only changes repaint."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from cockpit.domain.incidents import Severity
from cockpit.engine.api import LogLine, RunLog
from cockpit.i18n import _
from cockpit.widgets.drawing import Line as Pen
from cockpit.widgets.log_bar import BarFacts, thumb_rows, tick_rows
from cockpit.widgets.log_brush import Brush, bottom_edge, top_edge
from cockpit.widgets.log_colours import log_look
from cockpit.widgets.log_keys import LogKeys
from cockpit.widgets.log_lines import LineArtist, LineMarks
from cockpit.widgets.log_state import LogState
from cockpit.widgets.log_time import stamp
from cockpit.widgets.log_window import Row
from cockpit.widgets.look import Look, look_of

FRAME_S = 0.1
"""At most ten repaints a second; five under a flood that nobody can read."""
STAMPS_NEED_CELLS = 100
_STRIPS_KEPT = 2000
_PLAIN = LineMarks()


class LogView(LogKeys, can_focus=True):
    """Border, lines and status. The column of the scrollbar is a widget beside it."""

    DEFAULT_CSS = """
    LogView { width: 1fr; height: 100%; }
    """

    class BarChanged(Message):
        """The scrollbar beside it should show this."""

        def __init__(self, facts: BarFacts) -> None:
            super().__init__()
            self.facts = facts

    def __init__(self, title: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._title = title
        self._state: LogState | None = None
        self._ending = ""
        self._link = ""
        self._empty = ""
        self._rows: list[Row] = []
        self._strips: dict[tuple[int, int, LineMarks], Strip] = {}
        self._strips_of: tuple[object, ...] = ()
        self._brush: Brush | None = None
        self._drawn: tuple[int, int, bool] = (-1, -1, False)
        self._skipped = False
        self.place_words: Callable[[LogLine], str] | None = None
        """Where a line is, in words, for a part of a log."""
        self.held = False
        """Painting is paused: keys still move, new lines wait."""

    # What the run's screen tells.

    def show(self, log: RunLog, started_s: float | None = None) -> None:
        """Watch this log from its end."""
        self._state = LogState(log, started_s)
        self.repaint()

    def set_trouble(self, severities: Mapping[int, Severity]) -> None:
        if self._state is not None and self._state.set_trouble(severities):
            self.repaint()

    def set_words(self, *, ending: str = "", link: str = "", empty: str = "") -> None:
        """How the run ended, what the link does, and what to say while nothing was printed."""
        if (ending, link, empty) != (self._ending, self._link, self._empty):
            self._ending, self._link, self._empty = ending, link, empty
            if self._rows:
                self._repaint_edges(last_line=False)
            else:
                self.repaint()

    def go_to_line(self, number: int) -> None:
        if self._state is not None:
            self._state.show(number)
            self.repaint()

    @property
    def state(self) -> LogState | None:
        return self._state

    # Repainting.

    def on_mount(self) -> None:
        self.set_interval(FRAME_S, self.frame)

    def frame(self) -> None:
        """Repaint what changed since the last frame: often nothing, or one row."""
        state = self._state
        if state is None or self.held or self.app.screen is not self.screen or not self.size.height:
            return
        version, total, had_open = self._drawn
        scanned = state.advance()
        if state.log.version == version and not scanned:
            return
        arrived = state.log.total_lines - total
        if arrived > self._text_height and not self._skipped and not state.log.ended:
            self._skipped = True
            return
        self._skipped = False
        if self._rows_differ(state, arrived, had_open, total):
            self.repaint()
        else:
            unfinished = bool(self._rows) and self._rows[-1][0] > state.log.total_lines
            self._remember_drawn()
            self._repaint_edges(last_line=unfinished)

    def _rows_differ(self, state: LogState, arrived: int, had_open: bool, total: int) -> bool:
        """Whether other lines are in view than were drawn; a progress bar that moves is the same."""
        if arrived and self._rows and self._rows[-1][0] > total:
            return True
        if state.window.follow:
            return arrived > 0 or had_open != bool(state.log.open_text) or state.wrap
        return state.window.visible() != self._rows

    def _repaint_edges(self, *, last_line: bool) -> None:
        """The status row, and the row of a progress bar."""
        width, height = self.size
        regions = [Region(0, height - 1, width, 1)]
        if last_line and self._rows:
            regions.append(Region(0, len(self._rows), width, 1))
        self.refresh(*regions)
        self._tell_bar()

    def repaint(self) -> None:
        self._remember_drawn()
        self._lay_out()
        self._tell_bar()
        self.refresh()

    def _remember_drawn(self) -> None:
        if self._state is not None:
            log = self._state.log
            self._drawn = (log.version, log.total_lines, bool(log.open_text))

    def _lay_out(self) -> None:
        state = self._state
        if state is None:
            return
        state.window.height = self._text_height
        state.set_text_cells(self._artist(look_of(self), self.size.width).text_cells)
        self._rows = state.window.visible()

    def _tell_bar(self) -> None:
        state = self._state
        if state is None:
            return
        height = self._text_height
        ticks = tick_rows(state.lines, height, state.found())
        thumb = thumb_rows(state.window.place, height, len(state.lines), height)
        self.post_message(self.BarChanged(BarFacts(thumb, ticks, self.has_focus)))

    @property
    def _text_height(self) -> int:
        return max(1, self.size.height - 2)

    def on_resize(self) -> None:
        self._strips.clear()
        self.repaint()

    def on_focus(self) -> None:
        self.repaint()

    def on_blur(self) -> None:
        self.repaint()

    # Drawing.

    def render_lines(self, crop: Region) -> list[Strip]:
        self._brush = self._make_brush(offsets=False)
        try:
            return super().render_lines(crop)
        finally:
            self._brush = None

    def render_line(self, y: int) -> Strip:
        """Outside of a painting it is the mouse that asks, and wants places in the text."""
        brush = self._brush or self._make_brush(offsets=True)
        if y == 0 or y == brush.height - 1:
            return self._edge(brush, top=y == 0)
        state = self._state
        row = self._rows[y - 1] if 0 < y <= len(self._rows) else None
        line = None if state is None or row is None else state.line(row[0])
        if state is None or row is None or line is None:
            words = self._empty_words() if y == 1 and not self._rows else ""
            look = brush.look
            pen = (
                Pen(look.text).add(look.glyphs.vertical, brush.border).add("  " + words, look.muted)
            )
            return pen.strip(brush.width)
        return Strip([brush.side, *self._strip(state, brush, line, row[1])], brush.width)

    def _empty_words(self) -> str:
        hidden = self._state is not None and self._state.filtered and len(self._state.log) > 0
        return _("No line matches; esc shows all.") if hidden else self._empty

    def _strip(self, state: LogState, brush: Brush, line: LogLine, row: int) -> Strip:
        marks = self._marks(state, brush, line)
        if brush.offsets:
            return brush.artist.draw(line, row, marks, offsets=True)
        key = (line.number, row, marks)
        strip = None if marks.unfinished else self._strips.get(key)
        if strip is None:
            strip = brush.artist.draw(line, row, marks)
            if len(self._strips) > _STRIPS_KEPT:
                self._strips.clear()
            self._strips[key] = strip
        return strip

    def _marks(self, state: LogState, brush: Brush, line: LogLine) -> LineMarks:
        here = line.number == brush.cursor
        severity = state.severity(line)
        unfinished = line.number > state.log.total_lines
        if not (here or severity or unfinished or brush.selection or state.marks):
            return _PLAIN
        return LineMarks(
            severity=severity,
            marked=line.number in state.marks,
            cursor=here and brush.focused and not state.window.follow,
            unfinished=unfinished,
            hit_now=here and state.hits is not None,
            selected=None if brush.selection is None else brush.selection.get_span(line.number),
        )

    def _make_brush(self, *, offsets: bool) -> Brush:
        look, state = look_of(self), self._state
        width, height = self.size
        focused = self.has_focus
        border = look.ok if focused else look.faint
        artist = self._artist(look, width)
        if artist.kept_apart != self._strips_of:
            self._strips.clear()
            self._strips_of = artist.kept_apart
        return Brush(
            look=look,
            width=width,
            height=height,
            border=border,
            side=Segment(look.glyphs.vertical, border),
            artist=artist,
            cursor=0 if state is None else state.window.cursor,
            focused=focused,
            selection=self.text_selection,
            offsets=offsets,
        )

    def _artist(self, look: Look, width: int) -> LineArtist:
        state = self._state
        if state is None:
            return LineArtist(log_look(look), max(1, width - 1))
        stamped = state.stamps != "off" and self.app.size.width >= STAMPS_NEED_CELLS
        return LineArtist(
            look=log_look(look),
            width=max(1, width - 1),
            column=state.column,
            wrap=state.wrap,
            stamp=self._stamp if stamped else None,
            stamps=state.stamps if stamped else "off",
            pattern=None if state.hits is None else state.hits.pattern,
            selection_style=self.screen.get_component_rich_style("screen--selection"),
        )

    def _stamp(self, line: LogLine) -> str:
        assert self._state is not None
        state = self._state
        before = state.line(line.number - 1) if state.stamps == "last" else None
        return stamp(state.stamps, line, before, state.started_s)

    def _edge(self, brush: Brush, *, top: bool) -> Strip:
        if top:
            return top_edge(brush, self._title)
        left, right = self._edge_words()
        return bottom_edge(brush, left, right, self._where_style(brush.look))

    def _edge_words(self) -> tuple[str, str]:
        """Left what is set, or what can be done; right where one is."""
        if self._state is None:
            return "", ""
        state = self._state
        left = state.settings()
        if state.stamps != "off" and self.app.size.width < STAMPS_NEED_CELLS:
            left = _("stamps need {cells} columns").format(cells=STAMPS_NEED_CELLS)
        return left or _("/ search   w save"), self._where_words(state)

    def _where_words(self, state: LogState) -> str:
        line = state.line(state.window.cursor) if self.place_words is not None else None
        if self.place_words is None or line is None:
            return state.where(self._ending, self._link)
        return self.place_words(line)

    def _where_style(self, look: Look) -> Style:
        state = self._state
        if state is None or state.window.follow:
            return look.warn if self._link else look.muted
        return look.warn if state.new_trouble_below else look.ok
