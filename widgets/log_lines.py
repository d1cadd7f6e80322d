"""One log line becomes rows of cells: gutter, stamp, the text with its colours, hits and selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from cockpit.domain.incidents import Severity
from cockpit.domain.text import cell_len, safe_line
from cockpit.engine.api import LogLine
from cockpit.i18n import _
from cockpit.widgets.log_colours import LogLook, log_style
from cockpit.widgets.log_search import Pattern
from cockpit.widgets.log_time import StampMode

DRAWN_CHARS = 4096
"""Characters of a line that are ever drawn; the rest is on the host and in a saved file."""
GUTTER_CELLS = 2
STAMP_CELLS = 9
_HANG = 2

Paint: TypeAlias = "tuple[int, int, Style]"


@dataclass(frozen=True, slots=True)
class LineMarks:
    """What our side says about a line."""

    severity: Severity | None = None
    marked: bool = False
    cursor: bool = False
    unfinished: bool = False
    hit_now: bool = False
    selected: tuple[int, int] | None = None


_PLAIN = LineMarks()


def drawn_text(line: LogLine) -> str:
    """What is drawn of the line's text; a very long line ends by saying how much is missing."""
    text = line.text if line.text.isprintable() else safe_line(line.text, DRAWN_CHARS)
    if len(text) <= DRAWN_CHARS:
        return text
    missing = len(text) - DRAWN_CHARS
    return text[:DRAWN_CHARS] + _(" ... {count:,} more characters").format(count=missing)


def char_at_cell(text: str, cell: int) -> tuple[int, int]:
    """Index of the first character that starts at or after `cell`, and the cell where it starts."""
    if text.isascii():
        place = min(max(0, cell), len(text))
        return place, place
    used = 0
    for place, char in enumerate(text):
        if used >= cell:
            return place, used
        used += cell_len(char)
    return len(text), used


def wrap_places(text: str, width: int) -> list[tuple[int, int]]:
    """Start and end of each row when `text` is wrapped; rows after the first hang by two cells."""
    rows: list[tuple[int, int]] = []
    start, room = 0, width
    while True:
        rest = text[start : start + width + 1]
        if cell_len(rest) <= room:
            rows.append((start, len(text)))
            return rows
        taken, cells = char_at_cell(rest, room - 1)
        if cells > room - 1:
            taken -= 1
        rows.append((start, start + max(1, taken)))
        start += max(1, taken)
        room = max(2, width - _HANG)


