"""An incident as Markdown for a colleague or an issue tracker. Nothing in it can break out of its place.

Host text stands in fences and code spans that are longer than any run of backticks in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from cockpit.domain.incidents import Evidence, FactValue, Incident
from cockpit.domain.text import safe_line
from cockpit.engine.api import LogLine
from cockpit.i18n import _
from cockpit.i18n.describe import size_text
from cockpit.i18n.fact_words import fact_words
from cockpit.i18n.messages import IncidentText, RemedyText, describe_incident
from cockpit.screens.incident_became import step_words
from cockpit.screens.incident_evidence import Contexts, evidence_of, marked_place, place_of
from cockpit.widgets.curve_chart import curve_rows, curve_title
from cockpit.widgets.diff import patch_paras
from cockpit.widgets.glyphs import UNICODE
from cockpit.widgets.incident_row import state_words

MOST_EVIDENCE = 12
TEXT_LIMIT = 1000
CHART_CELLS = 78
_TICKS = re.compile(r"`+")
_SIGNS = re.compile(r"([\\`*_{}\[\]<>|~$])")
_MENTIONS = str.maketrans({"@": "&#64;", "#": "&#35;", "&": "&amp;"})
"""A tracker reads @name and #12 in plain text; it does not in code."""


@dataclass(frozen=True, slots=True)
class Document:
    """What is written of an incident beside itself."""

    incident: Incident
    contexts: Contexts
    profile: Mapping[str, object] | None
    version: str
    """Of cockpit."""


