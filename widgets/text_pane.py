"""A framed text to read: headings, sentences, code and diffs, wrapped to the width and scrolled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from cockpit.domain.text import cut_end
from cockpit.widgets.drawing import Line
from cockpit.widgets.framed import FramedPane
from cockpit.widgets.look import Look
from cockpit.widgets.words import wrapped

Role: TypeAlias = Literal["text", "strong", "muted", "ok", "warn", "fatal"]


@dataclass(frozen=True, slots=True)
class Para:
    """Pieces of one paragraph, or of one line of code that is cut instead of wrapped."""

    pieces: tuple[tuple[str, Role], ...]
    indent: int = 0
    hang: int = 0
    wrap: bool = True

    @property
    def plain(self) -> str:
        return " " * self.indent + "".join(text for text, _role in self.pieces)


def para(text: str, role: Role = "text", *, indent: int = 0, hang: int = 0) -> Para:
    return Para(((text, role),), indent, hang)


def code(*pieces: tuple[str, Role], indent: int = 0) -> Para:
    """A line that keeps its blanks and is cut at the edge."""
    return Para(pieces, indent, wrap=False)


BLANK = Para((("", "text"),))


def heading(text: str) -> Para:
    return Para(((text, "strong"),))


Row: TypeAlias = "tuple[int, tuple[tuple[str, Role], ...]]"


def layout(paras: Sequence[Para], width: int) -> list[Row]:
    """Rows of (indent, pieces), wrapped; roles stay with their characters."""
    rows: list[Row] = []
    for one in paras:
        room = max(8, width - one.indent)
        if not one.wrap:
            rows.append((one.indent, one.pieces))
            continue
        rows += [(one.indent, pieces) for pieces in _wrap(one, room)]
    return rows


def _wrap(one: Para, room: int) -> list[tuple[tuple[str, Role], ...]]:
    text = "".join(piece for piece, _role in one.pieces)
    roles = [role for piece, role in one.pieces for _char in piece]
    deepest = min(one.hang, room // 2)
    lines = wrapped(text, room, deepest)
    rows = []
    at = 0
    for number, line in enumerate(lines):
        hang = deepest if number and line.startswith(" " * deepest) else 0
        body = line[hang:]
        start = text.find(body, at) if body else at
        at = start + len(body)
        pieces: list[tuple[str, Role]] = [(" " * hang, "text")] if hang else []
        for place, char in enumerate(body, start):
            role = roles[place] if place < len(roles) else "text"
            if pieces and pieces[-1][1] == role:
                pieces[-1] = (pieces[-1][0] + char, role)
            else:
                pieces.append((char, role))
        rows.append(tuple(pieces))
    return rows


class TextPane(FramedPane):
    """Shows paragraphs; the same paragraphs again change nothing, and its place stays."""

    def __init__(self, title: str = "", *, foot: str = "", id: str | None = None) -> None:
        super().__init__(title, foot=foot, id=id)
        self._paras: tuple[Para, ...] = ()
        self._laid: list[Row] = []
        self._laid_for: tuple[int, tuple[Para, ...]] = (0, ())

    def show(self, paras: Sequence[Para], *, from_top: bool = False) -> None:
        if from_top:
            self._top_row = 0
        if tuple(paras) != self._paras:
            rows = len(self._laid)
            self._paras = tuple(paras)
            fits_itself = self.styles.height is not None and self.styles.height.is_auto
            self.refresh(layout=fits_itself and rows != self.row_count)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """For a height of `auto`: all rows and the frame."""
        return len(layout(self._paras, max(1, width - 4))) + 2

    @property
    def plain_text(self) -> str:
        return "\n".join(one.plain for one in self._paras)

    @property
    def row_count(self) -> int:
        return len(self._layout())

    def _layout(self) -> list[Row]:
        wanted = (self.inner_width, self._paras)
        if self._laid_for != wanted:
            self._laid = layout(self._paras, self.inner_width)
            self._laid_for = wanted
        return self._laid

    def row_strip(self, row: int, look: Look, width: int) -> Strip:
        indent, pieces = self._layout()[row]
        line = Line(look.text).add(" " * indent)
        for text, role in pieces:
            line.add(cut_end(text, max(0, width - line.cells), look.glyphs.cut), _style(look, role))
        return line.strip(width)


def _style(look: Look, role: Role) -> Style:
    style: Style = getattr(look, role)
    return style
