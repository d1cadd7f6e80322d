"""Sentences broken into lines by cells: between words, and between wide characters where they allow it."""

from __future__ import annotations

import re

from cockpit.domain.text import cell_len

_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60"
_CLOSING = "，。、：；）」』】》？！,.;:)]}!?%"
_PIECE = re.compile(rf"(?:[{_WIDE}]|[^\s{_WIDE}]+)[{re.escape(_CLOSING)}]*|\s+")


def wrapped(text: str, width: int, hang: int = 0) -> list[str]:
    """Lines of at most `width` cells; those after the first are indented by `hang` blanks."""
    lines: list[str] = []
    width = max(4, width)
    for paragraph in text.split("\n"):
        lines += _wrapped_one(paragraph, width, min(hang, width // 2))
    return lines


def _wrapped_one(text: str, width: int, hang: int) -> list[str]:
    lines = [""]
    for piece in _PIECE.findall(text):
        if cell_len(lines[-1]) + cell_len(piece.rstrip()) <= width:
            lines[-1] += piece
        elif piece.isspace():
            continue
        else:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * hang)
            lines[-1] += _split_long(piece, width, hang, lines)
    lines[-1] = lines[-1].rstrip() if lines[-1].strip() else ""
    return lines


def _split_long(piece: str, width: int, hang: int, lines: list[str]) -> str:
    """Breaks a word that is longer than a line; what is left begins the last line."""
    while cell_len(piece) > width - hang:
        taken = 0
        used = 0
        for char in piece:
            if used + cell_len(char) > width - hang:
                break
            used += cell_len(char)
            taken += 1
        lines[-1] += piece[: max(1, taken)]
        lines.append(" " * hang)
        piece = piece[max(1, taken) :]
    return piece
