"""A run on several hosts: one run on each, with ids of one family, and one verdict on all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_ids import is_run_id
from cockpit.domain.runs import RunView

GANG_NOTE = "gang"
MAX_NODES = 256


@dataclass(frozen=True, slots=True)
class Member:
    """The place of a run among those that were started together. `gang` is the id of rank 0."""

    gang: RunId
    rank: int
    hosts: tuple[HostName, ...]

    @property
    def ids(self) -> tuple[RunId, ...]:
        return tuple(member_id(self.gang, rank) for rank in range(len(self.hosts)))


def member_id(gang: RunId, rank: int) -> RunId:
    return gang if rank == 0 else RunId(f"{gang}-r{rank}")


def is_of_gang(run: RunId, gang: RunId) -> bool:
    """Whether a run's id is that of another rank of that one."""
    return gang_of(run) == gang


def gang_of(run: RunId) -> RunId | None:
    """Whose rank 1 or more a run is by its id alone, if there is such a run."""
    head, _r, rank = run.rpartition("-r")
    return RunId(head) if head and rank.isdigit() else None


def gang_note(member: Member) -> str:
    return json.dumps({"gang": member.gang, "rank": member.rank, "hosts": list(member.hosts)})


def member_of(view: RunView) -> Member | None:
    """None for a run of one host, and for a note that no cockpit wrote."""
    text = dict(view.notes).get(GANG_NOTE)
    if text is None:
        return None
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    gang, rank, hosts = said.get("gang"), said.get("rank"), said.get("hosts")
    if not isinstance(gang, str) or not is_run_id(gang) or not isinstance(hosts, list):
        return None
    known = all(isinstance(host, str) for host in hosts) and 1 < len(hosts) <= MAX_NODES
    if not known or not isinstance(rank, int) or not 0 <= rank < len(hosts):
        return None
    member = Member(RunId(gang), rank, tuple(HostName(host) for host in hosts))
    return member if view.run == member.ids[rank] and view.host == member.hosts[rank] else None


def has_failed(view: RunView) -> bool:
    """It ended, unasked, in a way that leaves the others waiting."""
    if view.state == "lost":
        return True
    return view.state == "exited" and view.by != "cockpit" and view.exit_status != 0


def culprit(views: Iterable[RunView], ahead_s: Mapping[HostName, float]) -> RunView | None:
    """The one that failed first, by its host's clock less how far that is ahead of ours."""
    failed = [view for view in views if has_failed(view)]

    def at_s(view: RunView) -> float:
        return (view.ended_s or float("inf")) - ahead_s.get(view.host, 0.0)

    return min(failed, key=at_s, default=None)
