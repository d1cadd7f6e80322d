"""One incident in the list: sign, time, kind, where, and whether it is settled. Two rows of it."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.domain.incidents import Incident
from cockpit.domain.text import cut_end, cut_middle, safe_line
from cockpit.i18n import _
from cockpit.widgets.drawing import Line, width_of
from cockpit.widgets.incident_strip import where
from cockpit.widgets.log_time import clock
from cockpit.widgets.look import Look

SETTLED = frozenset({"recovered", "withdrawn", "closed"})


def state_words(incident: Incident) -> str:
    """What became of it in a word; nothing while it is open."""
    return {
        "open": "",
        "seen": _("seen"),
        "applied": _("applied"),
        "recovered": _("recovered"),
        "withdrawn": _("withdrawn"),
        "closed": _("closed"),
    }.get(incident.state, incident.state)


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """An incident with its title, made where all sentences are made."""

    incident: Incident
    title: str

    @property
    def key(self) -> str:
        return self.incident.key

    def draw(self, look: Look, width: int) -> Line:
        incident = self.incident
        settled = incident.state in SETTLED
        style = (
            look.muted if settled or incident.state == "seen" else look.severity(incident.severity)
        )
        line = Line(look.text).add(look.glyphs.incident(incident.state, incident.severity), style)
        line.add(" " + clock(incident.opened_s)[:5] + "  ", look.muted)
        state = state_words(incident)
        count = f"x{incident.count}" if incident.count > 1 else ""
        tail = " ".join(part for part in (count, state) if part)
        room = max(8, width - line.cells - (width_of(tail) + 2 if tail else 0))
        title = cut_end(safe_line(self.title), room, look.glyphs.cut)
        line.add(title, look.text if settled else look.strong)
        place = where(incident)
        left = room - width_of(title) - 2
        if left >= 8:
            line.add("  ").add(cut_middle(place, left, look.glyphs.cut), look.muted)
        if tail:
            line.pad_to(width - width_of(tail)).add(tail, look.muted)
        return line
