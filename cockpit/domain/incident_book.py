"""Findings become incidents here: one cause, one incident; repeats only count.

Pure: time comes in with every call, and what a person should hear of comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from cockpit.domain.episode import INHIBITS
from cockpit.domain.incidents import (
    SEVERITIES,
    Evidence,
    Family,
    Finding,
    Incident,
    IncidentState,
)
from cockpit.domain.models import HostName, RunId

Change: TypeAlias = tuple[Incident, Incident | None]
"""(now, before); before is None when the incident is new."""

SAME_RUN_WINDOW_S: Final = 120.0
SAME_HOST_WINDOW_S: Final = 30.0
"""Within these, one failure explains another of the same run, or of the same host."""
FLAPS: Final = 3
FLAP_WINDOW_S: Final = 1800.0
"""So many openings in half an hour come and go: the incident stays open and says so."""
MOST_EVIDENCE: Final = 24
MOST_INCIDENTS: Final = 1000

OPEN_STATES: Final[frozenset[IncidentState]] = frozenset({"open", "seen", "applied"})
_STATE_ORDER: Final[dict[IncidentState, int]] = {
    "open": 0, "applied": 1, "seen": 2, "recovered": 3, "withdrawn": 4, "closed": 5,
}  # fmt: skip
_ALSO_INHIBITS: Final[frozenset[tuple[Family, Family]]] = frozenset(
    {("gpu_oom", "near_full"), ("hardware", "near_full"), ("hardware", "starved"), ("hang", "idle")}
)


@dataclass(frozen=True, slots=True)
class Place:
    """Whose incident it is."""

    host: HostName | None = None
    gpu: int | None = None
    run: RunId | None = None
    profile: str | None = None

    @property
    def scope(self) -> str:
        """The run's attempt, or the host and its card."""
        if self.run is not None:
            return f"run:{self.run}"
        card = "" if self.gpu is None else f":{self.gpu}"
        return f"host:{self.host or ''}{card}"


def key_of(finding: Finding, place: Place) -> str:
    """Never the numbers: a repeat has the same key."""
    return f"{place.scope}/{finding.family}/{finding.signature}"


class IncidentBook:
    """All incidents of a session under one version counter."""

    def __init__(self) -> None:
        self.version = 0
        self._incidents: dict[str, Incident] = {}
        self._opened: dict[str, list[float]] = {}

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
    ) -> list[Change]:
        """Note a finding; returns (now, before) of each incident that a person should hear about."""
        place = Place(host, gpu, run, profile)
        key = key_of(finding, place)
        before = self._incidents.get(key)
        if before is not None:
            return self._repeat(before, finding, at_s, evidence)
        winner = self._explanation(finding, place, at_s)
        if winner is not None:
            self._put(_with_loser(winner, finding, place, at_s, evidence))
            return []
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
        after = self._put(replace(before, state=state, state_why=why, last_s=at_s))
        return after, before

    def set_state(
        self, key: str, state: Literal["open", "seen", "applied", "closed"], why: str = ""
    ) -> None:
        """What a person decided."""
        before = self._incidents.get(key)
        if before is not None and (before.state, before.state_why) != (state, why):
            self._put(replace(before, state=state, state_why=why))

    def get(self, key: str) -> Incident | None:
        return self._incidents.get(key)

    def all(self) -> Sequence[Incident]:
        """Fatal open, warning open with the nearest deadline first, seen, recovered, the rest."""
        return sorted(self._incidents.values(), key=_order)

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
        losers = [old for old in self._incidents.values() if _explains(finding, place, at_s, old)]
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
        )
        for loser in losers:
            opened = replace(opened, evidence=_joined(opened.evidence, loser.evidence))
        self._opened.setdefault(key, []).append(at_s)
        changes: list[Change] = [(self._put(opened), None)]
        for loser in losers:
            closed = replace(loser, state="closed", state_why=f"explained_by:{key}", last_s=at_s)
            changes.append((self._put(closed), loser))
        self._forget_old()
        return changes

    def _repeat(
        self, before: Incident, finding: Finding, at_s: float, evidence: Sequence[Evidence]
    ) -> list[Change]:
        amended = finding.offset is not None and finding.offset == before.finding.offset
        state: IncidentState = before.state
        if finding.recovered:
            state = "recovered"
        elif state not in OPEN_STATES or _rank(finding) < _rank(before.finding):
            state = "open"
        if state == "open" and before.state not in OPEN_STATES:
            self._opened.setdefault(before.key, []).append(at_s)
        after = replace(
            before,
            finding=finding
            if amended or _rank(finding) <= _rank(before.finding)
            else before.finding,
            last_s=at_s,
            count=before.count if amended else before.count + 1,
            state=state,
            state_why=before.state_why if state == before.state else "",
            evidence=_joined(before.evidence, () if amended else tuple(evidence)),
        )
        self._put(after)
        spoken = state != before.state or _rank(after.finding) < _rank(before.finding)
        return [(after, before)] if spoken else []

    def _explanation(self, finding: Finding, place: Place, at_s: float) -> Incident | None:
        """The open incident of which the finding is a copy or an effect."""
        for old in self._incidents.values():
            if old.state not in OPEN_STATES or not _near(old, place, at_s):
                continue
            if finding.family == old.family:
                if _same_failure(old, finding, place):
                    return old
            elif (old.family, finding.family) in INHIBITS | _ALSO_INHIBITS:
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
                self._incidents.values(), key=lambda one: (_STATE_ORDER[one.state], -one.last_s)
            )
            del self._incidents[oldest.key]
            self._opened.pop(oldest.key, None)


