"""Muting by rule: which kind, where and for how long, and the same menu takes rules back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import App

from cockpit.domain.incidents import Incident
from cockpit.domain.mutes import (
    DAY_S,
    HOUR_S,
    Mute,
    Scope,
    may_last,
    mute_for,
    scopes,
)
from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.i18n.messages import describe_incident
from cockpit.screens.dialogs import Choice, ChoiceMenu, TextPrompt
from cockpit.screens.incident_became import mute_words

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi

_LETTERS: dict[str, Scope] = {"r": "run", "c": "card", "h": "host", "e": "everywhere"}
_FOR_S = {"h": HOUR_S, "d": DAY_S, "a": None}
MOST_LISTED = 9
WHY_CHARS = 80


async def ask_mute(
    app: App[Any], engine: EngineApi, incident: Incident | None
) -> Mute | str | None:
    """A new rule, the id of one that is to be taken back, or nothing. To be run in a worker."""
    rules = {str(number): one for number, one in enumerate(engine.mutes[:MOST_LISTED], 1)}
    choices = [] if incident is None else _scope_choices(incident)
    choices += [
        Choice(key, _("take back: {rule}").format(rule=mute_words(one, engine.wall_s())))
        for key, one in rules.items()
    ]
    if not choices:
        app.notify(_("Nothing is muted"), timeout=3, markup=False)
        return None
    title = _("Muted") if incident is None else _("Mute: {title}").format(title=_title(incident))
    body = _("It is recorded and listed all the same (H), and heard again when it grows worse.")
    answer = await app.push_screen_wait(ChoiceMenu(title, choices, body=body))
    if answer in rules:
        return rules[answer].id
    if answer is None or incident is None:
        return None
    return await _ask_time(app, engine, incident, _LETTERS[answer])


def _title(incident: Incident) -> str:
    return safe_line(describe_incident(incident).title)


def _scope_choices(incident: Incident) -> list[Choice]:
    labels: dict[Scope, str] = {
        "run": _("this run, {run}").format(run=safe_line(incident.profile or incident.run or "")),
        "card": _("this card, {host}:{gpu}").format(host=incident.host, gpu=incident.gpu),
        "host": _("this kind on {host}").format(host=incident.host),
        "everywhere": _("this kind everywhere"),
    }
    here = scopes(incident)
    return [Choice(key, labels[scope]) for key, scope in _LETTERS.items() if scope in here]


async def _ask_time(
    app: App[Any], engine: EngineApi, incident: Incident, scope: Scope
) -> Mute | None:
    lasting = may_last(incident)
    hint = "" if lasting else _("not for a card that breaks")
    choices = [
        Choice("h", _("for 1 hour")),
        Choice("d", _("for 1 day")),
        Choice("a", _("until it is taken back"), hint, disabled=not lasting),
    ]
    answer = await app.push_screen_wait(ChoiceMenu(_("For how long?"), choices))
    if answer is None:
        return None
    why: str | None = ""
    if answer == "a":
        why = await app.push_screen_wait(
            TextPrompt(_("Why?"), body=_("One line for whoever wonders later; it may be empty."))
        )
    if why is None:
        return None
    return mute_for(
        incident, scope, engine.wall_s(), _FOR_S[answer], safe_line(why).strip()[:WHY_CHARS]
    )
