"""What one painting of the log view holds in its hand, and the two edges of its frame."""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

from cockpit.widgets.drawing import Line as Pen
from cockpit.widgets.drawing import width_of
from cockpit.widgets.log_lines import LineArtist
from cockpit.widgets.look import Look


@dataclass(frozen=True, slots=True)
class Brush:
    """What is the same for every row of one painting, so that no row looks it up."""

    look: Look
    width: int
    height: int
    border: Style
    side: Segment
    artist: LineArtist
    cursor: int
    focused: bool
    selection: Selection | None
    offsets: bool


def top_edge(brush: Brush, title: str) -> Strip:
    look = brush.look
    pen = Pen(look.text).add(look.glyphs.top_left, brush.border)
    if title:
        pen.add(f" {title} ", look.muted)
    return pen.fill_to(brush.width, look.glyphs.horizontal, brush.border).strip(brush.width)


def bottom_edge(brush: Brush, left: str, right: str, right_style: Style) -> Strip:
    """`right` says where one is and always stays; `left` leaves when there is no room."""
    look, width, rule = brush.look, brush.width, brush.look.glyphs.horizontal
    pen = Pen(look.text).add(look.glyphs.bottom_left + rule, brush.border)
    end = width - width_of(right) - 3
    if left and pen.cells + width_of(left) + 2 <= end:
        pen.add(f" {left} ", look.muted)
    pen.fill_to(end, rule, brush.border).add(f" {right} ", right_style)
    return pen.fill_to(width, rule, brush.border).strip(width)
