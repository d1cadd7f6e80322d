"""The session's incidents with a clock and a voice: what the book decides, everyone hears."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cockpit.domain.incident_book import IncidentBook
from cockpit.domain.incidents import Evidence, Finding, Incident
from cockpit.domain.models import HostName, RunId
from cockpit.engine.clock import Clock
from cockpit.engine.events import EventBus, IncidentChanged


class IncidentDesk:
    """The IncidentStore of the engine. Detectors report here."""

    def __init__(self, bus: EventBus, clock: Clock) -> None:
        self._book = IncidentBook()
        self._bus = bus
        self._clock = clock

    @property
    def version(self) -> int:
        return self._book.version

    def all(self) -> Sequence[Incident]:
        return self._book.all()

    def get(self, key: str) -> Incident | None:
        return self._book.get(key)

    def report(
        self,
        finding: Finding,
        *,
        host: HostName | None = None,
        gpu: int | None = None,
        run: RunId | None = None,
        profile: str | None = None,
        evidence: Sequence[Evidence] = (),
    ) -> None:
        """Something was found."""
        at_s = self._clock.wall_s()
        for incident, before in self._book.take(
            finding, at_s, host=host, gpu=gpu, run=run, profile=profile, evidence=evidence
        ):
            self._bus.publish(IncidentChanged(incident, before, at_s))

    def settle(
        self, key: str, state: Literal["recovered", "withdrawn", "closed"], why: str = ""
    ) -> None:
        """The condition went away, or we were wrong."""
        at_s = self._clock.wall_s()
        changed = self._book.settle(key, state, at_s, why)
        if changed is not None:
            incident, before = changed
            self._bus.publish(IncidentChanged(incident, before, at_s))

    def set_state(
        self, key: str, state: Literal["open", "seen", "applied", "closed"], why: str = ""
    ) -> None:
        """What a person decided."""
        before = self._book.get(key)
        self._book.set_state(key, state, why)
        after = self._book.get(key)
        if after is not None and after != before:
            self._bus.publish(IncidentChanged(after, before, self._clock.wall_s()))
