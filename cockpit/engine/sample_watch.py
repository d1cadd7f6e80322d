"""Runs the sample detectors of every host and reports what they say: a full card, a lost one, an OOM kill."""

from __future__ import annotations

from cockpit.domain.detectors import HostWatch, Signal
from cockpit.domain.models import HostName, HostSample
from cockpit.engine.incident_desk import IncidentDesk

_OPEN = ("open", "seen", "applied")


class SampleWatch:
    def __init__(self, desk: IncidentDesk) -> None:
        self._desk = desk
        self._watches: dict[HostName, HostWatch] = {}

    def take(self, sample: HostSample) -> None:
        watch = self._watches.get(sample.host)
        if watch is None:
            watch = self._watches[sample.host] = HostWatch()
        for signal in watch.feed(sample):
            if signal.action == "open":
                self._desk.report(
                    signal.finding, host=sample.host, gpu=signal.gpu, evidence=signal.evidence
                )
            else:
                self._settle(sample.host, signal)

    def forget(self, host: HostName) -> None:
        self._watches.pop(host, None)

    def _settle(self, host: HostName, signal: Signal) -> None:
        """The condition is gone: what it opened has recovered."""
        for incident in self._desk.all():
            if (
                incident.host == host
                and incident.gpu == signal.gpu
                and incident.family == signal.finding.family
                and incident.finding.signature == signal.finding.signature
                and incident.state in _OPEN
            ):
                self._desk.settle(incident.key, "recovered", signal.finding.cause)
