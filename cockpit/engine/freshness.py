"""When a host's silence means something: pure arithmetic on arrival times, judged by one fleet-wide timer."""

from __future__ import annotations

from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["fresh", "stale", "silent"]

STALE_TICKS = 3
STALE_LEAST_S = 1.5
STALE_MOST_S = 10.0
"""A host that is slow by habit is given twice its longest recent gap, up to this."""
SILENT_S = 8.0
SILENT_TICKS = 5
FIRST_SAMPLE_S = 45.0
"""Opening a driver takes up to 24 s in a container and 10 s on a chassis with many cards."""
_GAP_DECAY = 0.95


class Freshness:
    """Knows when the last sample came and how far apart this host's samples usually are."""

    def __init__(self, now_s: float, interval_s: float) -> None:
        self._interval_s = interval_s
        self._stale_from_s = now_s
        self._silent_from_s = now_s
        self._longest_gap_s = 0.0
        self._gap_from_s: float | None = None

    def sampled(self, now_s: float, interval_s: float) -> None:
        """A sample came. The first of a sampler teaches nothing about gaps: starting takes its own time."""
        if self._gap_from_s is not None:
            gap_s = now_s - self._gap_from_s
            self._longest_gap_s = max(gap_s, self._longest_gap_s * _GAP_DECAY)
        self._stale_from_s = self._silent_from_s = self._gap_from_s = now_s
        self._interval_s = interval_s

    def restarted(self, now_s: float) -> None:
        """A new sampler starts: it is not silent yet, and what we have grows old all the same."""
        self._silent_from_s = now_s
        self._gap_from_s = None

    def retimed(self, now_s: float, interval_s: float) -> None:
        """The interval was changed: nothing is late yet."""
        self._interval_s = interval_s
        self._stale_from_s = self._silent_from_s = now_s
        self._longest_gap_s = 0.0
        if self._gap_from_s is not None:
            self._gap_from_s = now_s

    @property
    def stale_after_s(self) -> float:
        ticks_s = STALE_TICKS * self._interval_s
        usual_s = min(2.0 * self._longest_gap_s, max(ticks_s, STALE_MOST_S))
        return max(STALE_LEAST_S, ticks_s, usual_s)

    @property
    def silent_after_s(self) -> float:
        """When the sampler itself is taken for hung and started anew."""
        least_s = SILENT_S if self._gap_from_s is not None else FIRST_SAMPLE_S
        return max(least_s, SILENT_TICKS * self._interval_s, self.stale_after_s)

    def verdict(self, now_s: float) -> Verdict:
        if now_s - self._silent_from_s >= self.silent_after_s:
            return "silent"
        return "stale" if now_s - self._stale_from_s >= self.stale_after_s else "fresh"

    def next_deadline_s(self, now_s: float) -> float:
        """The moment at which the verdict changes unless a sample comes."""
        stale_s = self._stale_from_s + self.stale_after_s
        return stale_s if now_s < stale_s else self._silent_from_s + self.silent_after_s
