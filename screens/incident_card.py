"""The card of one incident: what happened, why we think so, what to do, what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cockpit.domain.incidents import Evidence, Incident
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text, price_text
from cockpit.i18n import _, ngettext
from cockpit.i18n.fact_words import facts_text
from cockpit.i18n.messages import IncidentText, describe_incident, reason_text
from cockpit.screens.incident_proof import proof_paras
from cockpit.widgets.diff import patch_paras
from cockpit.widgets.drawing import padded
from cockpit.widgets.incident_row import state_words
from cockpit.widgets.incident_strip import where
from cockpit.widgets.log_time import clock
from cockpit.widgets.look import Look
from cockpit.widgets.text_pane import BLANK, Para, Role, code, heading, para

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi

_TEXT_LIMIT = 600
_BODY = 2


def card_paras(
    engine: EngineApi,
    incident: Incident,
    look: Look,
    profile: Mapping[str, object] | None,
    *,
    hang: int = 10,
) -> list[Para]:
    """All of it; `profile` is the run's TOML, so that a patch can show what stands there now.

    `hang` is how far the rest of a long evidence line is set in.
    """
    words = describe_incident(incident)
    rows = [_title(engine, incident, words, look), BLANK]
    rows += _what(incident, words, engine)
    rows += _why(incident, words, hang)
    rows += [*proof_paras(engine, incident, look, indent=_BODY), BLANK]
    rows += _remedies(words, profile)
    return rows + _became(engine, incident)


def card_text(
    engine: EngineApi, incident: Incident, look: Look, profile: Mapping[str, object] | None
) -> str:
    """The card as plain text, to be pasted into a chat or a ticket."""
    return "\n".join(one.plain for one in card_paras(engine, incident, look, profile)).strip()


def _title(engine: EngineApi, incident: Incident, words: IncidentText, look: Look) -> Para:
    severity: Role = {"fatal": "fatal", "warning": "warn"}.get(incident.severity, "muted")  # type: ignore[assignment]
    sign = look.glyphs.incident(incident.state, incident.severity)
    ago = duration_text(int(max(0, engine.wall_s() - incident.opened_s)))
    pieces: tuple[tuple[str, Role], ...] = (
        (f"{sign} {safe_line(words.title)}", severity),
        (f"   {where(incident)}", "strong"),
        (f"   {clock(incident.opened_s)}, " + _("{ago} ago").format(ago=ago), "muted"),
    )
    return Para(pieces, hang=_BODY)


def _what(incident: Incident, words: IncidentText, engine: EngineApi) -> list[Para]:
    rows = [heading(_("What happened"))]
    told = words.what or words.summary
    rows += [para(safe_line(line, _TEXT_LIMIT), indent=_BODY) for line in told.splitlines()]
    spec = None if incident.host is None else engine.hosts.get(incident.host)
    if spec is not None and spec.price_per_h is not None and incident.severity == "fatal":
        price = price_text(spec.price_per_h, spec.currency)
        rows.append(
            para(
                _("{host} goes on costing {price}.").format(host=spec.name, price=price),
                indent=_BODY,
            )
        )
    if incident.finding.rank is not None:
        rows.append(
            para(_("Seen on rank {rank}.").format(rank=incident.finding.rank), indent=_BODY)
        )
    return [*rows, BLANK]


def _why(incident: Incident, words: IncidentText, hang: int) -> list[Para]:
    rows = [heading(_("Why we think so"))]
    if words.cause:
        rows.append(para(safe_line(words.cause, _TEXT_LIMIT), indent=_BODY))
    finding = incident.finding
    shown = list(incident.evidence)
    if finding.text and not any(one.text == finding.text for one in shown):
        shown.insert(
            0, Evidence(incident.opened_s, "log", finding.text, finding.offset, finding.line)
        )
    rows += [_evidence(one, hang) for one in shown[:12]]
    if len(shown) > 12:
        rows.append(para(_("and {n} more").format(n=len(shown) - 12), "muted", indent=_BODY))
    if finding.facts:
        facts = facts_text(finding.facts)
        read: tuple[tuple[str, Role], ...] = (
            (padded(_("read"), 10), "muted"),
            (safe_line(facts, _TEXT_LIMIT), "muted"),
        )
        rows.append(Para(read, _BODY, hang))
    return rows


def _evidence(one: Evidence, hang: int) -> Para:
    """Time, place and text of one line; the text is the host's, cleaned and cut."""
    when = "" if one.at_s is None else clock(one.at_s)
    place = safe_line(one.source, 16)
    if one.line is not None:
        place += f" {one.line:,}"
    pieces: tuple[tuple[str, Role], ...] = (
        (when.ljust(10), "muted"),
        (place + "  ", "muted"),
        (safe_line(one.text, _TEXT_LIMIT), "text"),
    )
    return Para(pieces, indent=_BODY, hang=hang)


def _remedies(words: IncidentText, profile: Mapping[str, object] | None) -> list[Para]:
    if not words.remedies:
        return []
    rows = [heading(_("What to do"))]
    applied = False
    for number, remedy in enumerate(words.remedies, 1):
        key = ""
        if remedy.patch and not applied:
            key, applied = "   " + _("a applies it"), True
        rows.append(
            Para(
                ((f"{number}  ", "ok"), (safe_line(remedy.text, _TEXT_LIMIT), "text"), (key, "ok")),
                indent=_BODY,
                hang=3,
            )
        )
        if remedy.patch:
            rows += patch_paras(remedy.patch, profile, indent=_BODY + 3)
    return [*rows, BLANK]


def _became(engine: EngineApi, incident: Incident) -> list[Para]:
    rows = [heading(_("What became of it"))]
    since = _("open since {time}").format(time=clock(incident.opened_s))
    if incident.count > 1:
        words = ngettext("seen {n} time", "seen {n} times, last {time}", incident.count)
        since += "   " + words.format(n=incident.count, time=clock(incident.last_s))
    rows.append(para(since, "muted", indent=_BODY))
    if state := state_words(incident):
        why = safe_line(reason_text(incident.state_why), 200)
        rows.append(para(f"{state}: {why}" if why else state, indent=_BODY))
    host = None if incident.host is None else engine.fleet.hosts.get(incident.host)
    if host is not None and host.link not in ("live", "degraded"):
        age_s = host.age_s(engine.now_s())
        age = "" if age_s is None else " " + _("{age} ago").format(age=duration_text(int(age_s)))
        rows.append(
            para(_("last known{age}: no data is not ok").format(age=age), "warn", indent=_BODY)
        )
    earlier = earlier_ones(engine, incident)
    for one in earlier[:4]:
        place = f"{clock(one.opened_s)}  {where(one)}  {state_words(one) or _('still open')}"
        rows.append(code((_("before  "), "muted"), (safe_line(place), "muted"), indent=_BODY))
    return rows


def earlier_ones(engine: EngineApi, incident: Incident) -> list[Incident]:
    """The same kind for the same profile, older than this one, newest first."""
    same = [
        one
        for one in engine.incidents.all()
        if one.key != incident.key
        and one.family == incident.family
        and one.profile == incident.profile
        and one.opened_s < incident.opened_s
    ]
    return sorted(same, key=lambda one: -one.opened_s)