@dataclass(frozen=True, slots=True)
class LineArtist:
    """Draws lines of one width and look. It keeps nothing; the view caches its strips."""

    look: LogLook
    width: int
    column: int = 0
    wrap: bool = False
    stamp: Callable[[LogLine], str] | None = None
    stamps: StampMode = "off"
    pattern: Pattern | None = None
    selection_style: Style | None = None

    @property
    def kept_apart(self) -> tuple[object, ...]:
        """Strips drawn under another of these are of no use."""
        look = id(self.look)
        return (
            look,
            self.width,
            self.column,
            self.wrap,
            self.stamps,
            self.pattern,
            self.selection_style,
        )

    @property
    def text_cells(self) -> int:
        return max(4, self.width - GUTTER_CELLS - (STAMP_CELLS if self.stamp else 0))

    def rows(self, line: LogLine) -> int:
        return len(wrap_places(drawn_text(line), self.text_cells)) if self.wrap else 1

    def draw(self, line: LogLine, row: int, marks: LineMarks, *, offsets: bool = False) -> Strip:
        """One row of the line. With `offsets`, cells know their place in the text, for the mouse."""
        text = drawn_text(line)
        if marks == _PLAIN and not offsets and self._is_plain(line, text):
            shown = " " * GUTTER_CELLS + text[self.column : self.column + self.text_cells]
            return Strip([Segment(shown.ljust(self.width), self.look.look.text)], self.width)
        start, end, lead, tail = self._window(text, row)
        base = self._base(marks)
        segments = self._gutter(marks, row, base)
        segments += self._stamp(line, row, base)
        if offsets:
            segments = [_placed(segment, 0, line.number) for segment in segments]
        body = [Segment(" " * lead, base)] if lead else []
        place = start
        for segment in self._pieces(text, start, end, line, marks, base):
            body.append(_placed(segment, place, line.number) if offsets else segment)
            place += len(segment.text)
        if tail:
            body.append(Segment(tail, self.look.look.muted + _ground_of(base)))
        return Strip([*segments, *body]).adjust_cell_length(self.width, base)

    def _is_plain(self, line: LogLine, text: str) -> bool:
        """Most lines: one segment will do, and five times as fast."""
        bare = not (line.spans or self.stamp or self.pattern or self.wrap)
        return bare and text.isascii()

    def _window(self, text: str, row: int) -> tuple[int, int, int, str]:
        """Characters of this row, blanks before them, and the sign after them."""
        room = self.text_cells
        if self.wrap:
            places = wrap_places(text, room)
            start, end = places[min(row, len(places) - 1)]
            return start, end, _HANG if row else 0, "\\" if row < len(places) - 1 else ""
        start, cells = char_at_cell(text, self.column)
        lead = cells - self.column if cells > self.column else 0
        end, cells = char_at_cell(text[start : start + room + 1], room - lead)
        if cells > room - lead:
            end -= 1
        return start, start + end, lead, ""

    def _base(self, marks: LineMarks) -> Style:
        base = self.look.look.text
        if marks.severity == "fatal":
            base += self.look.fatal_line
        elif marks.severity == "warning":
            base += self.look.warning_line
        return base + self.look.cursor if marks.cursor else base

    def _gutter(self, marks: LineMarks, row: int, base: Style) -> list[Segment]:
        look = self.look.look
        sign, style = " ", base
        if row == 0 and marks.severity is not None:
            sign, style = look.glyphs.severity(marks.severity), look.severity(marks.severity)
        elif row == 0 and marks.unfinished:
            sign, style = "~", look.muted
        mark = look.glyphs.mark if marks.marked and row == 0 else " "
        ground = _ground_of(base)
        return [Segment(sign, style + ground), Segment(mark, look.ok + ground)]

    def _stamp(self, line: LogLine, row: int, base: Style) -> list[Segment]:
        if self.stamp is None:
            return []
        text = self.stamp(line) if row == 0 else ""
        style = self.look.look.muted + _ground_of(base)
        return [Segment(text[: STAMP_CELLS - 1].rjust(STAMP_CELLS - 1) + " ", style)]

    def _pieces(
        self, text: str, start: int, end: int, line: LogLine, marks: LineMarks, base: Style
    ) -> list[Segment]:
        paints = self._paints(text, line, marks)
        if not paints:
            return [Segment(text[start:end], base)] if end > start else []
        cuts = sorted(
            {start, end} | {min(max(place, start), end) for paint in paints for place in paint[:2]}
        )
        pieces = []
        for left, right in zip(cuts, cuts[1:], strict=False):
            style = base
            for paint_start, paint_end, paint in paints:
                if paint_start < right and paint_end > left:
                    style += paint
            pieces.append(Segment(text[left:right], style))
        return pieces

    def _paints(self, text: str, line: LogLine, marks: LineMarks) -> list[Paint]:
        palette = self.look.look.palette
        paints: list[Paint] = [
            (start, end, log_style(spec, palette)) for start, end, spec in line.spans[:200]
        ]
        if self.pattern is not None:
            hit = self.look.hit_now if marks.hit_now else self.look.hit
            for number, (start, end) in enumerate(self.pattern.spans(text)):
                if number == 50:
                    break
                paints.append((start, end, hit))
        if marks.selected is not None and self.selection_style is not None:
            start, end = marks.selected
            paints.append((start, len(text) if end == -1 else end, self.selection_style))
        return paints


@lru_cache(64)
def _ground_of(base: Style) -> Style:
    return Style(bgcolor=base.bgcolor)


def _placed(segment: Segment, place: int, number: int) -> Segment:
    """The segment with its place in the log, as Textual's text selection wants it."""
    where = Style.from_meta({"offset": (place, number)})
    return Segment(segment.text, segment.style + where if segment.style else where)
