"""Findings become incidents here: one cause, one incident; repeats only count.

Pure: time comes in with every call, and what a person should hear of comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from cockpit.domain.episode import INHIBITS
from cockpit.domain.incident_kin import (
    ALSO_INHIBITS,
    GREW,
    LASTING,
    MOST_EVIDENCE,
    OPEN_STATES,
    STATE_ORDER,
    Place,
    explains,
    grown,
    joined,
    key_of,
    near,
    order_of,
    rank_of,
    same_condition,
    same_failure,
    with_loser,
)
from cockpit.domain.incident_proof import Proof, Step, with_step
from cockpit.domain.incidents import Evidence, Finding, Incident, IncidentState
from cockpit.domain.models import HostName, RunId

__all__ = ["MOST_EVIDENCE", "OPEN_STATES", "Change", "IncidentBook", "Place", "key_of"]

Change: TypeAlias = tuple[Incident, Incident | None]
"""(now, before); before is None when the incident is new."""

FLAPS: Final = 3
FLAP_WINDOW_S: Final = 1800.0
"""So many openings in half an hour come and go: the incident stays open and says so."""
MOST_INCIDENTS: Final = 1000


class IncidentBook:
    """All incidents of a session under one version counter."""

    def __init__(self) -> None:
        self.version = 0
        self._incidents: dict[str, Incident] = {}
        self._opened: dict[str, list[float]] = {}
        self._remembered: dict[str, Incident] = {}

    def remember(self, incidents: Iterable[Incident]) -> None:
        """What an earlier session knew of runs: a line that is read again is the same incident, and so is an end."""
        for one in incidents:
            if one.run is not None:
                self._remembered[one.key] = one

    def take(
        self,
        finding: Finding,
        at_s: float,
        *,
        host: HostName | None = None,
        gpu: int | None = None,
        run: RunId | None = None,
        profile: str | None = None,
        evidence: Sequence[Evidence] = (),
        is_live: bool = True,
    ) -> list[Change]:
        """Note a finding; returns (now, before) of each incident that a person should hear about."""
        place = Place(host, gpu, run, profile)
        key = key_of(finding, place)
        before = self._incidents.get(key)
        if before is not None:
            return self._repeat(before, finding, at_s, evidence)
        winner = self._explanation(finding, place, at_s)
        if winner is not None:
            self._put(with_loser(winner, finding, place, at_s, evidence))
            return []
        known = self._remembered.pop(key, None)
        if known is not None and _is_known(known, finding, is_live):
            return [(self._put(replace(known, finding=finding, mute="")), known)]
        return self._open(key, finding, place, at_s, evidence)

    def settle(
        self,
        key: str,
        state: Literal["recovered", "withdrawn", "closed"],
        at_s: float,
        why: str = "",
    ) -> tuple[Incident, Incident] | None:
        """The condition went away, or we were wrong; None when nothing changed."""
        before = self._incidents.get(key)
        if before is None or before.state not in OPEN_STATES:
            return None
        if state == "recovered" and self._flaps(key, at_s):
            self._put(replace(before, last_s=at_s, state_why="comes_and_goes"))
            return None
        after = replace(before, state=state, state_why=why, last_s=at_s)
        return self._put(_stepped(after, at_s, state, why)), before

    def set_state(
        self,
        key: str,
        state: Literal["open", "seen", "applied", "closed"],
        why: str = "",
        at_s: float | None = None,
    ) -> None:
        """What a person decided."""
        before = self._incidents.get(key)
        if before is not None and (before.state, before.state_why) != (state, why):
            when_s = before.last_s if at_s is None else at_s
            after = replace(before, state=state, state_why=why)
            self._put(_stepped(after, when_s, state, why))

    def amend(
        self,
        key: str,
        *,
        proof: Proof | None = None,
        recording: str | None = None,
        mute: str | None = None,
        finding: Finding | None = None,
    ) -> Incident | None:
        """Add to an incident what is no finding; None when there is no such incident."""
        one = self._incidents.get(key)
        if one is None:
            return None
        after = replace(
            one,
            proof=one.proof if proof is None else proof,
            recording=one.recording if recording is None else recording,
            mute=one.mute if mute is None else mute,
            finding=one.finding if finding is None else finding,
        )
        return one if after == one else self._put(after)

    def get(self, key: str) -> Incident | None:
        return self._incidents.get(key)

    def all(self) -> Sequence[Incident]:
        """Fatal open, warning open with the nearest deadline first, seen, recovered, the rest."""
        return sorted(self._incidents.values(), key=order_of)

    def earlier(self, key: str) -> int:
        """How many incidents of the same kind the same profile had before this one."""
        one = self._incidents.get(key)
        if one is None or one.profile is None:
            return 0
        same = (one.profile, one.family)
        others = (other for other in self._incidents.values() if other.key != key)
        return sum((o.profile, o.family) == same and o.opened_s < one.opened_s for o in others)

    def _open(
        self, key: str, finding: Finding, place: Place, at_s: float, evidence: Sequence[Evidence]
    ) -> list[Change]:
        losers = [old for old in self._incidents.values() if explains(finding, place, at_s, old)]
        for loser in losers:
            finding = grown(finding, loser.finding)
        opened = Incident(
            key=key,
            finding=finding,
            opened_s=at_s,
            last_s=at_s,
            host=place.host,
            gpu=place.gpu,
            run=place.run,
            profile=place.profile,
            evidence=tuple(evidence)[:MOST_EVIDENCE],
            state="recovered" if finding.recovered else "open",
            steps=(Step(at_s, "recovered" if finding.recovered else "open"),),
        )
        for loser in losers:
            opened = replace(opened, evidence=joined(opened.evidence, loser.evidence))
        self._opened.setdefault(key, []).append(at_s)
        changes: list[Change] = [(self._put(opened), None)]
        for loser in losers:
            why = f"explained_by:{key}"
            closed = replace(loser, state="closed", state_why=why, last_s=at_s)
            changes.append((self._put(_stepped(closed, at_s, "closed", why)), loser))
        self._forget_old()
        return changes

    def _repeat(
        self, before: Incident, finding: Finding, at_s: float, evidence: Sequence[Evidence]
    ) -> list[Change]:
        if before.finding.cause == GREW:
            finding = grown(finding, before.finding)
        amended = finding.offset is not None and finding.offset == before.finding.offset
        state: IncidentState = before.state
        if finding.recovered:
            state = "recovered"
        elif state not in OPEN_STATES or rank_of(finding) < rank_of(before.finding):
            state = "open"
        if state == "open" and before.state not in OPEN_STATES:
            self._opened.setdefault(before.key, []).append(at_s)
        after = replace(
            before,
            finding=finding
            if amended or rank_of(finding) <= rank_of(before.finding)
            else before.finding,
            last_s=at_s,
            count=before.count if amended or _still(before, finding) else before.count + 1,
            state=state,
            state_why=before.state_why if state == before.state else "",
            evidence=joined(before.evidence, () if amended else tuple(evidence)),
        )
        is_worse = rank_of(after.finding) < rank_of(before.finding)
        if state != before.state:
            after = _stepped(after, at_s, "again" if state == "open" else state)
        elif is_worse:
            after = _stepped(after, at_s, "worse")
        self._put(after)
        return [(after, before)] if state != before.state or is_worse else []

    def _explanation(self, finding: Finding, place: Place, at_s: float) -> Incident | None:
        """The open incident of which the finding is a copy or an effect."""
        for old in self._incidents.values():
            if old.state not in OPEN_STATES:
                continue
            if same_condition(old, finding, place):
                return old
            if not near(old, place, at_s):
                continue
            if finding.family == old.family:
                if same_failure(old, finding, place):
                    return old
            elif (old.family, finding.family) in INHIBITS | ALSO_INHIBITS:
                return old
        return None

    def _flaps(self, key: str, at_s: float) -> bool:
        recent = [opened for opened in self._opened.get(key, ()) if at_s - opened <= FLAP_WINDOW_S]
        self._opened[key] = recent
        return len(recent) >= FLAPS

    def _put(self, incident: Incident) -> Incident:
        self.version += 1
        self._incidents[incident.key] = incident
        return incident

    def _forget_old(self) -> None:
        """The list is bounded: what is longest over goes first, what is open never before that."""
        while len(self._incidents) > MOST_INCIDENTS:
            oldest = max(
                self._incidents.values(), key=lambda one: (STATE_ORDER[one.state], -one.last_s)
            )
            del self._incidents[oldest.key]
            self._opened.pop(oldest.key, None)


def _still(before: Incident, finding: Finding) -> bool:
    """A condition that lasts, told anew with the numbers of now."""
    return finding.family in LASTING and finding.offset is None and before.state in OPEN_STATES


def _is_known(known: Incident, finding: Finding, is_live: bool) -> bool:
    """The same line of the log; or an end that was over before anybody watched."""
    if finding.offset is None:
        return not is_live and known.finding.offset is None
    return known.finding.offset == finding.offset


def _stepped(one: Incident, at_s: float, what: str, why: str = "") -> Incident:
    return replace(one, steps=with_step(one.steps, Step(at_s, what, why)))
