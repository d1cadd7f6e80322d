"""The card of one incident: what happened, why we think so, what to do, what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cockpit.domain.incidents import Incident
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text, price_text
from cockpit.i18n import _
from cockpit.i18n.fact_words import facts_text
from cockpit.i18n.messages import IncidentText, describe_incident
from cockpit.i18n.pulse_texts import sureness_text
from cockpit.screens.incident_became import became_paras
from cockpit.screens.incident_evidence import TEXT_LIMIT, Contexts, evidence_paras
from cockpit.screens.incident_proof import LABEL, proof_paras
from cockpit.widgets.diff import patch_paras
from cockpit.widgets.drawing import padded
from cockpit.widgets.incident_row import moment
from cockpit.widgets.incident_strip import where
from cockpit.widgets.look import Look
from cockpit.widgets.text_pane import BLANK, Para, Role, heading, para

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi

_BODY = 2
_NARROW = 56


def card_paras(
    engine: EngineApi,
    incident: Incident,
    look: Look,
    profile: Mapping[str, object] | None,
    *,
    width: int = 80,
    contexts: Contexts | None = None,
    earlier: Sequence[Incident] = (),
    is_earlier: bool = False,
) -> list[Para]:
    """All of it; `profile` is the run's TOML, so that a patch can show what stands there now."""
    hang = LABEL if width >= _NARROW else _BODY
    words = describe_incident(incident)
    rows = [_title(engine, incident, words, look), BLANK]
    rows += _what(incident, words, engine)
    rows.append(_why_heading(incident))
    if words.cause:
        rows.append(para(safe_line(words.cause, TEXT_LIMIT), indent=_BODY))
    rows += evidence_paras(incident, contexts or {}, look, indent=_BODY, hang=hang)
    rows += _facts(incident, hang)
    rows += [*proof_paras(incident, look, indent=_BODY, width=width), BLANK]
    rows += _remedies(words, profile)
    return rows + became_paras(engine, incident, earlier, is_earlier=is_earlier)


def first_paras(incident: Incident) -> list[Para]:
    """What to do first, for the top of a card whose end is out of sight."""
    words = describe_incident(incident)
    if not words.remedies:
        return []
    first = words.remedies[0]
    key = "   " + _("a applies it") if first.patch else ""
    pieces: tuple[tuple[str, Role], ...] = (
        (padded(_("do first"), LABEL), "muted"),
        (safe_line(first.text, TEXT_LIMIT), "text"),
        (key, "ok"),
    )
    return [Para(pieces, _BODY, LABEL)]


def card_text(
    engine: EngineApi,
    incident: Incident,
    look: Look,
    profile: Mapping[str, object] | None,
    contexts: Contexts | None = None,
) -> str:
    """The card as plain text, to be pasted into a chat or a ticket."""
    paras = card_paras(engine, incident, look, profile, contexts=contexts)
    return "\n".join(one.plain for one in paras).strip()


def _title(engine: EngineApi, incident: Incident, words: IncidentText, look: Look) -> Para:
    severity: Role = {"fatal": "fatal", "warning": "warn"}.get(incident.severity, "muted")  # type: ignore[assignment]
    sign = look.glyphs.incident(incident.state, incident.severity)
    ago = duration_text(int(max(0, engine.wall_s() - incident.opened_s)))
    pieces: tuple[tuple[str, Role], ...] = (
        (f"{sign} {safe_line(words.title)}", severity),
        (f"   {where(incident)}", "strong"),
        (
            f"   {moment(incident.opened_s, engine.wall_s())}, " + _("{ago} ago").format(ago=ago),
            "muted",
        ),
    )
    return Para(pieces, hang=_BODY)


def _what(incident: Incident, words: IncidentText, engine: EngineApi) -> list[Para]:
    rows = [heading(_("What happened"))]
    told = words.what or words.summary
    rows += [para(safe_line(line, TEXT_LIMIT), indent=_BODY) for line in told.splitlines()]
    spec = None if incident.host is None else engine.hosts.get(incident.host)
    if spec is not None and spec.price_per_h is not None and incident.severity == "fatal":
        price = price_text(spec.price_per_h, spec.currency)
        rows.append(
            para(
                _("{host} goes on costing {price}.").format(host=spec.name, price=price),
                indent=_BODY,
            )
        )
    eta_s = incident.finding.facts.get("eta_s")
    if isinstance(eta_s, int | float) and incident.state in ("open", "seen", "applied"):
        due = moment(incident.last_s + eta_s, engine.wall_s())
        rows.append(para(_("Full at about {time}.").format(time=due), "warn", indent=_BODY))
    if incident.finding.rank is not None:
        rows.append(
            para(_("Seen on rank {rank}.").format(rank=incident.finding.rank), indent=_BODY)
        )
    return [*rows, BLANK]


def _why_heading(incident: Incident) -> Para:
    """With how sure we are, where the detector says so."""
    sure = sureness_text(incident.finding.facts)
    return Para(((_("Why we think so"), "strong"), (f"   {sure}" if sure else "", "muted")))


def _facts(incident: Incident, hang: int) -> list[Para]:
    told = ("eta_s", "eta_low_s", "eta_high_s", "confidence")
    facts = {name: value for name, value in incident.finding.facts.items() if name not in told}
    if not facts:
        return []
    read: tuple[tuple[str, Role], ...] = (
        (padded(_("read"), LABEL), "muted"),
        (safe_line(facts_text(facts), TEXT_LIMIT), "muted"),
    )
    return [Para(read, _BODY, hang)]


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
                ((f"{number}  ", "ok"), (safe_line(remedy.text, TEXT_LIMIT), "text"), (key, "ok")),
                indent=_BODY,
                hang=3,
            )
        )
        if remedy.patch:
            rows += patch_paras(remedy.patch, profile, indent=_BODY + 3)
    return [*rows, BLANK]
