"""Incidents: left by urgency or by time, right the whole story of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from cockpit.domain.filter_nodes import Filter
from cockpit.domain.incidents import Incident
from cockpit.engine.events import Event, IncidentChanged
from cockpit.i18n import _
from cockpit.screens.base import CockpitScreen, services
from cockpit.screens.dialogs import Choice, ChoiceMenu
from cockpit.screens.filter_words import read_typed
from cockpit.screens.incident_card import card_text
from cockpit.screens.incident_decisions import IncidentDecisions
from cockpit.screens.incident_export import export_incident
from cockpit.screens.incident_list import ORDERS, Entry, entries_of, in_order, passes
from cockpit.screens.incident_story import Story
from cockpit.screens.incident_words import hidden_words, quiet_words, title_words
from cockpit.screens.navigation import open_host
from cockpit.screens.run import RunScreen
from cockpit.screens.run_lines import lines_of
from cockpit.widgets.filter_bar import FilterBar, FilterInput
from cockpit.widgets.row_list import RowList
from cockpit.widgets.text_pane import TextPane

SIDE_NEEDS_CELLS = 100
MUTES_EVERY_S = 30.0


class IncidentsScreen(IncidentDecisions, CockpitScreen):
    """Nothing is ever lost here: what is settled, muted or of an earlier session is one key away."""

    MODE = "incidents"
    CSS_PATH = "incidents.tcss"
    HINTS = (
        "incidents.apply", "incidents.seen", "incidents.mute", "incidents.close", "list.open",
        "incidents.export", "incidents.filter", "incidents.hidden", "incidents.sort",
        "incidents.copy", "incidents.zoom",
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", _("apply"), id="incidents.apply", tooltip=_("The first profile change, after its diff")),
        Binding("o", "seen", _("seen"), id="incidents.seen", tooltip=_("Out of the count, not out of the list")),
        Binding("m", "mute", _("mute"), id="incidents.mute", tooltip=_("This kind, here or everywhere, for a time")),
        Binding("x", "close_it", _("close"), id="incidents.close", tooltip=_("With a reason")),
        Binding("e,w", "export", _("export"), id="incidents.export", tooltip=_("As Markdown, to a new file")),
        Binding("slash", "filter", _("filter"), id="incidents.filter", tooltip=_("Words, family:leak, host:h100")),
        Binding("H", "hidden", _("all"), id="incidents.hidden", tooltip=_("Settled, muted, earlier too")),
        Binding("s", "sort", _("sort"), id="incidents.sort", tooltip=_("By urgency, time, host or kind")),
        Binding("y", "copy", _("copy"), id="incidents.copy", tooltip=_("The card as text")),
        Binding("z", "zoom", _("zoom"), id="incidents.zoom", tooltip=_("The story alone")),
        Binding("n", "next(1)", _("next"), show=False, id="incidents.next"),
        Binding("N", "next(-1)", _("previous"), show=False, id="incidents.previous"),
        Binding("u", "undo_state", _("undo"), show=False, id="incidents.undo", tooltip=_("Take back the last one")),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._shows_all = False
        self._order = "u"
        self._filter = ""
        self._wanted = Filter()
        self._remembered: Sequence[Incident] = ()
        self._entries: dict[str, Entry] = {}
        self._listed: tuple[object, ...] = ()
        self._drawn: tuple[object, ...] = ()
        self._quiet_since_s: float | None = None
        self._story: Story | None = None

    def compose_body(self) -> ComposeResult:
        with Horizontal(classes="columns"):
            with Vertical(classes="left"):
                yield RowList(_("incidents"), id="incidents")
                yield FilterBar()
            with Vertical(classes="right"):
                yield TextPane(_("its story"), id="card")

    def on_mount(self) -> None:
        self._quiet_since_s = self.engine.now_s()
        self._story = Story(self, self.query_one("#card", TextPane))
        self.query_one(FilterInput).placeholder = _("family:gpu_oom host:h100 !seen opened<2h")
        self.query_one("#incidents", RowList).focus()
        self.run_worker(self._recall(), group="recall", exclusive=True)
        self.set_interval(MUTES_EVERY_S, self._refresh_mutes)

    def select(self, key: str) -> None:
        """From another screen: show this one."""
        incident = self.engine.incidents.get(key)
        if incident is not None:
            entry = Entry(incident)
            self._shows_all |= entry.is_hidden
            if not passes(self.engine, entry, self._wanted):
                self._filter, self._wanted = "", Filter()
        self.wanted_key = key
        if self.is_mounted:
            self.pull()

    @property
    def chosen_entry(self) -> Entry | None:
        key = self.query_one("#incidents", RowList).cursor_key
        return None if key is None else self._entries.get(key)

    @property
    def remembered(self) -> Sequence[Incident]:
        """What earlier sessions left, as far as it was read."""
        return self._remembered

    def pull(self) -> None:
        """The list when it changed, its story each second: only there time goes on."""
        second = int(self.engine.wall_s())
        moves = self._wanted.node is not None or not self._entries
        state = (
            self.engine.incidents.version, self._shows_all, self._order, self._wanted,
            self.wanted_key, self._remembered, self.size, second if moves else second // 3600,
        )  # fmt: skip
        if state != self._listed:
            self._show_list()
            self._listed = state
        if (state, second) != self._drawn:
            self._drawn = (state, second)
            self._show_card()

    def _show_list(self) -> None:
        everyone = entries_of(self.engine.incidents.all(), self._remembered)
        listed = [one for one in everyone if self._shows_all or not one.is_hidden]
        shown = [one for one in listed if passes(self.engine, one, self._wanted)]
        self._entries = {one.key: one for one in shown}
        rows, now_s = self.query_one("#incidents", RowList), self.engine.wall_s()
        rows.show(
            [
                one.row(now_s, is_timeline=self._order == "t")
                for one in in_order(shown, self._order)
            ],
            empty=self._empty_words(everyone, len(listed)),
        )
        if self.wanted_key is not None:
            rows.select(self.wanted_key)
            self.wanted_key = None
        title = title_words(len(listed), shown, ORDERS[self._order][0], self._filter)
        rows.name_it(title, hidden_words(everyone, shown))
        self._fit_list(len(shown))

    def hear(self, event: Event) -> None:
        if isinstance(event, IncidentChanged):
            self.pull()

    def strip_incidents(self, incidents: Sequence[Incident]) -> Sequence[Incident]:
        """The list says it already."""
        return ()

    @on(RowList.Moved)
    def _other(self) -> None:
        self._show_card(from_top=True)
        self.show_hints()

    def _show_card(self, *, from_top: bool = False) -> None:
        if self._story is not None:
            self._story.show(self.chosen_entry, from_top=from_top)

    async def _recall(self) -> None:
        """What earlier sessions saw."""
        self._remembered = tuple(await self.engine.earlier_incidents())
        self.pull()

    def _refresh_mutes(self) -> None:
        if self.is_top:
            self.run_worker(self.engine.refresh_mutes(), group="mutes", exclusive=True)

    def _empty_words(self, everyone: Sequence[Entry], listed: int) -> str:
        if listed and self._filter:
            words = _("No incident fits {filter}. esc shows all {total}.")
            return words.format(filter=self._filter, total=listed)
        since_s = self.engine.now_s() - (self._quiet_since_s or 0)
        return quiet_words(self.engine, everyone, since_s)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < SIDE_NEEDS_CELLS, "-narrow")
        self.call_after_refresh(self._drawn_anew)

    def _fit_list(self, rows: int) -> None:
        """One above the other, the list takes what it needs and leaves most of the height to the story."""
        most = max(5, self.size.height * 2 // 5 - 2)
        height = min(max(rows, 1 if rows else 3) + 2, most) + 2 * self.query_one(FilterBar).is_open
        self.query_one(".left").styles.height = height if self.has_class("-narrow") else "1fr"

    def action_zoom(self) -> None:
        self.toggle_class("-zoomed")
        focus = "#card" if self.has_class("-zoomed") else "#incidents"
        self.query_one(focus).focus()
        self.call_after_refresh(self._drawn_anew)

    def _drawn_anew(self) -> None:
        self._listed = self._drawn = ()
        self.pull()

    def action_copy(self) -> None:
        if (incident := self.chosen) is not None and self._story is not None:
            story = self._story
            text = card_text(
                self.engine, incident, self.look, story.profile(incident), story.contexts(incident)
            )
            self.app.copy_to_clipboard(text)
            self.notify(_("Copied the card as text"), markup=False)

    def action_export(self) -> None:
        if (incident := self.chosen) is not None and self._story is not None:
            profile = self._story.profile(incident)
            work = export_incident(self.app, self.engine, incident, profile)
            self.run_worker(work, group="export", exclusive=True)

    # What shows, and in which order.

    def action_hidden(self) -> None:
        self._shows_all = not self._shows_all
        if self._shows_all:
            self.run_worker(self._recall(), group="recall", exclusive=True)
        self.pull()

    def action_next(self, step: int) -> None:
        self.query_one("#incidents", RowList).action_move(step)

    def action_sort(self) -> None:
        choices = [Choice(key, words) for key, (words, _key) in ORDERS.items()]
        menu = ChoiceMenu(_("Sort incidents"), choices, current=self._order)
        self.app.push_screen(menu, self._sorted)

    def _sorted(self, key: str | None) -> None:
        if key is not None:
            self._order = key
            self.pull()

    def action_filter(self) -> None:
        bar = self.query_one(FilterBar)
        bar.text = self._filter
        bar.open()
        self._drawn_anew()

    @on(FilterBar.Typed)
    def _typed(self, event: FilterBar.Typed) -> None:
        """The last filter that could be read stays in force while one types."""
        saved = services(self).options.filters
        found = read_typed(self.query_one(FilterBar), event.text, saved)
        if found is not None:
            self._wanted, self._filter = found, event.text.strip()
            self.pull()

    @on(FilterBar.Accepted)
    def _accepted(self) -> None:
        self.query_one(FilterBar).close()
        self.query_one("#incidents", RowList).focus()
        self._drawn_anew()

    @on(FilterBar.Left)
    def _left(self) -> None:
        self.undo_layer()

    def undo_layer(self) -> bool:
        """The zoom, then the filter."""
        if self.has_class("-zoomed"):
            self.action_zoom()
            return True
        bar = self.query_one(FilterBar)
        if not self._filter and not bar.is_open:
            return False
        self._filter = bar.text = ""
        self._wanted = Filter()
        bar.close()
        self.query_one("#incidents", RowList).focus()
        self._drawn_anew()
        return True

    @on(RowList.Opened)
    def _evidence(self) -> None:
        """The evidence in the log, or the host when there is no run."""
        incident = self.chosen
        if incident is None:
            return
        if incident.run is not None and self.engine.runs.get(incident.run) is not None:
            screen = RunScreen(incident.run)
            self.app.push_screen(screen)
            lines = lines_of(incident)
            if lines:
                screen.call_after_refresh(screen.show_line, min(lines))
        elif incident.host is not None and incident.host in self.engine.hosts:
            open_host(self.app, incident.host)
