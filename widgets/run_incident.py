"""The incident of the run on screen: what it is, what to do, and the key that does it."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from cockpit.domain.incidents import Incident
from cockpit.domain.text import cut_end, safe_line
from cockpit.i18n import _
from cockpit.widgets.drawing import Line, width_of
from cockpit.widgets.look import look_of


class RunIncident(Widget):
    """No row while all is well; else one, and one more with the remedies where there is height."""

    DEFAULT_CSS = """
    RunIncident { height: 0; width: 100%; }
    """

    class Opened(Message):
        """The line was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self._incident: Incident | None = None
        self._summary = ""
        self._remedies: tuple[str, ...] = ()
        self._more = 0

    def show(self, incident: Incident | None, more: int, *, rows: int = 2) -> None:
        """`more` is how many other open ones the run has."""
        if (incident, more) == (self._incident, self._more):
            return
        self._incident, self._more = incident, more
        self._remedies = ()
        if incident is not None:
            from cockpit.i18n.messages import describe_incident

            words = describe_incident(incident)
            self._summary = safe_line(words.summary)
            self._remedies = tuple(safe_line(remedy.text) for remedy in words.remedies)
        height = 0 if incident is None else min(rows, 1 + bool(self._remedies))
        self.styles.height = height
        self.refresh()

    def render_line(self, y: int) -> Strip:
        look, width = look_of(self), self.size.width
        incident = self._incident
        if incident is None:
            return Strip.blank(width, look.text)
        if y == 1:
            return self._remedy_row()
        style = look.severity(incident.severity)
        line = Line(look.text).add(" ").add(look.glyphs.severity(incident.severity), style).add(" ")
        hint = _("a apply and relaunch") if self._has_patch(incident) else _("i all of it")
        if self._more:
            hint = _("{n} more").format(n=self._more) + "   " + hint
        room = width - line.cells - width_of(hint) - 3
        line.add(cut_end(self._summary, max(0, room), look.glyphs.cut), look.strong)
        return line.pad_to(width - width_of(hint) - 1).add(hint, look.ok).strip(width)

    def _has_patch(self, incident: Incident) -> bool:
        return any(remedy.patch for remedy in incident.finding.remedies)

    def _remedy_row(self) -> Strip:
        look, width = look_of(self), self.size.width
        line = Line(look.text).add("   ")
        for number, text in enumerate(self._remedies, 1):
            room = width - line.cells - 6
            if room < 16:
                break
            line.add(f"{number} ", look.ok).add(cut_end(text, room, look.glyphs.cut), look.muted)
            line.add("   ")
        return line.strip(width)

    def on_click(self, event: events.Click) -> None:
        if self._incident is not None:
            self.post_message(self.Opened(self._incident.key))
