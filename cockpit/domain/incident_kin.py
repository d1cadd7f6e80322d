"""What belongs to what: one place, one failure, cause and effect; and the order in which incidents are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

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

SAME_RUN_WINDOW_S: Final = 120.0
SAME_HOST_WINDOW_S: Final = 30.0
"""Within these, one failure explains another of the same run, or of the same host."""
MOST_EVIDENCE: Final = 24
OPEN_STATES: Final[frozenset[IncidentState]] = frozenset({"open", "seen", "applied"})
STATE_ORDER: Final[dict[IncidentState, int]] = {
    "open": 0, "applied": 1, "seen": 2, "recovered": 3, "withdrawn": 4, "closed": 5,
}  # fmt: skip
ALSO_INHIBITS: Final[frozenset[tuple[Family, Family]]] = frozenset(
    {
        ("gpu_oom", "near_full"), ("hardware", "near_full"), ("hardware", "starved"), ("hang", "idle"),
        ("hang", "starved"), ("starved", "idle"), ("nccl", "hang"), ("driver", "hang"), ("disk", "hang"),
        ("crash", "idle"), ("driver", "idle"), ("hardware", "idle"),
    }
)  # fmt: skip
FOREBODES: Final[Mapping[str, Family]] = {
    "near_full": "gpu_oom", "full_soon": "gpu_oom", "leak_gpu": "gpu_oom", "leak_host": "host_oom",
    "leak_shm": "shm", "host_near_full": "host_oom", "shm_near_full": "shm", "disk_low": "disk",
    "inodes_low": "disk",
}  # fmt: skip
"""Causes of what is open until it ends, and the family in which it ends badly: however long that takes."""
ONCE_A_HOST: Final = frozenset({"disk_low"})
"""What a run's supervisor and the host's own numbers may both say."""
GREW: Final = "grew_until_full"
LASTING: Final[frozenset[Family]] = frozenset(
    {"leak", "near_full", "starved", "idle", "hang", "kv_cache"}
)
"""What instruments see for as long as it is so: told again it is still the same one."""


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


def near(old: Incident, place: Place, at_s: float) -> bool:
    """Whether both happened at one place at about one time."""
    if old.run is not None and place.run is not None:
        return old.run == place.run and at_s - old.last_s <= SAME_RUN_WINDOW_S
    if old.host != place.host or at_s - old.last_s > SAME_HOST_WINDOW_S:
        return False
    return old.gpu is None or place.gpu is None or old.gpu == place.gpu


def same_failure(old: Incident, finding: Finding, place: Place) -> bool:
    """Other words for the same thing; two cards of a host are two things."""
    if finding.recovered or (finding.family == "hardware" and _other_card(old, finding, place)):
        return False
    return rank_of(finding) >= rank_of(old.finding)


def _other_card(old: Incident, finding: Finding, place: Place) -> bool:
    ours, theirs = old.finding.facts.get("bus_id"), finding.facts.get("bus_id")
    if ours is not None and theirs is not None:
        return ours != theirs
    return old.gpu != place.gpu


def same_condition(old: Incident, finding: Finding, place: Place) -> bool:
    """Another instrument says what one said already; two disks are two conditions."""
    if old.host != place.host or old.finding.cause != finding.cause:
        return False
    told_by_both = old.run is None or place.run is None
    mounts = old.run is None and place.run is None
    return finding.cause in ONCE_A_HOST and told_by_both and not mounts


def explains(finding: Finding, place: Place, at_s: float, old: Incident) -> bool:
    """Whether the new finding is what the older incident came from or led to."""
    if finding.recovered or old.state not in OPEN_STATES:
        return False
    if _was_foreboded(finding, place, old):
        return True
    return near(old, place, at_s) and (finding.family, old.family) in INHIBITS | ALSO_INHIBITS


def _was_foreboded(finding: Finding, place: Place, old: Incident) -> bool:
    if FOREBODES.get(old.finding.cause) != finding.family or finding.severity != "fatal":
        return False
    if old.host != place.host or rank_of(old.finding) <= rank_of(finding):
        return False
    if old.run is not None and place.run is not None and old.run != place.run:
        return False
    return old.gpu is None or place.gpu is None or old.gpu == place.gpu


def grown(finding: Finding, before: Finding) -> Finding:
    """An end that a leak led to: the leak is the cause, and what helps against it comes first."""
    if before.family != "leak" and before.cause != GREW:
        return finding
    slope = before.facts.get("slope_mib_per_h")
    known = {} if slope is None else {"slope_mib_per_h": slope}
    remedies = {remedy.code: remedy for remedy in (*finding.remedies, *before.remedies)}
    order = dict.fromkeys(remedy.code for remedy in (*before.remedies, *finding.remedies))
    return replace(
        finding,
        cause=GREW,
        facts={**finding.facts, **known},
        remedies=tuple(remedies[code] for code in order),
    )


def with_loser(
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
        evidence=joined(winner.evidence, tuple(evidence) or _as_evidence(finding, at_s)),
    )


def _tells_more(newer: Finding, older: Finding) -> bool:
    """The first line may be the one without the numbers."""
    sizes = [any(name.endswith("_mib") for name in each.facts) for each in (newer, older)]
    return sizes == [True, False]


def _as_evidence(finding: Finding, at_s: float) -> tuple[Evidence, ...]:
    text = finding.text or f"{finding.family} {finding.signature}"
    return (Evidence(at_s, "log", text, finding.offset, finding.line),)


def joined(first: tuple[Evidence, ...], more: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The first lines say why; of what follows, the newest are kept."""
    if len(first) + len(more) <= MOST_EVIDENCE:
        return first + more
    kept = MOST_EVIDENCE // 2
    rest = first[kept:] + more
    return first[:kept] + rest[len(rest) - (MOST_EVIDENCE - len(first[:kept])) :]


def rank_of(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def order_of(incident: Incident) -> tuple[int, int, float, float]:
    deadline = incident.finding.facts.get("eta_s")
    due_s = float(deadline) if isinstance(deadline, int | float) else float("inf")
    return STATE_ORDER[incident.state], rank_of(incident.finding), due_s, -incident.opened_s
