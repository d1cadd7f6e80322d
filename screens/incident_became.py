"""What became of an incident: its steps with their times, what keeps it quiet, its recording, earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.domain.incident_proof import Step
from cockpit.domain.incidents import Incident
from cockpit.domain.mutes import Mute
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text
from cockpit.i18n import _, ngettext
from cockpit.i18n.incident_texts import TITLES
from cockpit.i18n.messages import reason_text
from cockpit.widgets.drawing import padded
from cockpit.widgets.incident_row import moment, state_words
from cockpit.widgets.incident_strip import where
from cockpit.widgets.text_pane import Para, Role, code, heading, para

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi

_BODY = 2
_TIME = 14


def became_paras(
    engine: EngineApi, incident: Incident, earlier: Sequence[Incident], *, is_earlier: bool = False
) -> list[Para]:
    now_s = engine.wall_s()
    rows = [heading(_("What became of it"))]
    steps = incident.steps or (Step(incident.opened_s, "open"),)
    rows += [_step(one, now_s) for one in steps]
    if not incident.steps and (state := state_words(incident)):
        why = safe_line(reason_text(incident.state_why), 200)
        rows.append(para(f"{state}: {why}" if why else state, indent=_BODY))
    if incident.count > 1:
        words = ngettext("seen {n} time", "seen {n} times, last {time}", incident.count)
        last = moment(incident.last_s, now_s)
        rows.append(para(words.format(n=incident.count, time=last), "muted", indent=_BODY))
    if is_earlier and incident.state in ("open", "seen", "applied"):
        words = _("Nobody watched any more after {time}.").format(
            time=moment(incident.last_s, now_s)
        )
        rows.append(para(words, "muted", indent=_BODY))
    rows += _around(engine, incident, now_s)
    for one in earlier[:4]:
        place = (
            f"{moment(one.opened_s, now_s)}  {where(one)}  {state_words(one) or _('still open')}"
        )
        rows.append(code((_("before  "), "muted"), (safe_line(place), "muted"), indent=_BODY))
    return rows


def step_words(one: Step) -> str:
    """ "closed: fixed", "grew worse"."""
    words = {
        "open": _("opened"),
        "again": _("opened again"),
        "worse": _("grew worse"),
        "seen": _("seen"),
        "applied": _("applied"),
        "recovered": _("recovered"),
        "withdrawn": _("withdrawn"),
        "closed": _("closed"),
    }.get(one.what, safe_line(one.what, 24))
    why = safe_line(reason_text(one.why), 200) if one.why else ""
    return f"{words}: {why}" if why else words


def _step(one: Step, now_s: float) -> Para:
    pieces: tuple[tuple[str, Role], ...] = (
        (padded(moment(one.at_s, now_s), _TIME), "muted"),
        (step_words(one), "text"),
    )
    return Para(pieces, _BODY, hang=_TIME)


def _around(engine: EngineApi, incident: Incident, now_s: float) -> list[Para]:
    rows = []
    rule = next((one for one in engine.mutes if one.id == incident.mute), None)
    if rule is not None:
        words = _("Muted: {rule}. m takes it back.").format(rule=mute_words(rule, now_s))
        rows.append(para(words, "muted", indent=_BODY))
    if incident.recording:
        words = _("Recorded: cockpit replay {file}").format(file=safe_line(incident.recording, 200))
        rows.append(para(words, "text", indent=_BODY))
    host = None if incident.host is None else engine.fleet.hosts.get(incident.host)
    if host is not None and host.link not in ("live", "degraded"):
        age_s = host.age_s(engine.now_s())
        age = "" if age_s is None else " " + _("{age} ago").format(age=duration_text(int(age_s)))
        words = _("last known{age}: no data is not ok").format(age=age)
        rows.append(para(words, "warn", indent=_BODY))
    return rows


def mute_words(rule: Mute, now_s: float) -> str:
    """ "Out of GPU memory, on vast-a, until 12:04"."""
    scopes = {
        "run": _("run {run}").format(run=rule.run),
        "card": _("on {host}:{gpu}").format(host=rule.host, gpu=rule.gpu),
        "host": _("on {host}").format(host=rule.host),
        "everywhere": _("everywhere"),
    }
    if rule.until_s is None:
        end = _("until it is taken back")
    else:
        end = _("until {time}").format(time=moment(rule.until_s, now_s))
    parts = [
        _(TITLES[rule.family]),
        safe_line(scopes[rule.scope], 80),
        end,
        safe_line(rule.why, 80),
    ]
    return ", ".join(part for part in parts if part)


def earlier_ones(
    incident: Incident, known: Sequence[Incident], remembered: Sequence[Incident] = ()
) -> list[Incident]:
    """The same kind for the same profile, or the same host, older than this one, newest first."""
    found: dict[tuple[str, float], Incident] = {}
    for one in (*known, *remembered):
        same = one.family == incident.family and one.profile == incident.profile
        if incident.profile is None:
            same = same and one.host == incident.host
        if same and one.key != incident.key and one.opened_s < incident.opened_s:
            found.setdefault((one.key, one.opened_s), one)
    return sorted(found.values(), key=lambda one: -one.opened_s)
