"""What the profiles of runs want to be told of: `[watch]`. Shared by everyone who watches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cockpit.domain.incidents import Finding
from cockpit.domain.models import RunId
from cockpit.domain.pulse_levels import IDLE_S, STALL_S

_OOM_FAMILIES: Final = frozenset({"gpu_oom", "host_oom", "kv_cache"})
_GROWTH_CAUSES: Final = frozenset({"full_soon"})


@dataclass(frozen=True, slots=True)
class Wishes:
    """`[watch]` of one run; None for a time: nobody wants to know."""

    oom: bool = True
    leak: bool = True
    stall_s: float | None = STALL_S
    idle_s: float | None = IDLE_S

    def wants(self, finding: Finding) -> bool:
        """The end of a run is always told: `finding_of_end` has a signature of its own."""
        if finding.family == "leak" or finding.cause in _GROWTH_CAUSES:
            return self.leak
        if finding.family in _OOM_FAMILIES or finding.family == "near_full":
            return self.oom
        return True


class WatchWishes:
    """Of every run whose profile is known; any other is watched as a profile without the table."""

    def __init__(self) -> None:
        self._wishes: dict[RunId, Wishes] = {}

    def of(self, run: RunId | None) -> Wishes:
        return _ALL if run is None else self._wishes.get(run, _ALL)

    def put(self, run: RunId, wishes: Wishes) -> None:
        self._wishes[run] = wishes


_ALL: Final = Wishes()