def markdown(document: Document) -> str:
    incident = document.incident
    words = describe_incident(incident)
    parts = [
        _head(incident, words),
        _what(words),
        _why(incident, words, document.contexts),
        _curve(incident),
        _company(incident),
        _numbers(incident.finding.facts),
        _machine(incident),
        _remedies(words, document.profile),
        _became(incident),
        _("Written by cockpit {version}.").format(version=document.version),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def prose(text: str) -> str:
    """Text of any origin as plain words: no markup, no mention, one line."""
    escaped = _SIGNS.sub(r"\\\1", safe_line(text, TEXT_LIMIT))
    return escaped.translate(_MENTIONS).replace("://", "&#58;//")


def span(text: str) -> str:
    """A code span around any text."""
    shown = safe_line(text, TEXT_LIMIT).replace("|", "¦")
    ticks = "`" * (_longest(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fenced(lines: Iterable[str], language: str = "") -> str:
    """A block that no line of it can end."""
    shown = [_harmless(line) for line in lines]
    ticks = "`" * max(3, _longest("\n".join(shown)) + 1)
    return "\n".join([ticks + language, *shown, ticks])


def _harmless(line: str) -> str:
    return safe_line(line, TEXT_LIMIT).rstrip()


def _longest(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)


def utc(at_s: float) -> str:
    """A time that means the same to whoever reads it."""
    return datetime.fromtimestamp(at_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _heading(words: str, *blocks: str) -> str:
    told = [block for block in blocks if block]
    return "\n\n".join([f"## {words}", *told]) if told else ""


def _table(rows: Sequence[tuple[str, str]]) -> str:
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join(lines)


def _head(incident: Incident, words: IncidentText) -> str:
    rows = [
        (_("when"), utc(incident.opened_s)),
        (_("severity"), incident.severity),
        (_("state"), state_words(incident) or _("open")),
        (_("kind"), span(f"{incident.family} / {incident.finding.signature}")),
    ]
    if incident.profile or incident.run:
        rows.append((_("run"), span(" ".join(filter(None, (incident.profile, incident.run))))))
    if incident.host is not None:
        card = "" if incident.gpu is None else f", GPU {incident.gpu}"
        rows.append((_("host"), span(incident.host) + card))
    if incident.finding.rank is not None:
        rows.append((_("rank"), str(incident.finding.rank)))
    if incident.count > 1:
        rows.append((_("seen"), f"{incident.count} x, {utc(incident.last_s)}"))
    return f"# {prose(words.title)}\n\n{prose(words.summary)}\n\n{_table(rows)}"


def _what(words: IncidentText) -> str:
    return _heading(_("What happened"), *(prose(line) for line in words.what.splitlines()))


def _why(incident: Incident, words: IncidentText, contexts: Contexts) -> str:
    found = evidence_of(incident)
    blocks = [prose(words.cause)] if words.cause else []
    for one in found[:MOST_EVIDENCE]:
        lines = () if one.offset is None else contexts.get(one.offset, ())
        blocks.append(_evidence(one, lines))
    if len(found) > MOST_EVIDENCE:
        blocks.append(_("and {n} more").format(n=len(found) - MOST_EVIDENCE))
    return _heading(_("Why we think so"), *blocks)


def _evidence(one: Evidence, lines: Sequence[LogLine]) -> str:
    when = "" if one.at_s is None else ", " + utc(one.at_s)
    head = prose(place_of(one)) + when
    if one.offset is None or not lines:
        return f"{head}\n\n" + fenced([one.text])
    marked = marked_place(lines, one.offset)
    rows = [("> " if n == marked else "  ") + line.text for n, line in enumerate(lines)]
    return f"{head}\n\n" + fenced(rows)


def _curve(incident: Incident) -> str:
    curve = None if incident.proof is None else incident.proof.curve
    if curve is None:
        return ""
    rows = [axis + line for axis, line in curve_rows(curve, CHART_CELLS, UNICODE)]
    if rows:  # the clock of whoever reads it is another one
        rows[-1] = rows[-1].rsplit(" ", 1)[0].rstrip() + f"  {utc(curve.until_s)}"
    return _heading(_("Before the moment"), prose(curve_title(curve)), fenced(rows) if rows else "")


def _company(incident: Incident) -> str:
    company = None if incident.proof is None else incident.proof.company
    if company is None:
        return ""
    if not company:
        return _heading(_("Who was on the card"), _("nobody"))
    names = (_("pid"), _("process"), _("user"), _("memory"), _("run"))
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for one in company:
        memory = "n/a" if one.used_mib is None else size_text(one.used_mib)
        cells = (str(one.pid), _cell(one.name), _cell(one.user), memory, _cell(one.run))
        lines.append("| " + " | ".join(cells) + " |")
    return _heading(_("Who was on the card"), "\n".join(lines))


def _cell(text: str) -> str:
    return span(text) if text else ""


def _numbers(facts: Mapping[str, FactValue]) -> str:
    rows = [(prose(label), span(value)) for label, value in fact_words(facts)]
    return _heading(_("Numbers"), _table(rows)) if rows else ""


def _machine(incident: Incident) -> str:
    machine = {} if incident.proof is None else incident.proof.machine
    rows = [(prose(name), span(value)) for name, value in machine.items()]
    return _heading(_("Versions"), _table(rows)) if rows else ""


def _remedies(words: IncidentText, profile: Mapping[str, object] | None) -> str:
    blocks = [_remedy(number, one, profile) for number, one in enumerate(words.remedies, 1)]
    return _heading(_("What to do"), *blocks)


def _remedy(number: int, one: RemedyText, profile: Mapping[str, object] | None) -> str:
    text = f"{number}. {prose(one.text)}"
    if not one.patch:
        return text
    diff = fenced([line.plain for line in patch_paras(one.patch, profile)], "diff")
    return text + "\n\n" + "\n".join("   " + line for line in diff.splitlines())


def _became(incident: Incident) -> str:
    lines = [f"- {utc(one.at_s)}  {prose(step_words(one))}" for one in incident.steps]
    if incident.recording:
        lines.append("- " + _("recorded in {file}").format(file=span(incident.recording)))
    return _heading(_("What became of it"), "\n".join(lines)) if lines else ""
