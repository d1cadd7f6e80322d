"""Which lines of a run's log speak of its incidents."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.domain.incidents import Incident, Severity


def lines_of(incident: Incident) -> set[int]:
    """Lines of the run's log that speak of the incident."""
    lines = {one.line for one in incident.evidence if one.line is not None and one.source == "log"}
    return lines if incident.finding.line is None else lines | {incident.finding.line}


def trouble_lines(incidents: Sequence[Incident]) -> dict[int, Severity]:
    """Line numbers with the worst that they opened."""
    rank = {"fatal": 0, "warning": 1, "notice": 2}
    found: dict[int, Severity] = {}
    for incident in incidents:
        line = incident.finding.line
        if line is not None and rank[incident.severity] < rank.get(found.get(line, ""), 3):
            found[line] = incident.severity
    return found