def _near(old: Incident, place: Place, at_s: float) -> bool:
    """Whether both happened at one place at about one time."""
    if old.run is not None and place.run is not None:
        return old.run == place.run and at_s - old.last_s <= SAME_RUN_WINDOW_S
    if old.host != place.host or at_s - old.last_s > SAME_HOST_WINDOW_S:
        return False
    return old.gpu is None or place.gpu is None or old.gpu == place.gpu


def _same_failure(old: Incident, finding: Finding, place: Place) -> bool:
    """Other words for the same thing; two cards of a host are two things."""
    if finding.recovered or (finding.family == "hardware" and _other_card(old, finding, place)):
        return False
    return _rank(finding) >= _rank(old.finding)


def _other_card(old: Incident, finding: Finding, place: Place) -> bool:
    ours, theirs = old.finding.facts.get("bus_id"), finding.facts.get("bus_id")
    if ours is not None and theirs is not None:
        return ours != theirs
    return old.gpu != place.gpu


def _explains(finding: Finding, place: Place, at_s: float, old: Incident) -> bool:
    if finding.recovered or old.state not in OPEN_STATES or not _near(old, place, at_s):
        return False
    return (finding.family, old.family) in INHIBITS | _ALSO_INHIBITS


def _with_loser(
    winner: Incident, finding: Finding, place: Place, at_s: float, evidence: Sequence[Evidence]
) -> Incident:
    """The effect becomes a line of evidence; a host's incident learns which run it hit."""
    same = finding.family == winner.family
    return replace(
        winner,
        finding=finding if same and _tells_more(finding, winner.finding) else winner.finding,
        last_s=at_s,
        count=winner.count + 1 if same else winner.count,
        run=winner.run or place.run,
        profile=winner.profile or place.profile,
        gpu=winner.gpu if winner.gpu is not None else place.gpu,
        evidence=_joined(winner.evidence, tuple(evidence) or _as_evidence(finding, at_s)),
    )


def _tells_more(newer: Finding, older: Finding) -> bool:
    """The first line may be the one without the numbers."""
    sizes = [any(name.endswith("_mib") for name in each.facts) for each in (newer, older)]
    return sizes == [True, False]


def _as_evidence(finding: Finding, at_s: float) -> tuple[Evidence, ...]:
    text = finding.text or f"{finding.family} {finding.signature}"
    return (Evidence(at_s, "log", text, finding.offset, finding.line),)


def _joined(first: tuple[Evidence, ...], more: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The first lines say why; of what follows, the newest are kept."""
    if len(first) + len(more) <= MOST_EVIDENCE:
        return first + more
    kept = MOST_EVIDENCE // 2
    rest = first[kept:] + more
    return first[:kept] + rest[len(rest) - (MOST_EVIDENCE - len(first[:kept])) :]


def _rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def _order(incident: Incident) -> tuple[int, int, float, float]:
    deadline = incident.finding.facts.get("eta_s")
    due_s = float(deadline) if isinstance(deadline, int | float) else float("inf")
    return _STATE_ORDER[incident.state], _rank(incident.finding), due_s, -incident.opened_s
