"""Bars and sparklines as text: fixed axes, one look-up a cell, no style."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from cockpit.engine.fleet import GpuHistory
from cockpit.widgets.glyphs import Glyphs


def bar(fraction: float | None, cells: int, glyphs: Glyphs) -> tuple[str, str]:
    """The filled and the empty part of a bar of `cells` cells; what is used at all shows."""
    if fraction is None or cells <= 0:
        return "", " " * max(0, cells)
    steps = len(glyphs.bars)
    filled = round(min(1.0, max(0.0, fraction)) * cells * steps)
    if filled == 0 and fraction > 0.004:
        filled = 1
    full, rest = divmod(filled, steps)
    text = glyphs.bars[-1] * full + (glyphs.bars[rest - 1] if rest else "")
    return text, glyphs.bar_empty * (cells - len(text))


def spark(values: Sequence[float | None], top: float, glyphs: Glyphs) -> str:
    """One cell for each value on an axis from 0 to `top`; a missing value and zero are blank."""
    levels = len(glyphs.sparks)
    return "".join(
        " "
        if value is None or value <= 0
        else glyphs.sparks[min(levels - 1, int(value * levels / top))]
        for value in values
    )


def recent(history: GpuHistory | None, cells: int, bin_s: float) -> list[float | None]:
    """The last `cells` bins of utilisation, each its mean; bins stand still on the host's clock."""
    sums, counts = [0.0] * cells, [0] * cells
    if history is None or not history.at_s:
        return [None] * cells
    newest = int(history.at_s[-1] // bin_s)
    most = int(cells * bin_s * 4) + 4
    backwards = zip(reversed(history.at_s), reversed(history.util_pct), strict=True)
    for at_s, value in islice(backwards, most):
        place = cells - 1 - (newest - int(at_s // bin_s))
        if place < 0:
            break
        if value is not None and place < cells:
            sums[place] += value
            counts[place] += 1
    return [total / count if count else None for total, count in zip(sums, counts, strict=True)]
