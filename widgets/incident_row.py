"""One incident in the list: sign, time, kind, where, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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


def moment(at_s: float, now_s: float) -> str:
    """ "12:04:31" of today, "11-30 12:04" of another day."""
    at, now = datetime.fromtimestamp(at_s), datetime.fromtimestamp(now_s)
    return clock(at_s) if at.date() == now.date() else at.strftime("%m-%d %H:%M")


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """An incident with its title, made where all sentences are made."""

    incident: Incident
    title: str
    when: str = ""
    """As the list writes it; the clock's hours and minutes where it is empty."""
    name: str = ""
    """The key in the list, where it is not the incident's own: one of an earlier session."""
    until: str = ""
    """When it was over, where the list tells times."""

    @property
    def key(self) -> str:
        return self.name or self.incident.key

    def draw(self, look: Look, width: int) -> Line:
        incident = self.incident
        settled = incident.state in SETTLED or bool(self.name)
        quiet = settled or incident.state == "seen" or bool(incident.mute)
        style = look.muted if quiet else look.severity(incident.severity)
        line = Line(look.text).add(look.glyphs.incident(incident.state, incident.severity), style)
        line.add(" " + (self.when or clock(incident.opened_s)[:5]) + "  ", look.muted)
        tail = self._tail()
        room = max(8, width - line.cells - (width_of(tail) + 2 if tail else 0))
        title, place = self._title_and_place(room, look)
        line.add(title, look.text if quiet else look.strong)
        if place:
            line.add("  ").add(place, look.muted)
        if tail:
            line.pad_to(width - width_of(tail)).add(tail, look.muted)
        return line

    def _title_and_place(self, room: int, look: Look) -> tuple[str, str]:
        """Both whole where they fit; then the host and card alone, then a shorter title."""
        title, long = safe_line(self.title), where(self.incident)
        short = long.rsplit(" ", 1)[-1]
        left = room - width_of(title) - 2
        if width_of(long) <= left:
            return title, long
        if left >= width_of(short) + 6:
            return title, cut_middle(long, left, look.glyphs.cut)
        if width_of(short) <= left or width_of(short) * 2 > room:
            return cut_end(title, room, look.glyphs.cut), short if width_of(short) <= left else ""
        return cut_end(title, room - width_of(short) - 2, look.glyphs.cut), short

    def _tail(self) -> str:
        incident = self.incident
        count = f"x{incident.count}" if incident.count > 1 else ""
        state = _("muted") if incident.mute and not self.name else state_words(incident)
        return " ".join(part for part in (count, state, self.until) if part)
