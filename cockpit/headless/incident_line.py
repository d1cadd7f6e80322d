"""An incident as one JSON object, and as one line of text: the same fields wherever they are printed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from cockpit.domain.incidents import Finding, Incident
from cockpit.i18n import english
from cockpit.i18n.messages import describe_incident


def finding_fields(
    finding: Finding, host: str | None = None, gpu: int | None = None
) -> dict[str, object]:
    """The shape that `scan --json` and `incident` events share. JSON is always English."""
    with english():
        text = describe_incident(finding)
    return {
        "line": finding.line,
        "offset": finding.offset,
        "family": finding.family,
        "signature": finding.signature,
        "severity": finding.severity,
        "summary": text.summary,
        "facts": dict(finding.facts),
        "cause": text.cause,
        "remedies": [
            {"text": remedy.text, "patch": None if remedy.patch is None else dict(remedy.patch)}
            for remedy in text.remedies
        ],
        "rank": finding.rank,
        "host": host,
        "gpu": gpu,
        "recovered": finding.recovered,
    }


def incident_fields(incident: Incident) -> dict[str, object]:
    with english():
        fields = finding_fields(incident.finding, incident.host, incident.gpu)
    told: dict[str, object] = {**fields, "state": incident.state, "count": incident.count}
    return {**told, "muted": True} if incident.mute else told


def incident_text(incident: Incident) -> str:
    """`fatal gpu_oom qwen-lora vast-a:0 tried 1.75 GiB …`, then why and what to do, a line each."""
    text = describe_incident(incident)
    where = f"{incident.host or ''}{'' if incident.gpu is None else f':{incident.gpu}'}"
    is_open = incident.state == "open"
    state = incident.severity if is_open else incident.state
    words = [state, incident.family, incident.profile or "", where, text.summary]
    lines = [" ".join(word for word in words if word)]
    if not is_open:
        return lines[0]
    if text.cause:
        lines.append(f"  why: {text.cause}")
    for number, remedy in enumerate(text.remedies, 1):
        lines.append(f"  {number}. {remedy.text}")
        lines += ["     " + text for text in set_options(remedy.patch)]
    return "\n".join(lines)


def set_options(patch: Mapping[str, object] | None) -> list[str]:
    """A profile change as options of `cockpit run`, quoted for a shell."""
    if not patch:
        return []
    from cockpit.config.overrides import override_text  # pydantic, which most incidents do without

    return [f"--set {shlex.quote(override_text(key, value))}" for key, value in patch.items()]
