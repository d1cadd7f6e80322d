"""The stores of a replay: what screens read, set to what a recording says, forwards and back again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from cockpit.domain.incident_kin import order_of
from cockpit.domain.incidents import Incident
from cockpit.domain.models import RunId
from cockpit.domain.runs import RunView
from cockpit.engine.api import LogLine
from cockpit.engine.log_window import LogWindow, skip_words
from cockpit.engine.run_book import RunBook

MOST_INCIDENTS: Final = 1000
MOST_RUNS: Final = 2000
MOST_LOGS: Final = 256


class ReplayIncidents:
    """An IncidentStore: the recorded incidents are the truth."""

    def __init__(self) -> None:
        self.version = 0
        self._incidents: dict[str, Incident] = {}

    def all(self) -> Sequence[Incident]:
        return sorted(self._incidents.values(), key=order_of)

    def get(self, key: str) -> Incident | None:
        return self._incidents.get(key)

    def put(self, incident: Incident) -> Incident | None:
        """Returns what was known of it before."""
        before = self._incidents.get(incident.key)
        if before is None and len(self._incidents) >= MOST_INCIDENTS:
            return incident
        self._incidents[incident.key] = incident
        self.version += 1
        return before

    def set_state(
        self, key: str, state: Literal["open", "seen", "applied", "closed"], why: str = ""
    ) -> None:
        """What the person who looks decides, until the recording says otherwise."""
        before = self._incidents.get(key)
        if before is not None:
            self.put(replace(before, state=state, state_why=why))

    def clear(self) -> None:
        self._incidents.clear()
        self.version += 1


class ReplayRunBook(RunBook):
    def __init__(self) -> None:
        super().__init__(lambda _view, _before: None)

    def put(self, view: RunView) -> RunView | None:
        """Returns what was known of it before."""
        before = self.get(view.run)
        if before is not None or len(self._runs) < MOST_RUNS:
            self._put(view)
        return before

    def clear(self) -> None:
        self._runs.clear()
        self._sorted = ()
        self._version += 1


class ReplayLog:
    """A RunLog whose window is begun anew when time goes back."""

    def __init__(self) -> None:
        self._window = LogWindow()
        self._is_begun = False
        self._versions = 0

    @property
    def version(self) -> int:
        return self._versions + self._window.version

    @property
    def first_number(self) -> int:
        return self._window.first_number

    @property
    def total_lines(self) -> int:
        return self._window.total_lines

    @property
    def total_bytes(self) -> int:
        return self._window.total_bytes

    @property
    def open_text(self) -> str:
        return self._window.open_text

    @property
    def ended(self) -> bool:
        return self._window.ended

    def __len__(self) -> int:
        return len(self._window)

    def line(self, position: int) -> LogLine:
        return self._window.line(position)

    def lines(self) -> list[LogLine]:
        return [self._window.line(place) for place in range(len(self._window))]

    def close(self) -> None:
        """The lines stay."""

    def clear(self) -> None:
        self._versions += self._window.version + 1
        self._window, self._is_begun = LogWindow(), False

    def feed(self, offset: int, number: int, data: bytes, at_s: float) -> None:
        if not self._is_begun:
            self._versions += self._window.version + 1
            self._window, self._is_begun = LogWindow(offset=offset, number=number), True
        elif offset > self.total_bytes:
            self._window.skip_to(offset, skip_words(offset - self.total_bytes, "dropped"))
        elif offset < self.total_bytes:
            self._window.start_over()
            if offset:
                self._window.skip_to(offset, skip_words(offset, "dropped"))
        self._window.feed(data, at_s)

    def mark(self, incident: Incident) -> None:
        if incident.finding.line is not None:
            self._window.mark(incident.finding.line, incident.severity)


class ReplayLogs:
    """The logs of a recording by run."""

    def __init__(self) -> None:
        self._logs: dict[RunId, ReplayLog] = {}

    def of(self, run: RunId) -> ReplayLog:
        log = self._logs.get(run)
        if log is None:
            log = ReplayLog()
            if len(self._logs) < MOST_LOGS:
                self._logs[run] = log
        return log

    def clear(self) -> None:
        for log in self._logs.values():
            log.clear()
