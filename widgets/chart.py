"""Area charts as text: values to cells by look-up tables, in blocks or in braille. Nothing scales itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.widgets.glyphs import Glyphs

_LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
_BRAILLE = tuple(tuple(chr(0x2800 + left + right) for right in _RIGHT) for left in _LEFT)
"""A cell by the heights, 0 to 4 dots, of its left and right half."""


def binned(
    points: Iterable[tuple[float, float | None]], end_s: float, span_s: float, bins: int
) -> list[float | None]:
    """The highest value in each of `bins` equal stretches up to `end_s`; None where there is none.

    Points come newest first. Bins stand still on their clock, so that a chart moves by whole cells.
    """
    width_s = span_s / bins
    last = int(end_s // width_s)
    highest: list[float | None] = [None] * bins
    for at_s, value in points:
        place = bins - 1 - (last - int(at_s // width_s))
        if place < 0:
            break
        if value is None or place >= bins:
            continue
        known = highest[place]
        if known is None or value > known:
            highest[place] = value
    return highest


def area(
    values: Sequence[float | None], top: float, rows: int, glyphs: Glyphs, *, braille: bool
) -> list[str]:
    """`rows` lines from top to bottom. A missing value is blank; zero shows as the lowest step."""
    if braille:
        return _braille_area(values, top, rows)
    steps = glyphs.sparks
    heights = [_height(value, top, rows * len(steps)) for value in values]
    cells = (" ", *steps)
    lines = []
    for row in range(rows - 1, -1, -1):
        floor = row * len(steps)
        lines.append("".join(cells[max(0, min(len(steps), h - floor))] for h in heights))
    return lines


def _braille_area(values: Sequence[float | None], top: float, rows: int) -> list[str]:
    """Two values a cell: `values` has twice as many entries as there are cells."""
    heights = [_height(value, top, rows * 4) for value in values]
    if len(heights) % 2:
        heights.insert(0, 0)
    lines = []
    for row in range(rows - 1, -1, -1):
        floor = row * 4
        dots = [max(0, min(4, height - floor)) for height in heights]
        lines.append("".join(_BRAILLE[dots[n]][dots[n + 1]] for n in range(0, len(dots), 2)))
    return lines


def _height(value: float | None, top: float, steps: int) -> int:
    if value is None or top <= 0:
        return 0
    return max(1, min(steps, round(value / top * steps)))


def place_of(at_s: float, end_s: float, span_s: float, cells: int) -> int | None:
    """The cell of a moment on the same axis as `binned`; None when it is outside."""
    width_s = span_s / cells
    place = cells - 1 - (int(end_s // width_s) - int(at_s // width_s))
    return place if 0 <= place < cells else None
