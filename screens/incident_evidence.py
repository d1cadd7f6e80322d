"""Why we think so: each line of evidence, and around those of a log the lines before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cockpit.domain.incidents import Evidence, Incident
from cockpit.domain.text import safe_line
from cockpit.engine.api import LogLine
from cockpit.i18n import _
from cockpit.widgets.log_time import clock
from cockpit.widgets.look import Look
from cockpit.widgets.text_pane import Para, Role, code, para

MOST_SHOWN = 12
MOST_CONTEXTS = 2
"""Places of a log that are shown with their neighbours: the first line and one more."""
TEXT_LIMIT = 600
WHEN = 12
Contexts = Mapping[int, Sequence[LogLine]]
"""By offset: the lines around it."""


def evidence_of(incident: Incident) -> list[Evidence]:
    """All of it, the line that opened the incident included."""
    shown = [_timed(one, incident) for one in incident.evidence]
    finding = incident.finding
    if finding.text and not any(one.text == finding.text for one in shown):
        opening = Evidence(incident.opened_s, "log", finding.text, finding.offset, finding.line)
        shown.insert(0, opening)
    return shown


def _timed(one: Evidence, incident: Incident) -> Evidence:
    """The line that opened it came when it opened, if somebody watched."""
    is_first = one.offset is not None and one.offset == incident.finding.offset
    if one.at_s is None and is_first and incident.proof is not None and incident.count == 1:
        return replace(one, at_s=incident.opened_s)
    return one


def context_offsets(incident: Incident) -> list[int]:
    """The places of the run's log that want their neighbours."""
    if incident.run is None:
        return []
    offsets = [one.offset for one in evidence_of(incident) if one.offset is not None]
    return list(dict.fromkeys(offsets))[:MOST_CONTEXTS]


def evidence_paras(
    incident: Incident, contexts: Contexts, look: Look, *, indent: int, hang: int
) -> list[Para]:
    found = evidence_of(incident)
    rows: list[Para] = []
    told: set[int] = set()
    for one in found[:MOST_SHOWN]:
        lines = () if one.offset is None or one.offset in told else contexts.get(one.offset, ())
        if one.offset is not None and lines:
            told.add(one.offset)
            rows += _with_neighbours(one, one.offset, lines, look, indent)
        else:
            rows.append(_alone(one, indent, hang))
    if len(found) > MOST_SHOWN:
        more = _("and {n} more").format(n=len(found) - MOST_SHOWN)
        rows.append(para(more, "muted", indent=indent))
    return rows


def place_of(one: Evidence) -> str:
    """ "log 12,391": the source, and the line where it is known."""
    place = safe_line(one.source, 16)
    return place if one.line is None else f"{place} {one.line:,}"


def _when(one: Evidence) -> str:
    return "" if one.at_s is None else clock(one.at_s)


def _alone(one: Evidence, indent: int, hang: int) -> Para:
    pieces: tuple[tuple[str, Role], ...] = (
        (_when(one).ljust(WHEN), "muted"),
        (place_of(one) + "  ", "muted"),
        (safe_line(one.text, TEXT_LIMIT), "text"),
    )
    return Para(pieces, indent=indent, hang=hang)


def _with_neighbours(
    one: Evidence, offset: int, lines: Sequence[LogLine], look: Look, indent: int
) -> list[Para]:
    """The marked line whole, its neighbours cut at the edge."""
    marked = marked_place(lines, offset)
    rows = [para(f"{_when(one).ljust(WHEN)}{place_of(one)}", "muted", indent=indent)]
    for number, line in enumerate(lines):
        text = safe_line(line.text, TEXT_LIMIT)
        if number == marked:
            pieces: tuple[tuple[str, Role], ...] = (
                (look.glyphs.gutter + " ", "warn"),
                (text, "strong"),
            )
            rows.append(Para(pieces, indent, hang=2))
        else:
            rows.append(code(("  ", "muted"), (text, "muted"), indent=indent))
    return rows


def marked_place(lines: Sequence[LogLine], offset: int) -> int:
    """Which of the lines holds the offset."""
    return max((n for n, line in enumerate(lines) if line.offset <= offset), default=0)
