"""How far each host's clock is ahead of this computer's, and whether it was set meanwhile."""

from __future__ import annotations

from typing import Final

from cockpit.domain.models import HostName
from cockpit.engine.clock import Clock

SKEW_S: Final = 30.0
"""An answer may be so long on its way: a smaller difference is none."""


class HostClocks:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s: dict[HostName, tuple[float, float]] = {}
        """Of our wall clock, and of our own that nobody sets."""

    def heard(self, host: HostName, now_s: float) -> float:
        """Take a host's word for its time; returns by how much its clock was set since its last word.

        Ours may have been set, or stood still while this computer slept: then only one of the two moves.
        """
        before = self._ahead_s.get(host)
        ahead_s = (now_s - self._clock.wall_s(), now_s - self._clock.now_s())
        self._ahead_s[host] = ahead_s
        if before is None:
            return 0.0
        by_wall_s, by_own_s = ahead_s[0] - before[0], ahead_s[1] - before[1]
        was_set = abs(by_wall_s) > SKEW_S and abs(by_wall_s - by_own_s) < SKEW_S
        return by_wall_s if was_set else 0.0

    def wall_s(self, host: HostName) -> float:
        """The time there, as far as it is known."""
        return self._clock.wall_s() + self._ahead_s.get(host, (0.0, 0.0))[0]


def steady(ahead_s: float, before_s: float) -> float:
    """A difference worth telling, the one before unless it has moved: it is part of what is compared."""
    if abs(ahead_s - before_s) <= SKEW_S:
        return before_s
    return ahead_s if abs(ahead_s) > SKEW_S else 0.0
