"""Every host and card in one widget, drawn line by line: only what shows and what changed is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cockpit.domain.models import HostName
from cockpit.i18n import _
from cockpit.widgets.card_line import NOBODY, Columns, choose_columns, column_at
from cockpit.widgets.drawing import changed_span
from cockpit.widgets.explained import explain_number
from cockpit.widgets.fleet_model import Density, Place, Plan
from cockpit.widgets.host_pane import (
    HostFace,
    pane_bottom,
    pane_card,
    pane_top,
    pane_words,
    row_card,
    row_host,
)
from cockpit.widgets.look import Look, look_of

Faces = Callable[[HostName], HostFace]


class FleetView(ScrollView, can_focus=True):
    """Given a plan of lines and a way to look at a host, it draws; the cursor is on a card or a host."""

    DEFAULT_CSS = """
    FleetView { height: 1fr; width: 100%; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", _("open"), id="open", tooltip=_("The host under the cursor")),
        Binding("j,down", "move(1)", _("down"), id="move.down", show=False),
        Binding("k,up", "move(-1)", _("up"), id="move.up", show=False),
        Binding("pagedown,ctrl+d", "page(1)", _("page down"), id="move.pagedown", show=False),
        Binding("pageup,ctrl+u", "page(-1)", _("page up"), id="move.pageup", show=False),
        Binding("g,home", "edge(-1)", _("top"), id="move.top", show=False),
        Binding("G,end", "edge(1)", _("bottom"), id="move.bottom", show=False),
    ]

    class Opened(Message):
        """Enter or a double click on a host or card."""

        def __init__(self, host: HostName, card: int | None) -> None:
            super().__init__()
            self.host = host
            self.card = card

    class Moved(Message):
        """The cursor or the window on the lines moved."""

    def __init__(self, faces: Faces) -> None:
        super().__init__()
        self._faces = faces
        self._plan = Plan()
        self._density: Density = "row"
        self._columns = choose_columns(80, 16, 10)
        self._strips: dict[int, Strip] = {}
        self._drawn_tokens: dict[HostName, object] = {}
        self._at: tuple[HostName, int | None] | None = None
        self._drawn_look: Look | None = None
        self._pointed = ""
        self.drawn: Counter[HostName] = Counter()
        """How often a line of each host was drawn; tests count on it."""

    # -- data ------------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def density(self) -> Density:
        return self._density

    @property
    def cursor(self) -> tuple[HostName, int | None] | None:
        """The host and card that the cursor is on; None when nothing shows."""
        return self._at

    def show_plan(self, plan: Plan, density: Density, memory: int) -> None:
        """Take new lines; equal ones change nothing on the screen."""
        columns = self._columns_for(plan, density, memory)
        if (plan, density, columns) == (self._plan, self._density, self._columns):
            return
        self._plan, self._density, self._columns = plan, density, columns
        self._strips.clear()
        self._keep_cursor()
        self.virtual_size = Size(self.scrollable_content_region.width, len(plan.places))
        self.refresh()

    def _columns_for(self, plan: Plan, density: Density, memory: int) -> Columns:
        width = self.scrollable_content_region.width or self.size.width
        longest = max((len(entry.host) for entry in plan.entries), default=8)
        if density == "pane":
            return choose_columns(width - 2, 0, memory)
        return choose_columns(width, min(max(longest, 6), 14 if width < 100 else 22) + 3, memory)

    def show_changes(self, tokens: Mapping[HostName, object]) -> None:
        """Redraw the visible lines of hosts whose token differs, and only the cells that changed."""
        self._current_look()
        top, bottom = self._window()
        stale = {host for host, token in tokens.items() if self._drawn_tokens.get(host) != token}
        if not stale:
            return
        self._drawn_tokens.update({host: tokens[host] for host in stale})
        for number in [n for n in self._strips if self._host_of(n) in stale]:
            if top <= number < bottom:
                self._redraw(number)
            else:
                del self._strips[number]

    def _host_of(self, number: int) -> HostName:
        return self._plan.entries[self._plan.places[number].entry].host

    def _window(self) -> tuple[int, int]:
        top = self.scroll_offset.y
        return top, min(top + self.size.height, len(self._plan.places))

    def _current_look(self) -> Look:
        """What was drawn in another look is worth nothing."""
        look = look_of(self)
        if look is not self._drawn_look:
            self._strips.clear()
            self._drawn_look = look
        return look

    def _redraw(self, number: int) -> None:
        before, after = self._strips[number], self._draw(number)
        self._strips[number] = after
        span = changed_span(before, after)
        if span is not None:
            start, end = span
            self.refresh(Region(start, number - self.scroll_offset.y, end - start, 1))

    # -- drawing ---------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        number, look = self.scroll_offset.y + y, self._current_look()
        if number >= len(self._plan.places):
            return Strip.blank(self.size.width, look.text)
        strip = self._strips.get(number)
        if strip is None:
            strip = self._strips[number] = self._draw(number)
        return strip

    def _draw(self, number: int) -> Strip:
        look, place = look_of(self), self._plan.places[number]
        host = self._plan.entries[place.entry].host
        face, width = self._faces(host), self.scrollable_content_region.width
        self.drawn[host] += 1
        cursor = self._at == (host, place.card) and place.selectable
        columns = self._columns
        if self._density == "row":
            if place.kind == "words":
                return row_host(face, columns, width, look, cursor)
            assert place.card is not None
            return row_card(face, place.card, place.first, columns, width, look, cursor)
        if place.kind == "top":
            return pane_top(face, width, look)
        if place.kind == "bottom":
            return pane_bottom(width, look)
        if place.kind == "words":
            return pane_words(face, width, look, cursor)
        assert place.card is not None
        return pane_card(face, place.card, columns, width, look, cursor)

    # -- cursor ----------------------------------------------------------------------------------

    def select(self, host: HostName, card: int | None) -> bool:
        """Put the cursor on a card or its host and bring it into view."""
        number = self._plan.find(host, card)
        if number is None:
            return False
        self._go(number)
        return True

    def _keep_cursor(self) -> None:
        number = self._plan.find(*self._at) if self._at is not None else None
        if number is None:
            number = next(
                (n for n, place in enumerate(self._plan.places) if place.selectable), None
            )
        self._at = None if number is None else self._key(self._plan.places[number])

    def _key(self, place: Place) -> tuple[HostName, int | None]:
        return self._plan.entries[place.entry].host, place.card

    def _go(self, number: int) -> None:
        before = self._plan.find(*self._at) if self._at is not None else None
        self._at = self._key(self._plan.places[number])
        for line in {before, number} - {None}:
            assert line is not None
            self._strips.pop(line, None)
            self.refresh_line(line)
        self._bring_into_view(number)
        self.post_message(self.Moved())

    def _bring_into_view(self, number: int) -> None:
        """The whole of a host's first line is shown with its card where both fit."""
        top, height = self.scroll_offset.y, self.size.height
        start = self._plan.starts[self._plan.places[number].entry]
        upper = start if number - start < height - 1 else number
        lower = number + (1 if self._density == "pane" else 0)
        if upper < top:
            self.scroll_to(y=upper, animate=False)
        elif lower >= top + height:
            self.scroll_to(y=lower - height + 1, animate=False)

    def _selectable(self) -> list[int]:
        return [n for n, place in enumerate(self._plan.places) if place.selectable]

    def action_move(self, step: int) -> None:
        self._step(step)

    def action_page(self, direction: int) -> None:
        self._step(direction * max(1, self.size.height - 2))

    def action_edge(self, direction: int) -> None:
        self._step(direction * len(self._plan.places))

    def _step(self, step: int) -> None:
        lines = self._selectable()
        if not lines or self._at is None:
            return
        now = self._plan.find(*self._at)
        position = lines.index(now) if now in lines else 0
        self._go(lines[max(0, min(len(lines) - 1, position + step))])

    def action_open(self) -> None:
        if self._at is not None:
            self.post_message(self.Opened(*self._at))

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number >= len(self._plan.places):
            return
        place = self._plan.places[number]
        key = self._key(place)
        if self.select(*key) and event.chain == 2:
            self.post_message(self.Opened(*key))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """What the pointer rests on explains itself."""
        words = self._words_at(event.x, self.scroll_offset.y + event.y)
        if words != self._pointed:
            self._pointed = words
            self.tooltip = Content(words) if words else None

    def _words_at(self, x: int, number: int) -> str:
        if not 0 <= number < len(self._plan.places):
            return ""
        place = self._plan.places[number]
        face = self._faces(self._plan.entries[place.entry].host)
        gpu = None if place.card is None else face.card(place.card)
        start = 2 if self._density == "pane" else 1 + self._columns.host
        column = column_at(self._columns, x - start)
        if gpu is None or column is None:
            return ""
        shown = "error" if gpu.error is not None and gpu.util_pct is None else column
        holder = face.holders.get((face.state.host, gpu.index), NOBODY)
        return explain_number(face.state, gpu, holder, face.now_s, shown)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Moved())

    def hosts_outside(self) -> tuple[int, int]:
        """How many hosts begin above and below what shows."""
        top, bottom = self._window()
        above = sum(start < top for start in self._plan.starts)
        below = sum(start >= bottom for start in self._plan.starts)
        return above, below
