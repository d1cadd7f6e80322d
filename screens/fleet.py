"""The fleet: every host and card, trouble first in the eye, one key from everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from cockpit.domain.filter import Filter, FilterError, parse_filter
from cockpit.domain.filter_nodes import shown
from cockpit.domain.models import HostName
from cockpit.domain.occupancy import largest_free_mib
from cockpit.domain.units import mib_text
from cockpit.i18n import _, ngettext
from cockpit.i18n.sentences import join
from cockpit.screens.base import CockpitScreen, services
from cockpit.screens.dialogs import Choice, ChoiceMenu
from cockpit.screens.filter_words import caret_line
from cockpit.screens.fleet_data import FleetData
from cockpit.screens.host_actions import HostActions
from cockpit.screens.navigation import open_first_start, open_host
from cockpit.widgets.explained import explain_card
from cockpit.widgets.filter_bar import FilterBar
from cockpit.widgets.fleet_model import FleetOrder, SortKey
from cockpit.widgets.fleet_note import FleetNote
from cockpit.widgets.fleet_view import FleetView
from cockpit.widgets.host_pane import HostFace

if TYPE_CHECKING:
    from cockpit.engine.events import Event
    from cockpit.widgets.text_pane import Para

DENSITIES = ("auto", "pane", "row")


class FleetScreen(HostActions, CockpitScreen):
    """Wires the fleet store to one drawn widget."""

    MODE = "fleet"
    CSS_PATH = "fleet.tcss"
    HINTS = (
        "open", "fleet.filter", "fleet.sort", "fleet.density", "host.visit", "fleet.add",
        "fleet.trouble", "host.launch", "host.trust", "palette",
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", _("filter"), id="fleet.filter", tooltip=_("Narrow the list")),
        Binding("s", "sort", _("sort"), id="fleet.sort", tooltip=_("One letter a column; again: reverse")),
        Binding("d", "density", _("density"), id="fleet.density", tooltip=_("Panes, rows, or what fits")),
        Binding("plus,equals_sign", "denser(-1)", _("larger"), id="fleet.larger", show=False),
        Binding("minus", "denser(1)", _("smaller"), id="fleet.smaller", show=False),
        Binding("exclamation_mark", "trouble", _("only trouble"), id="fleet.trouble", tooltip=_("Hide what is well")),
        Binding("n", "next_trouble(1)", _("next trouble"), id="next", show=False),
        Binding("N", "next_trouble(-1)", _("previous trouble"), id="previous", show=False),
        Binding("A", "add_host", _("add host"), id="fleet.add", tooltip=_("Paste an ssh command")),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._data: FleetData | None = None
        self._density = "auto"
        self._fix: FilterError | None = None
        self._typed_filter = Filter()

    def compose_body(self) -> ComposeResult:
        yield FilterBar()
        yield FleetView(self._face)
        yield FleetNote()

    def on_mount(self) -> None:
        self._density = services(self).options.density
        self.query_one(FleetView).focus()

    @property
    def data(self) -> FleetData:
        if self._data is None:
            self._data = FleetData(self.engine)
        return self._data

    def _face(self, host: HostName) -> HostFace:
        return self.data.face(host)

    def pull(self) -> None:
        view = self.query_one(FleetView)
        size = view.size
        if not size.width:
            return
        plan, density = self.data.plan(self._density, size.width, size.height)
        view.show_plan(plan, density, self.data.memory_cells())
        view.show_changes(self.data.tokens())
        self._show_note()

    def hear(self, event: Event) -> None:
        self.pull()

    def on_resize(self) -> None:
        self.call_after_refresh(self.pull)

    @on(FleetView.Moved)
    def _moved(self) -> None:
        self._show_note()
        self.show_hints()

    @on(FleetView.Opened)
    def _opened(self, event: FleetView.Opened) -> None:
        if not self.open_trouble(event.host):
            open_host(self.app, event.host)

    def explain(self) -> list[Para]:
        place = self.cursor_place()
        state = None if place is None else self.engine.fleet.hosts.get(place[0])
        cards = state.latest.gpus if state is not None and state.latest is not None else ()
        card = next((gpu for gpu in cards if place is not None and gpu.index == place[1]), None)
        if state is None or card is None:
            return []
        holder = self.data.holder(state.host, card.index)
        return explain_card(state, card, holder, self.engine.now_s())

    def cursor_place(self) -> tuple[HostName, int | None] | None:
        return self.query_one(FleetView).cursor

    # -- the line under the fleet ----------------------------------------------------------------

    def _show_note(self) -> None:
        view, data = self.query_one(FleetView), self.data
        left = [f"{shown(term)}" for term in data.filter.terms]
        if data.only_trouble:
            left.append(_("only trouble"))
        if left:
            count = _("{shown} of {cards}").format(shown=data.counts.shown, cards=data.counts.cards)
            if data.counts.unknown:
                count += ", " + _("{count} unknown").format(count=data.counts.unknown)
            left.append(count)
            if not view.plan.entries:
                left = [self._nothing_words(data.filter)]
        if data.order.key != "file":
            left.append(_sort_words(data.order))
        self.query_one(FleetNote).show("   ".join(left), self._outside_words(view))

    def _outside_words(self, view: FleetView) -> str:
        above, below = view.hosts_outside()
        parts = []
        if above:
            parts.append(ngettext("{n} host above", "{n} hosts above", above).format(n=above))
        if below:
            parts.append(ngettext("{n} host below", "{n} hosts below", below).format(n=below))
        return ", ".join(parts)

    def _nothing_words(self, found: Filter) -> str:
        """Why the list is empty, with the nearest thing there is."""
        if self.data.only_trouble and found.node is None:
            everything = _("No trouble anywhere.  ! shows all {cards}")
            return everything.format(cards=self.data.counts.cards)
        words = _(" and ").join(shown(term) for term in found.terms)
        largest = largest_free_mib(gpu for _state, gpu in self.data.all_cards())
        text = [_("No card has {words}.").format(words=words)]
        if "free" in words and largest is not None:
            text.append(_("Largest free now: {size}.").format(size=mib_text(largest, width=0)))
        text.append(_("esc shows all {cards}").format(cards=self.data.counts.cards))
        return join(tuple(text))

    # -- filter ----------------------------------------------------------------------------------

    def action_filter(self) -> None:
        self.query_one(FilterBar).open()

    @on(FilterBar.Typed)
    def _typed(self, event: FilterBar.Typed) -> None:
        """The last filter that could be read stays in force while one types."""
        bar = self.query_one(FilterBar)
        saved = services(self).options.filters
        text = saved.get(event.text.strip().removeprefix("/"), event.text)
        try:
            found = parse_filter(text)
        except FilterError as error:
            self._fix = error
            bar.say(caret_line(error, 0), wrong=True)
            return
        self._fix = None
        self._typed_filter = found
        if found.node is not None and not self.data.passes(found):
            bar.say(self._nothing_words(found), wrong=True)
            return
        self._use(found)
        bar.say("   ".join(shown(term) for term in found.terms), wrong=False)

    def _use(self, found: Filter) -> None:
        self.data.set_choice(filter=found)
        self.pull()

    @on(FilterBar.FixTaken)
    def _take_fix(self) -> None:
        bar, fix = self.query_one(FilterBar), self._fix
        if fix is not None and fix.fix:
            end = len(bar.text) if fix.code == "unclosed" else fix.end
            start = len(bar.text) if fix.code == "unclosed" else fix.start
            bar.text = bar.text[:start] + fix.fix + bar.text[end:]

    @on(FilterBar.Accepted)
    def _accepted(self) -> None:
        """Enter takes what was typed, even when nothing passes it: the line below says why."""
        if self._fix is None:
            self._use(self._typed_filter)
        self.query_one(FilterBar).close()
        self.query_one(FleetView).focus()

    @on(FilterBar.Left)
    def _left(self) -> None:
        bar = self.query_one(FilterBar)
        bar.text = ""
        bar.close()
        self.query_one(FleetView).focus()
        self._use(Filter())

    def undo_layer(self) -> bool:
        if self.data.filter.node is not None:
            self._left()
            return True
        if self.data.only_trouble:
            self.action_trouble()
            return True
        return False

    # -- what shows and how ----------------------------------------------------------------------

    @work(exclusive=True, group="menu")
    async def action_sort(self) -> None:
        order = self.data.order
        choices = [Choice(letter, words) for letter, (_key, words) in _sort_letters().items()]
        now = next(letter for letter, (key, _w) in _sort_letters().items() if key == order.key)
        letter = await self.app.push_screen_wait(
            ChoiceMenu(
                _("Sort by"), choices, current=now, body=_("the same letter again turns it round")
            )
        )
        if letter is not None:
            key = _sort_letters()[letter][0]
            self.data.set_choice(order=FleetOrder(key, key == order.key and not order.reverse))
            self.pull()

    def action_density(self) -> None:
        self._density = DENSITIES[(DENSITIES.index(self._density) + 1) % len(DENSITIES)]
        words = {"auto": _("what fits"), "pane": _("panes"), "row": _("rows")}[self._density]
        self.app.notify(_("density: {words}").format(words=words), timeout=2, markup=False)
        self.pull()

    def action_denser(self, step: int) -> None:
        self._density = "row" if step > 0 else "pane"
        self.pull()

    def action_trouble(self) -> None:
        self.data.set_choice(only_trouble=not self.data.only_trouble)
        self.pull()

    def action_next_trouble(self, step: int) -> None:
        view, places = self.query_one(FleetView), self.data.trouble_places()
        if not places:
            self.app.notify(_("no trouble anywhere"), timeout=2, markup=False)
            return
        order = [(entry.host, place.card) for place, entry in self._selectable()]
        here = order.index(view.cursor) if view.cursor in order else 0
        spots = [order.index(place) for place in places]
        ahead = [spot for spot in spots if (spot > here if step > 0 else spot < here)]
        target = (ahead or spots)[0 if step > 0 else -1]
        view.select(*order[target])

    def _selectable(self):  # type: ignore[no-untyped-def]
        plan = self.query_one(FleetView).plan
        return [(place, plan.entries[place.entry]) for place in plan.places if place.selectable]

    def action_add_host(self) -> None:
        open_first_start(self.app)


def _sort_letters() -> dict[str, tuple[SortKey, str]]:
    return {
        "o": ("file", _("order of hosts.toml")),
        "n": ("name", _("name")),
        "t": ("trouble", _("trouble first")),
        "f": ("free", _("free memory, most first")),
        "u": ("util", _("utilisation, most first")),
        "m": ("memory", _("memory in use, most first")),
        "c": ("temp", _("temperature, hottest first")),
        "p": ("price", _("price, dearest first")),
    }


def _sort_words(order: FleetOrder) -> str:
    words = next(words for key, words in _sort_letters().values() if key == order.key)
    return words + (" " + _("(turned round)") if order.reverse else "")
