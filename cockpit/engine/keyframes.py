"""What is true of a host now, as frames: whoever begins to read there needs nothing from before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cockpit.domain.incident_kin import OPEN_STATES
from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, HostSample
from cockpit.domain.runs import RunView
from cockpit.domain.sample_record import sample_record
from cockpit.engine.clock import Clock
from cockpit.engine.fleet import FleetStore
from cockpit.engine.recording_rows import incident_fields, line_of, link_fields, run_fields

if TYPE_CHECKING:
    from cockpit.engine.api import RunStore

MOST_RUNS: Final = 32
MOST_OPEN: Final = 16
"""Of one host, the runs and open incidents that are told."""
ENDED_LATELY_S: Final = 3600.0
_MONO: Final = re.compile(rb'"mono":\s*([0-9]{1,12}(?:\.[0-9]{1,9})?)')


class Keyframes:
    def __init__(self, fleet: FleetStore, clock: Clock) -> None:
        self.runs: RunStore | None = None
        self._fleet = fleet
        self._clock = clock
        self._samples: dict[HostName, tuple[bytes, HostSample]] = {}
        self._open: dict[str, Incident] = {}

    def took(self, host: HostName, line: bytes, sample: HostSample) -> None:
        self._samples[host] = line, sample

    def heard(self, incident: Incident) -> None:
        if incident.state in OPEN_STATES:
            self._open[incident.key] = incident
        else:
            self._open.pop(incident.key, None)

    def forget(self, host: HostName) -> None:
        self._samples.pop(host, None)

    def of(self, host: HostName | None, at_s: float) -> list[bytes]:
        lines: list[bytes] = []
        state = None if host is None else self._fleet.hosts.get(host)
        if state is not None:
            lines.append(line_of(at_s, "link", host, link_fields(state, self._clock.now_s())))
        if host is not None and (last := self._samples.get(host)) is not None:
            record = sample_record(last[1], _mono_of(last[0]))
            lines.append(line_of(at_s, "full", host, {"line": record}))
        lines += [
            line_of(at_s, "run", host, run_fields(view)) for view in self._present(host, at_s)
        ]
        known = [one for one in self._open.values() if one.host == host][-MOST_OPEN:]
        return lines + [line_of(at_s, "incident", host, incident_fields(one)) for one in known]

    def _present(self, host: HostName | None, at_s: float) -> list[RunView]:
        """The newest runs of the host that live, or ended lately."""
        views = () if self.runs is None else self.runs.all()
        present = (
            view
            for view in views
            if view.host == host
            and not (view.ended and (view.ended_s or 0) < at_s - ENDED_LATELY_S)
        )
        return [view for view, _n in zip(present, range(MOST_RUNS), strict=False)]


def _mono_of(line: bytes) -> float | None:
    found = _MONO.search(line)
    return None if found is None else float(found[1])
