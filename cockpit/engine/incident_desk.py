"""The session's incidents with a clock and a voice: what the book decides, everyone hears."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from cockpit.domain.incident_book import OPEN_STATES, Change, IncidentBook, Place
from cockpit.domain.incident_proof import Proof
from cockpit.domain.incidents import Evidence, Finding, Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.mutes import MOST_MUTES, Mute, mute_of, next_end_s
from cockpit.engine.clock import Clock
from cockpit.engine.events import EventBus, IncidentChanged

Testify = Callable[[Finding, Place, float], "Proof | None"]
Fit = Callable[[Finding, Place], Finding]


class IncidentDesk:
    """The IncidentStore of the engine. Detectors report here."""

    testify: Testify | None = None
    """Who says what the instruments show at the moment an incident opens."""

    fit: Fit | None = None
    """Who makes the remedies those of the run that has the incident."""

    def __init__(self, bus: EventBus, clock: Clock) -> None:
        self._book = IncidentBook()
        self._bus = bus
        self._clock = clock
        self._mutes: tuple[Mute, ...] = ()
        self._mutes_end_s = float("inf")

    @property
    def version(self) -> int:
        return self._book.version

    def all(self) -> Sequence[Incident]:
        if self._clock.wall_s() >= self._mutes_end_s:
            self.set_mutes(self._mutes)
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
        is_live: bool = True,
    ) -> None:
        """Something was found; not live when it happened before anybody watched: its line was in the log already."""
        at_s = self._clock.wall_s()
        if self.fit is not None:
            finding = self.fit(finding, Place(host, gpu, run, profile))
        for change in self._book.take(
            finding,
            at_s,
            host=host,
            gpu=gpu,
            run=run,
            profile=profile,
            evidence=evidence,
            is_live=is_live,
        ):
            incident = self._witnessed(change, at_s) if is_live else change[0]
            incident = self._quieted(incident, at_s)
            self._bus.publish(IncidentChanged(incident, change[1], at_s))

    @property
    def mutes(self) -> Sequence[Mute]:
        """The rules that hold, the newest first."""
        return self._mutes

    def set_mutes(self, mutes: Iterable[Mute]) -> None:
        """From now on these; those that are over are dropped. Whoever falls silent or speaks again is told."""
        at_s = self._clock.wall_s()
        valid = {one.id: one for one in mutes if not one.is_over(at_s)}
        newest = sorted(valid.values(), key=lambda one: -one.since_s)
        self._mutes = tuple(newest[:MOST_MUTES])
        self._mutes_end_s = next_end_s(self._mutes)
        for before in self._book.all():
            after = self._quieted(before, at_s)
            if after != before:
                self._bus.publish(IncidentChanged(after, before, at_s))

    def _quieted(self, incident: Incident, at_s: float) -> Incident:
        rule = mute_of(incident, self._mutes, at_s)
        return self._book.amend(incident.key, mute=rule) or incident

    def remember(self, incidents: Iterable[Incident]) -> None:
        """What earlier sessions knew and decided."""
        self._book.remember(incidents)

    def note_recording(self, key: str, file: str) -> None:
        """The flight recorder has written the time around an incident to a file."""
        before = self._book.get(key)
        after = self._book.amend(key, recording=file)
        if after is not None and after != before:
            self._bus.publish(IncidentChanged(after, before, self._clock.wall_s()))

    def _witnessed(self, change: Change, at_s: float) -> Incident:
        """With what the instruments say, when it has just opened or opened again."""
        incident, before = change
        has_opened = before is None or before.state not in OPEN_STATES
        if self.testify is None or not has_opened or incident.state not in OPEN_STATES:
            return incident
        place = Place(incident.host, incident.gpu, incident.run, incident.profile)
        proof = self.testify(incident.finding, place, at_s)
        return self._book.amend(incident.key, proof=proof) or incident

    def refit(self, run: RunId) -> None:
        """More is known of a run: what helps its incidents is said anew."""
        for before in self._book.all():
            if before.run != run or self.fit is None:
                continue
            place = Place(before.host, before.gpu, before.run, before.profile)
            after = self._book.amend(before.key, finding=self.fit(before.finding, place))
            if after is not None and after != before:
                self._bus.publish(IncidentChanged(after, before, self._clock.wall_s()))

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
        self._book.set_state(key, state, why, self._clock.wall_s())
        after = self._book.get(key)
        if after is not None and after != before:
            self._bus.publish(IncidentChanged(after, before, self._clock.wall_s()))
