"""Lines out of a byte stream, as a terminal would leave them: carriage returns, backspaces and
cursor-up redraw, everything else harmless, every line with the offset of its first byte.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from typing import Final, NamedTuple

from cockpit.domain.ansi import DISPLAY_CHARS, Span, ansi_spans, strip_ansi

KEPT_BYTES: Final = 64 * 1024
"""Of one line without a newline; what is between this and its end is counted, not kept."""
_ROWS_ABOVE: Final = 32
"""How far up a redraw may reach."""
_MOVES: Final = re.compile(r"\r+|\x08+|\x1b\[(\d{0,4})([AFGK])")
_CURSOR: Final = re.compile(r"\x1b\[\d{0,4}[AFGK]")
_PARTIAL: Final = codecs.getincrementaldecoder("utf-8")


class Line(NamedTuple):
    """One finished line. `number` counts newlines from 1; a redrawn row says how far up it is."""

    number: int
    offset: int
    text: str
    spans: tuple[Span, ...] = ()
    replaces: int = 0
    """0: a new row. N: this is the N-th newest row again (nested progress bars)."""
    bar: bool = False
    """It was redrawn in place: a progress bar's last state."""


class _Row(NamedTuple):
    """The row under the cursor: its text with escapes in it, and where the cursor went."""

    text: str = ""
    up: int = 0
    bottom: str = ""
    """The unfinished last row, while the cursor is above it."""
    moved: bool = False


_BLANK: Final = _Row()


class LineAssembler:
    """Feed it bytes as they come; it gives back finished lines and keeps the unfinished one."""

    def __init__(self, offset: int = 0, number: int = 1, limit: int = DISPLAY_CHARS) -> None:
        self.open_offset = offset
        """Offset of the first byte of the unfinished line."""
        self.number = number
        """The number that the unfinished line will have."""
        self._limit = limit
        self._pending = bytearray()
        self._dropped = 0
        self._size = 0
        self._above: deque[str] = deque(maxlen=_ROWS_ABOVE)
        self._row = _BLANK
        self._open: tuple[str, tuple[Span, ...], bool] | None = None

    def feed(self, data: bytes) -> list[Line]:
        """Take the next bytes; returns the lines that they finished."""
        if not data:
            return []
        self._open = None
        first, *rest = data.split(b"\n")
        self._keep(first)
        if not rest:
            return []
        lines = [self._finish_line()]
        lines += map(self._whole_line, rest[:-1])
        self._keep(rest[-1])
        return lines

    def finish(self) -> list[Line]:
        """The stream has ended: an unfinished line with anything in it is a line too."""
        if not self._size:
            return []
        return [self._finish_line(newline=0)]

    @property
    def end_offset(self) -> int:
        """Offset of the byte that comes next."""
        return self.open_offset + self._size

    @property
    def open_text(self) -> str:
        """The unfinished last line as it looks now: a prompt, or a bar's present state."""
        return self._look()[0]

    @property
    def open_spans(self) -> tuple[Span, ...]:
        return self._look()[1]

    @property
    def open_bar(self) -> bool:
        return self._look()[2]

    def _look(self) -> tuple[str, tuple[Span, ...], bool]:
        if self._open is None:
            text = _PARTIAL("replace").decode(bytes(self._pending))
            row = self._draw(text)
            shown, spans = self._show(row.bottom if row.up else row.text, self._dropped)
            self._open = shown, spans, row.moved
        return self._open

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._dropped and b"\r" not in piece:
            self._dropped += len(piece)
            return
        self._pending += piece
        if len(self._pending) > KEPT_BYTES:
            kept, self._dropped = _bounded(bytes(self._pending), self._dropped)
            self._pending = bytearray(kept)

    def _finish_line(self, newline: int = 1) -> Line:
        raw, dropped, size = bytes(self._pending), self._dropped, self._size
        self._pending, self._dropped, self._size = bytearray(), 0, 0
        self._open = None
        return self._make(raw, dropped, size + newline)

    def _whole_line(self, raw: bytes) -> Line:
        if self._row is _BLANK and len(raw) <= self._limit:
            text = raw.decode("utf-8", "replace")
            if text.isascii() and text.isprintable():
                offset, number = self.open_offset, self.number
                self.open_offset, self.number = offset + len(raw) + 1, number + 1
                self._above.append(text)
                return Line(number, offset, text)
        if len(raw) > KEPT_BYTES:
            return self._make(*_bounded(raw, 0), len(raw) + 1)
        return self._make(raw, 0, len(raw) + 1)

    def _make(self, raw: bytes, dropped: int, size: int) -> Line:
        text = raw.rstrip(b"\r").decode("utf-8", "replace")
        offset, number = self.open_offset, self.number
        self.open_offset, self.number = offset + size, number + 1
        if self._row is _BLANK and not _redraws(text):
            self._above.append(text)
            return Line(number, offset, *self._show(text, dropped))
        row = self._draw(text)
        self._step_down(row)
        return Line(number, offset, *self._show(row.text, dropped), row.up, row.moved)

    def _step_down(self, row: _Row) -> None:
        """A newline: the cursor goes to the next row, which is there already after a cursor-up."""
        if not row.up:
            self._above.append(row.text)
            self._row = _BLANK
            return
        self._above[-row.up] = row.text
        up = row.up - 1
        self._row = _Row(self._above[-up] if up else row.bottom, up, row.bottom if up else "")

    def _draw(self, text: str) -> _Row:
        """What the row under the cursor looks like after `text`; changes nothing of ours."""
        pen = _RowPen(self._row, self._above)
        position = 0
        for match in _MOVES.finditer(text):
            pen.write(text[position : match.start()])
            pen.move(match)
            position = match.end()
        pen.write(text[position:])
        return pen.row()

    def _show(self, text: str, dropped: int) -> tuple[str, tuple[Span, ...]]:
        plain, spans = ansi_spans(text)
        if len(plain) <= self._limit and not dropped:
            return plain, spans
        cut = len(plain[self._limit :].encode("utf-8", "replace")) + dropped
        kept = tuple((a, min(b, self._limit), style) for a, b, style in spans if a < self._limit)
        return f"{plain[: self._limit]}... +{_size_text(cut)}", kept


