"""How wide text is in a terminal, and how to cut it to a width: by cells, never by characters."""

from __future__ import annotations

import unicodedata
from typing import Final

_REMEMBERED: Final = 8192
"""Widths kept; a host that prints every code point there is must not fill our memory."""


class _Widths(dict[str, int]):
    """Width of one character, computed once."""

    def __missing__(self, char: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        width = self[char] = _char_width(char)
        return width


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    if "\u1160" <= char <= "\u11ff":  # Hangul vowels and finals join the syllable before them
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


_WIDTHS: Final = _Widths()


def cell_len(text: str) -> int:
    """The cells that `text` takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_WIDTHS.__getitem__, text))


def _head(text: str, cells: int) -> str:
    if text.isascii():
        return text[:cells]
    used = 0
    for position, char in enumerate(text):
        used += _WIDTHS[char]
        if used > cells:
            return text[:position]
    return text


def _tail(text: str, cells: int) -> str:
    if text.isascii():
        return text[len(text) - cells :] if cells > 0 else ""
    used = 0
    for position in range(len(text) - 1, -1, -1):
        used += _WIDTHS[text[position]]
        if used > cells:
            return text[position + 1 :]
    return text


def cut_end(text: str, cells: int, ellipsis: str = "…") -> str:
    """`text` in at most `cells` cells; what is cut off at the end leaves an ellipsis."""
    if cell_len(text) <= cells:
        return text
    room = cells - cell_len(ellipsis)
    return _head(text, room) + ellipsis if room >= 0 else _head(text, max(0, cells))


def cut_middle(text: str, cells: int, ellipsis: str = "…") -> str:
    """`text` in at most `cells` cells; both ends stay, since names differ at their ends."""
    if cell_len(text) <= cells:
        return text
    room = cells - cell_len(ellipsis)
    if room < 2:
        return cut_end(text, cells, ellipsis)
    head = _head(text, (room + 1) // 2)
    return head + ellipsis + _tail(text, room - cell_len(head))
