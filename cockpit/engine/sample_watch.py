"""Runs the sample detectors of every host and reports what they say: a full card, a lost one, an OOM kill."""

from __future__ import annotations

from cockpit.domain.detectors import HostWatch, Signal
from cockpit.domain.incident_book import Place, key_of
from cockpit.domain.memory_watch import MemoryWatch
from cockpit.domain.models import HostName, HostSample
from cockpit.engine.incident_desk import IncidentDesk


class SampleWatch:
    def __init__(self, desk: IncidentDesk) -> None:
        self._desk = desk
        self._watches: dict[HostName, tuple[HostWatch, MemoryWatch]] = {}

    def take(self, sample: HostSample) -> None:
        watches = self._watches.get(sample.host)
        if watches is None:
            watches = self._watches[sample.host] = (HostWatch(), MemoryWatch())
        for watch in watches:
            for signal in watch.feed(sample):
                self._hear(sample.host, signal)

    def _hear(self, host: HostName, signal: Signal) -> None:
        if signal.action == "open":
            self._desk.report(
                signal.finding,
                host=host,
                gpu=signal.gpu,
                run=signal.run,
                evidence=signal.evidence,
            )
            return
        key = key_of(signal.finding, Place(host, signal.gpu, signal.run))
        self._desk.settle(key, "withdrawn" if signal.action == "withdraw" else "recovered")

    def forget(self, host: HostName) -> None:
        self._watches.pop(host, None)
