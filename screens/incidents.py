"""Incidents: left by urgency, right the whole story of the chosen one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from cockpit.domain.incidents import Incident
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text
from cockpit.engine.events import Event, IncidentChanged
from cockpit.i18n import _, ngettext
from cockpit.i18n.messages import describe_incident
from cockpit.i18n.sentences import join
from cockpit.screens.base import CockpitScreen
from cockpit.screens.dialogs import Choice, ChoiceMenu
from cockpit.screens.incident_card import card_paras, card_text
from cockpit.screens.navigation import open_host
from cockpit.screens.run import RunScreen
from cockpit.screens.run_actions import apply_remedy, read_profile
from cockpit.screens.run_lines import lines_of
from cockpit.widgets.incident_row import SETTLED, IncidentRow
from cockpit.widgets.row_list import RowList
from cockpit.widgets.text_pane import TextPane, para

_REASONS = {
    "f": _("fixed"),
    "a": _("false alarm"),
    "m": _("my doing"),
}


class IncidentsScreen(CockpitScreen):
    """Nothing is ever lost here: closed ones are one key away."""

    MODE = "incidents"
    CSS_PATH = "lists.tcss"
    HINTS = (
        "incidents.apply",
        "incidents.seen",
        "incidents.close",
        "list.open",
        "incidents.copy",
        "incidents.hidden",
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", _("apply"), id="incidents.apply", tooltip=_("The first profile change, after its diff")),
        Binding("o", "seen", _("seen"), id="incidents.seen", tooltip=_("Out of the count, not out of the list")),
        Binding("x", "close_it", _("close"), id="incidents.close", tooltip=_("With a reason")),
        Binding("y", "copy", _("copy"), id="incidents.copy", tooltip=_("The card as text")),
        Binding("H", "hidden", _("closed ones"), id="incidents.hidden", tooltip=_("Show or hide what is settled")),
        Binding("n", "next(1)", _("next"), show=False, id="incidents.next"),
        Binding("N", "next(-1)", _("previous"), show=False, id="incidents.previous"),
        Binding("u", "undo_state", _("undo"), show=False, id="incidents.undo", tooltip=_("Take back seen or closed")),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._show_settled = False
        self._profiles: dict[str, Mapping[str, object] | None] = {}
        self._drawn: tuple[object, ...] = ()
        self._undo: tuple[str, str] | None = None
        self._wanted: str | None = None
        self._quiet_since_s: float | None = None

    def compose_body(self) -> ComposeResult:
        with Horizontal(classes="columns"):
            with Vertical(classes="left"):
                yield RowList(_("incidents"), id="incidents")
            with Vertical(classes="right"):
                yield TextPane(_("its story"), id="card")

    def on_mount(self) -> None:
        self._quiet_since_s = self.engine.now_s()
        self.query_one("#incidents", RowList).focus()

    def select(self, key: str) -> None:
        """From another screen: show this one."""
        incident = self.engine.incidents.get(key)
        self._show_settled |= incident is not None and incident.state in SETTLED
        self._wanted = key
        if self.is_mounted:
            self.pull()

    @property
    def chosen(self) -> Incident | None:
        key = self.query_one("#incidents", RowList).cursor_key
        return None if key is None else self.engine.incidents.get(key)

    def pull(self) -> None:
        state = (
            self.engine.incidents.version, self._show_settled, self._wanted, self.size,
            int(self.engine.wall_s()),
        )  # fmt: skip
        if state == self._drawn:
            return
        self._drawn = state
        everyone = self.engine.incidents.all()
        shown = [one for one in everyone if self._show_settled or one.state not in SETTLED]
        rows = self.query_one("#incidents", RowList)
        rows.show(
            [IncidentRow(one, safe_line(describe_incident(one).title)) for one in shown],
            empty=self._quiet_words(everyone),
        )
        if self._wanted is not None:
            rows.select(self._wanted)
            self._wanted = None
        rows.name_it(self._title_words(shown, everyone))
        self._show_card()

    def hear(self, event: Event) -> None:
        if isinstance(event, IncidentChanged):
            self.pull()

    @on(RowList.Moved)
    def _other(self) -> None:
        self._show_card(from_top=True)
        self.show_hints()

    def _show_card(self, *, from_top: bool = False) -> None:
        incident, pane = self.chosen, self.query_one("#card", TextPane)
        if incident is None:
            pane.show([para(_("Nothing is chosen."), "muted")])
            return
        profile = self._profile(incident)
        hang = 10 if pane.inner_width >= 56 else 2
        card = card_paras(self.engine, incident, self.look, profile, hang=hang)
        pane.show(card, from_top=from_top)

    def _profile(self, incident: Incident) -> Mapping[str, object] | None:
        """The run's TOML, read once and apart from drawing."""
        name = incident.profile
        if name is None or not any(remedy.patch for remedy in incident.finding.remedies):
            return None
        if name not in self._profiles:
            self._profiles[name] = None
            self.run_worker(self._read(name), group="profile")
        return self._profiles[name]

    async def _read(self, name: str) -> None:
        self._profiles[name] = await asyncio.to_thread(read_profile, self.engine, name)
        self._show_card()

    # Words.

    def _quiet_words(self, everyone: Sequence[Incident]) -> str:
        since = self.engine.now_s() - (self._quiet_since_s or 0)
        hosts = self.engine.fleet.hosts
        cards = sum(len(state.latest.gpus) for state in hosts.values() if state.latest is not None)
        runs = sum(not view.ended for view in self.engine.runs.all())
        away = [name for name, state in hosts.items() if state.link not in ("live", "degraded")]
        watched = _("{hosts} hosts, {cards} cards and {runs} runs are watched.").format(
            hosts=len(hosts), cards=cards, runs=runs
        )
        if away:
            first = _("Nothing open on what we can see; {hosts} does not answer.").format(
                hosts=", ".join(safe_line(name) for name in away[:3])
            )
        else:
            first = _("All quiet for {time}.").format(time=duration_text(int(since)))
        settled = sum(one.state in SETTLED for one in everyone)
        hidden = _("H shows {n} settled ones.").format(n=settled) if settled else ""
        return join(tuple(part for part in (first, watched, hidden) if part))

    def _title_words(self, shown: Sequence[Incident], everyone: Sequence[Incident]) -> str:
        words = ngettext("{n} incident", "{n} incidents", len(shown)).format(n=len(shown))
        hidden = len(everyone) - len(shown)
        return words + ("   " + _("{n} settled, H").format(n=hidden) if hidden else "")

    # Keys.

    def action_apply(self) -> None:
        if (incident := self.chosen) is not None:
            self.run_worker(apply_remedy(self, incident), group="apply", exclusive=True)

    def action_seen(self) -> None:
        if (incident := self.chosen) is not None:
            self._set(incident, "open" if incident.state == "seen" else "seen", "")

    def action_close_it(self) -> None:
        if (incident := self.chosen) is None:
            return
        menu = ChoiceMenu(
            _("Close: {title}").format(title=safe_line(describe_incident(incident).title)),
            [Choice(key, words) for key, words in _REASONS.items()],
            body=_("It leaves the list; H shows it again. It says nothing to the run."),
        )
        self.app.push_screen(menu, lambda answer: self._close_for(incident, answer))

    def _close_for(self, incident: Incident, answer: str | None) -> None:
        if answer in _REASONS:
            self._set(incident, "closed", _REASONS[answer])

    def _set(self, incident: Incident, state: Literal["open", "seen", "closed"], why: str) -> None:
        self._undo = (incident.key, incident.state)
        self.engine.incidents.set_state(incident.key, state, why)
        words = {"open": _("Open again"), "seen": _("Seen"), "closed": _("Closed: {why}")}[state]
        words = words.format(why=why) + "; " + _("u undoes it")
        self.notify(words, timeout=10, markup=False)
        self.pull()
        self.show_frame()

    def action_undo_state(self) -> None:
        if self._undo is not None:
            key, before = self._undo
            self._undo = None
            self.engine.incidents.set_state(key, "seen" if before == "seen" else "open", "")
            self._wanted = key
            self.pull()

    def action_copy(self) -> None:
        if (incident := self.chosen) is not None:
            text = card_text(self.engine, incident, self.look, self._profile(incident))
            self.app.copy_to_clipboard(text)
            self.notify(_("Copied the card as text"), markup=False)

    def action_hidden(self) -> None:
        self._show_settled = not self._show_settled
        self.pull()

    def action_next(self, step: int) -> None:
        self.query_one("#incidents", RowList).action_move(step)

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
        elif incident.host is not None:
            open_host(self.app, incident.host)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.pull)