class _RowPen:
    """Writes on one row the way a terminal does, a redraw replacing the row as a whole."""

    __slots__ = ("_above", "_bottom", "_fresh", "_moved", "_text", "_up")

    def __init__(self, row: _Row, above: deque[str]) -> None:
        self._text, self._up, self._bottom = row.text, row.up, row.bottom
        self._above = above
        self._fresh = True
        self._moved = False

    def row(self) -> _Row:
        return _Row(self._text, self._up, self._bottom, self._moved or self._up > 0)

    def write(self, piece: str) -> None:
        if not piece:
            return
        if self._fresh and strip_ansi(piece):
            self._text = piece
            self._fresh = False
        else:
            self._text = (self._text + piece)[-KEPT_BYTES:]

    def move(self, match: re.Match[str]) -> None:
        how = match[2]
        if how is None and match[0][0] == "\x08":
            self._erase(len(match[0]))
        elif how in (None, "G"):
            self._return(match[1])
        elif how == "K":
            if match[1] == "2" or (self._fresh and match[1] in ("", "0")):
                self._text = ""
        else:
            self._go_up(int(match[1] or 1), to_start=how == "F")

    def _return(self, column: str | None) -> None:
        if column in (None, "", "0", "1"):
            self._fresh = self._moved = True

    def _erase(self, count: int) -> None:
        if not self._fresh:
            self._text = strip_ansi(self._text)[:-count]

    def _go_up(self, rows: int, to_start: bool) -> None:
        if not self._up:
            self._bottom = self._text
        self._up = min(self._up + rows, len(self._above))
        if self._up:
            self._text = self._above[-self._up]
            self._moved = True
        self._fresh = True if to_start else self._fresh


def _redraws(text: str) -> bool:
    if "\r" in text or "\x08" in text:
        return True
    return "\x1b[" in text and _CURSOR.search(text) is not None


def _bounded(raw: bytes, dropped: int) -> tuple[bytes, int]:
    """The part of an endless line that shows: its last redraw, or its beginning."""
    last = raw.rstrip(b"\r").rfind(b"\r")
    if last >= 0:
        raw, dropped = raw[last:], 0
    kept = raw[:KEPT_BYTES]
    return kept, dropped + len(raw) - len(kept)


def _size_text(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"
