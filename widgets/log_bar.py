"""The log's scrollbar and right border in one column: where one is, and where the trouble is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from cockpit.widgets.log_index import Lines
from cockpit.widgets.look import look_of

Tick: TypeAlias = Literal["fatal", "warning", "notice", "mark", "hit"]
_RANKED: tuple[Tick, ...] = ("fatal", "warning", "mark", "notice", "hit")


@dataclass(frozen=True, slots=True)
class BarFacts:
    """All that the column shows; equal facts are not drawn again."""

    thumb: tuple[int, int] = (0, 0)
    ticks: tuple[tuple[int, Tick], ...] = ()
    focused: bool = False


def thumb_rows(place: int, shown: int, count: int, height: int) -> tuple[int, int]:
    """First row of the thumb and the row after its last; nothing when all lines are in view."""
    if count <= shown or height < 1:
        return (0, 0)
    size = max(1, height * shown // count)
    start = (height - size) * place // max(1, count - shown)
    return max(0, min(start, height - size)), max(0, min(start, height - size)) + size


def tick_rows(
    lines: Lines, height: int, found: Sequence[tuple[Tick, Sequence[int]]]
) -> tuple[tuple[int, Tick], ...]:
    """Rows at which something is, the worst of each row; it looks at rows, not at every number."""
    count = len(lines)
    rows: dict[int, Tick] = {}
    if not count or not found:
        return ()
    bounds = [lines.at(min(count - 1, row * count // height)) for row in range(height)]
    bounds.append(lines.at(count - 1) + 1)
    for kind, numbers in sorted(found, key=lambda one: _RANKED.index(one[0])):
        for row in range(height):
            place = bisect_left(numbers, bounds[row])
            if place < len(numbers) and numbers[place] < bounds[row + 1]:
                rows.setdefault(row, kind)
    return tuple(sorted(rows.items()))


class LogBar(Widget):
    """One column; a click or a drag goes there."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    LogBar { width: 1; height: 100%; }
    """

    class Moved(Message):
        """Somebody asks for the place at this share of the log."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def __init__(self) -> None:
        super().__init__()
        self._facts = BarFacts()

    def show(self, facts: BarFacts) -> None:
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def render_line(self, y: int) -> Strip:
        look, height = look_of(self), self.size.height
        edge = look.ok if self._facts.focused else look.faint
        if y in (0, height - 1):
            corner = look.glyphs.top_right if y == 0 else look.glyphs.bottom_right
            return Strip([Segment(corner, edge)], 1)
        row = y - 1
        start, end = self._facts.thumb
        tick = dict(self._facts.ticks).get(row)
        if tick is not None and not (tick == "hit" and start <= row < end):
            sign, style = {
                "fatal": (look.glyphs.lost, look.fatal),
                "warning": (look.glyphs.warning, look.warn),
                "notice": (look.glyphs.notice, look.muted),
                "mark": (look.glyphs.mark, look.ok),
                "hit": ("-", look.ok),
            }[tick]
            return Strip([Segment(sign, style)], 1)
        if start <= row < end:
            return Strip([Segment(look.glyphs.bars[-1], look.muted)], 1)
        return Strip([Segment(look.glyphs.vertical, edge)], 1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        self.capture_mouse()
        self._go(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self:
            self._go(event.y)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        event.stop()
        self.release_mouse()

    def _go(self, y: int) -> None:
        room = max(1, self.size.height - 3)
        self.post_message(self.Moved(max(0, min(y - 1, room)) / room))
