"""Runs the sample detectors of every host and reports what they say: a full card, a lost one, an OOM kill."""

from __future__ import annotations

from cockpit.domain.detectors import HostWatch
from cockpit.domain.incident_book import Place, key_of
from cockpit.domain.models import HostName, HostSample
from cockpit.engine.incident_desk import IncidentDesk


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
                place = Place(sample.host, signal.gpu)
                self._desk.settle(key_of(signal.finding, place), "recovered")

    def forget(self, host: HostName) -> None:
        self._watches.pop(host, None)
