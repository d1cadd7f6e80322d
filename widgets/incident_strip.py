"""The incidents that matter most, on every screen, one line each: it repaints as they happen."""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from cockpit.domain.cells import cut_end, cut_middle
from cockpit.domain.incidents import Incident
from cockpit.domain.text import safe_line
from cockpit.i18n import _
from cockpit.widgets.drawing import Line, width_of
from cockpit.widgets.look import look_of

LINES = 2


class IncidentStrip(Widget):
    """At most two rows, none when all is quiet."""

    DEFAULT_CSS = """
    IncidentStrip { height: 0; width: 100%; }
    """

    class Opened(Message):
        """A line was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self._incidents: tuple[Incident, ...] = ()

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Those that show, most urgent first."""
        return self._incidents

    def show(self, incidents: Sequence[Incident]) -> None:
        """Take the open incidents, most urgent first."""
        shown = tuple(one for one in incidents if one.is_loud)
        shown = tuple(one for one in shown if one.severity != "notice")[:LINES]
        if shown == self._incidents:
            return
        if len(shown) != len(self._incidents):
            self.styles.height = len(shown)
        self._incidents = shown
        self.refresh()

    def render_line(self, y: int) -> Strip:
        look, width = look_of(self), self.size.width
        if y >= len(self._incidents):
            return Strip.blank(width, look.text)
        incident = self._incidents[y]
        state = look.severity(incident.severity)
        clock = time.strftime("%H:%M:%S", time.localtime(incident.opened_s))
        hint = _("a apply") if any(r.patch for r in incident.finding.remedies) else _("i open")
        line = Line(look.text).add(" ")
        line.add(look.glyphs.severity(incident.severity), state).add(f" {clock}  ", look.muted)
        line.add(incident.family, state).pad_to(line.cells + 11 - len(incident.family))
        line.add(cut_middle(where(incident), 24), look.strong).add("  ")
        room = width - line.cells - width_of(hint) - 3
        line.add(cut_end(safe_line(summary(incident)), max(0, room), look.glyphs.cut))
        return line.pad_to(width - width_of(hint) - 1).add(hint, look.ok).strip(width)

    def on_click(self, event: events.Click) -> None:
        if event.y < len(self._incidents):
            self.post_message(self.Opened(self._incidents[event.y].key))


def where(incident: Incident) -> str:
    """ "qwen-lora vast-a:0": the profile or run, the host and the card, as far as they are known."""
    place = incident.host or ""
    if incident.gpu is not None:
        place += f":{incident.gpu}"
    return safe_line(" ".join(filter(None, (incident.profile or incident.run or "", place))))


def summary(incident: Incident) -> str:
    """One line on the incident, made where all sentences are made."""
    from cockpit.i18n.messages import describe_incident

    return describe_incident(incident).summary
