"""A line under construction: pieces of text with styles, measured in cells, that become one Strip."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from cockpit.domain.cells import cell_len

Piece = tuple[str, Style]


def width_of(text: str) -> int:
    """Cells that `text` takes; plain ASCII, by far the most, is not looked at twice."""
    return len(text) if text.isascii() else cell_len(text)


def padded(text: str, cells: int) -> str:
    """`text` with blanks up to `cells`, by cells: Chinese labels are two for each character."""
    return text + " " * (cells - width_of(text))


def padded_left(text: str, cells: int) -> str:
    """`text` against the right edge of `cells`."""
    return " " * (cells - width_of(text)) + text


class Line:
    """Append pieces from left to right; ask where the pen is; end with a strip of an exact width."""

    __slots__ = ("_ground", "_segments", "cells")

    def __init__(self, ground: Style) -> None:
        self._segments: list[Segment] = []
        self._ground = ground
        self.cells = 0

    def add(self, text: str, style: Style | None = None) -> Line:
        """Blanks take their neighbour's style where only the ground shows: each style costs 40 bytes."""
        if not text:
            return self
        style = self._ground if style is None else style
        self.cells += width_of(text)
        if self._segments:
            before = self._segments[-1]
            if before.style is style:
                self._segments[-1] = Segment(before.text + text, style)
                return self
            if before.style is not None and _same_ground(before.style, style):
                if text.isspace():
                    self._segments[-1] = Segment(before.text + text, before.style)
                    return self
                if before.text.isspace():
                    self._segments[-1] = Segment(before.text + text, style)
                    return self
        self._segments.append(Segment(text, style))
        return self

    def add_all(self, pieces: Iterable[Piece]) -> Line:
        for text, style in pieces:
            self.add(text, style)
        return self

    def pad_to(self, cells: int, style: Style | None = None) -> Line:
        """Blanks up to column `cells`; nothing when the pen is there or past it."""
        return self.add(" " * (cells - self.cells), style)

    def fill_to(self, cells: int, sign: str, style: Style) -> Line:
        return self.add(sign * (cells - self.cells), style)

    @property
    def plain(self) -> str:
        return "".join(segment.text for segment in self._segments)

    def strip(self, width: int, over: Style | None = None) -> Strip:
        """The line, cut or filled to `width`; `over` is laid on all of it (a cursor)."""
        self.pad_to(width)
        segments: Iterable[Segment] = self._segments
        if over is not None:
            segments = Segment.apply_style(segments, post_style=over)
        strip = Strip(segments, self.cells)
        return strip.crop(0, width) if self.cells > width else strip


def _same_ground(one: Style, other: Style) -> bool:
    """Whether a blank looks the same in both."""
    return one.bgcolor == other.bgcolor and not (
        one.reverse or other.reverse or one.underline or other.underline
    )


def pieces_width(pieces: Iterable[Piece]) -> int:
    return sum(width_of(text) for text, _style in pieces)


def changed_span(before: Strip, after: Strip) -> tuple[int, int] | None:
    """The first and one past the last cell that differ; None when the strips are equal."""
    if before == after:
        return None
    old, new = list(before), list(after)
    head, start = 0, 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        start += new[head].cell_length
        head += 1
    tail, end = 0, after.cell_length
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        end -= new[-1 - tail].cell_length
        tail += 1
    return (start, end) if end > start else (0, after.cell_length)
