"""Keys and mouse of the log view: what they mean is in LogState, how it looks in LogView."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.message import Message
from textual.selection import Selection

from cockpit.domain.text import cut_end
from cockpit.i18n import _, ngettext
from cockpit.widgets.log_bindings import LOG_BINDINGS
from cockpit.widgets.log_places import END, START, ByteAt, LineNumber
from cockpit.widgets.log_state import COLUMN_STEP, LogState
from cockpit.widgets.type_ahead import TypeAhead

WHEEL_ROWS = 3
CLIPBOARD_BYTES = 100_000
"""Terminals and tmux cut an OSC 52 copy at about this size; a file is the way for more."""

Asking = Literal["search", "filter", "time"]


class LogKeys(TypeAhead):
    """A widget over a LogState; the subclass draws it."""

    BINDINGS: ClassVar[list[BindingType]] = list(LOG_BINDINGS)

    class Asked(Message):
        """A prompt is wanted: what to search, what to filter by, or which time to go to."""

        def __init__(self, what: Asking) -> None:
            super().__init__()
            self.what = what

    class TypedAhead(Message):
        """Belongs into the prompt that was asked for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class PlaceAsked(Message):
        """A place that is not among the lines here is wanted."""

        def __init__(self, place: ByteAt | LineNumber) -> None:
            super().__init__()
            self.place = place

    class EdgeReached(Message):
        """One moves on by so many rows where the lines here end and the log does not."""

        def __init__(self, step: int, rows: int, offset: int) -> None:
            super().__init__()
            self.step = step
            self.rows = rows
            self.offset = offset
            """Of the byte before the first line, or of the last line."""

    class FarHitAsked(Message):
        """The next hit that way is not among the lines of this part."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class TextAsked(Message):
        """To be searched for in the whole log of which this is a part."""

        def __init__(self, typed: str) -> None:
            super().__init__()
            self.typed = typed

    class SaveAsked(Message):
        """The whole log shall be written to a file."""

    class LineOpened(Message):
        """Enter on a line that opened an incident."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    @property
    def state(self) -> LogState | None:
        raise NotImplementedError

    def repaint(self) -> None:
        raise NotImplementedError

    @property
    def searched(self) -> str:
        """What is searched for, as it was typed."""
        hits = None if self.state is None else self.state.hits
        return "" if hits is None else hits.pattern.typed

    def _live(self) -> LogState:
        """The state, or the key is for somebody else."""
        if self.state is None:
            raise SkipAction
        return self.state

    def action_cursor(self, lines: int) -> None:
        state = self._live()
        if self._goes_beyond(state, lines, state.edge_line(lines) == state.window.cursor):
            return
        before = state.window.follow
        state.window.move_cursor(lines)
        state.moved(before)
        self.repaint()

    def scroll_rows(self, rows: int) -> None:
        if (state := self.state) is not None:
            before = state.window.follow
            state.window.scroll(rows)
            state.moved(before)
            self.repaint()

    def action_page(self, pages: int) -> None:
        state = self._live()
        self._scroll_on(state, pages * max(1, state.window.height - 1))

    def _scroll_on(self, state: LogState, rows: int) -> None:
        at_edge = state.window.at_top if rows < 0 else state.window.at_bottom
        if not self._goes_beyond(state, rows, at_edge):
            self.scroll_rows(rows)

    def _goes_beyond(self, state: LogState, rows: int, at_edge: bool) -> bool:
        """Ask for what is not here, when one is where the lines here end."""
        offset = state.beyond(rows) if at_edge else None
        if offset is None:
            return False
        self.post_message(self.EdgeReached(-1 if rows < 0 else 1, rows, offset))
        return True

    def action_start(self) -> None:
        state = self._live()
        if state.is_part:
            self.post_message(self.PlaceAsked(START))
            return
        before = state.window.follow
        state.window.to_start()
        state.moved(before)
        self.repaint()

    def action_follow(self) -> None:
        state = self._live()
        if state.is_part:
            self.post_message(self.PlaceAsked(END))
            return
        state.window.to_end()
        self.repaint()

    def to_share(self, share: float) -> None:
        """From the scrollbar: this share of the lines lies above."""
        if (state := self.state) is not None:
            before = state.window.follow
            last = max(0, len(state.lines) - state.window.height)
            state.window.to_place(round(share * last))
            state.moved(before)
            self.repaint()

    def action_sideways(self, steps: int) -> None:
        state = self._live()
        state.column = max(0, state.column + steps * COLUMN_STEP)
        self.repaint()

    def action_ask(self, what: Asking) -> None:
        self._live()
        self.post_message(self.Asked(what))

    def typed_ahead(self, text: str) -> None:
        self.post_message(self.TypedAhead(text))

    def action_next(self, step: int) -> None:
        state = self._live()
        if state.is_part and not state.has_hit(step):
            self.post_message(self.FarHitAsked(step))
            return
        state.next_hit(step)
        self.repaint()

    def action_wrap(self) -> None:
        state = self._live()
        state.wrap = not state.wrap
        state.column = 0
        self.repaint()

    def action_stamps(self) -> None:
        self._live().next_stamps()
        self.repaint()

    def action_floor(self) -> None:
        state = self._live()
        state.filter_by(state.only, state.floor.next_floor, state.context)
        self.repaint()

    def action_context(self, lines: int) -> None:
        state = self._live()
        if not state.filtered:
            raise SkipAction
        state.more_context(lines)
        self.repaint()

    def action_mark(self) -> None:
        self._live().toggle_mark()
        self.repaint()

    def action_next_mark(self, step: int) -> None:
        self._live().next_mark(step)
        self.repaint()

    def action_save(self) -> None:
        self._live()
        self.post_message(self.SaveAsked())

    def action_open_line(self) -> None:
        state = self._live()
        line = state.line(state.window.cursor)
        if line is None or state.severity(line) is None:
            raise SkipAction
        self.post_message(self.LineOpened(line.number))

    def action_undo(self) -> None:
        if self._live().is_part or not self.undo():
            raise SkipAction

    def undo(self) -> bool:
        """Take back the search, else the filter; False when there is neither."""
        state = self.state
        if state is None or (state.hits is None and not state.filtered):
            return False
        state.note = ""
        if state.hits is None:
            return self.undo_filter()
        state.search(None)
        self.repaint()
        return True

    def undo_filter(self) -> bool:
        """False when there is none."""
        state = self.state
        if state is None or not state.filtered:
            return False
        state.filter_by(None, type(state.floor)(0), 0)
        self.repaint()
        return True

    def grown(self) -> None:
        """Lines were put before or behind those of a part; what is in view stays."""
        if (state := self.state) is not None:
            state.look_again()
            self.repaint()

    def action_copy(self) -> None:
        state = self._live()
        text = self.screen.get_selected_text() or self._marked_text(state)
        size = len(text.encode())
        if size > CLIPBOARD_BYTES:
            words = _("Too much for a clipboard ({size:,} bytes); w writes a file")
            self.notify(words.format(size=size), markup=False)
            return
        self.app.copy_to_clipboard(text)
        count = text.count("\n") + 1
        words = ngettext(
            "Copied {n} line ({size:,} bytes)", "Copied {n} lines ({size:,} bytes)", count
        )
        self.notify(words.format(n=count, size=size), markup=False)

    def _marked_text(self, state: LogState) -> str:
        """The marked lines with their numbers, else the line under the cursor as it is."""
        if not state.marks:
            line = state.line(state.window.cursor)
            return "" if line is None else line.text
        lines = (state.line(number) for number in sorted(state.marks))
        named = state.named
        return "\n".join(f"{named(line)}: {line.text}" for line in lines if line is not None)

    # Selection by mouse: places are (character, line number).

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        state = self.state
        if state is None or not len(state.lines):
            return None
        first, last = state.lines.at(0), state.lines.at(len(state.lines) - 1)
        start = selection.start.y if selection.start is not None else first
        end = selection.end.y if selection.end is not None else last
        taken = []
        for number in range(max(first, start), min(last, end) + 1):
            line = state.line(number)
            span = selection.get_span(number)
            if line is not None and span is not None and self._is_shown(state, number):
                taken.append(line.text[span[0] : None if span[1] == -1 else span[1]])
        return "\n".join(taken), "\n"

    def _is_shown(self, state: LogState, number: int) -> bool:
        place = state.lines.place_of(number)
        return place < len(state.lines) and state.lines.at(place) == number

    def selection_updated(self, selection: Selection | None) -> None:
        """A selection begins: reading begins, so that the text does not run away under it."""
        state = self.state
        if state is not None and selection is not None and state.window.follow:
            state.window.point_at(state.window.cursor)
            state.moved(True)
        self.repaint()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        if self.state is not None:
            self._scroll_on(self.state, -WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        if self.state is not None:
            self._scroll_on(self.state, WHEEL_ROWS)

    def describe_line(self, number: int, cells: int) -> str:
        """A line's own words, for messages about it."""
        line = None if self.state is None else self.state.line(number)
        return "" if line is None else cut_end(line.text, cells)
