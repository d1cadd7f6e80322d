"""What a person decides about an incident: apply, seen, closed with a reason, muted; and all of it taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from cockpit.domain.incidents import Incident
from cockpit.domain.mutes import Mute
from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.i18n.messages import describe_incident
from cockpit.screens.applying import apply_remedy
from cockpit.screens.base import CockpitScreen
from cockpit.screens.dialogs import Choice, ChoiceMenu
from cockpit.screens.incident_became import mute_words
from cockpit.screens.incident_list import Entry
from cockpit.screens.incident_mute import ask_mute

_REASONS = {
    "f": _("fixed"),
    "a": _("false alarm"),
    "m": _("my doing"),
}


class IncidentDecisions(CockpitScreen):
    """Mixed into the incidents' screen."""

    wanted_key: str | None = None
    """The row on which the cursor is to be, once it is there."""
    _undo: Callable[[], None] | None = None

    @property
    def chosen_entry(self) -> Entry | None:
        raise NotImplementedError

    @property
    def chosen(self) -> Incident | None:
        entry = self.chosen_entry
        return None if entry is None else entry.incident

    def action_apply(self) -> None:
        if (incident := self.chosen) is not None:
            self.run_worker(apply_remedy(self, incident), group="apply", exclusive=True)

    def action_seen(self) -> None:
        if (entry := self._live_entry()) is not None:
            one = entry.incident
            self._set(one, "open" if one.state == "seen" else "seen", "")

    def action_close_it(self) -> None:
        if (entry := self._live_entry()) is None:
            return
        incident = entry.incident
        menu = ChoiceMenu(
            _("Close: {title}").format(title=safe_line(describe_incident(incident).title)),
            [Choice(key, words) for key, words in _REASONS.items()],
            body=_("It leaves the list; H shows it again. It says nothing to the run."),
        )
        self.app.push_screen(menu, lambda answer: self._close_for(incident, answer))

    def _live_entry(self) -> Entry | None:
        """The chosen one, if it is this session's: what is past is as it is."""
        entry = self.chosen_entry
        if entry is None or not entry.is_earlier:
            return entry
        self.notify(_("It is of an earlier session, and stays as it was."), markup=False)
        return None

    def _close_for(self, incident: Incident, answer: str | None) -> None:
        if answer in _REASONS:
            self._set(incident, "closed", _REASONS[answer])

    def _set(self, incident: Incident, state: Literal["open", "seen", "closed"], why: str) -> None:
        before: Literal["open", "seen"] = "seen" if incident.state == "seen" else "open"
        self._undo = lambda: self._put_back(incident.key, before)
        self.engine.incidents.set_state(incident.key, state, why)
        words = {"open": _("Open again"), "seen": _("Seen"), "closed": _("Closed: {why}")}[state]
        self._told(words.format(why=why))

    def _put_back(self, key: str, state: Literal["open", "seen"]) -> None:
        self.engine.incidents.set_state(key, state, "")
        self.wanted_key = key

    def _told(self, words: str) -> None:
        self.notify(words + "; " + _("u undoes it"), timeout=10, markup=False)
        self.pull()
        self.show_frame()

    def action_undo_state(self) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()
            self.pull()
            self.show_frame()

    def action_mute(self) -> None:
        entry = self.chosen_entry
        incident = None if entry is None or entry.is_earlier else entry.incident
        self.run_worker(self._mute(incident), group="mute", exclusive=True)

    async def _mute(self, incident: Incident | None) -> None:
        answer = await ask_mute(self.app, self.engine, incident)
        if answer is None:
            return
        if isinstance(answer, str):
            rule = next((one for one in self.engine.mutes if one.id == answer), None)
            is_kept = await self.engine.unmute(answer)
            self._undo = None if rule is None else lambda: self._mute_again(rule)
            words = _("No longer muted")
        else:
            is_kept = await self.engine.mute(answer)
            self._undo = lambda: self._unmute(answer.id)
            words = _("Muted: {rule}").format(rule=mute_words(answer, self.engine.wall_s()))
        if not is_kept:
            words += " " + _("(for this session: the history cannot be written)")
        self._told(words)

    def _unmute(self, rule: str) -> None:
        self.run_worker(self.engine.unmute(rule), group="mute")

    def _mute_again(self, rule: Mute) -> None:
        self.run_worker(self.engine.mute(rule), group="mute")
