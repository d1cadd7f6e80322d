"""Memory in use on a run's cards, coarse enough that only a real change shows."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.domain.models import HostName
from cockpit.engine.fleet import FleetStore

STEP_MIB = 64


def memory_of_cards(fleet: FleetStore, host: HostName, cards: Sequence[int]) -> int | None:
    """In steps of 64 MiB; None where nothing is known."""
    state = fleet.hosts.get(host)
    latest = state.latest if state is not None else None
    if latest is None:
        return None
    used = [gpu.mem_used_mib or 0 for gpu in latest.gpus if gpu.index in cards]
    return sum(used) // STEP_MIB
