"""Which sampler to run next on a host, and when: the probe, else nvidia-smi, else /proc; a dying one not in a loop."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.engine.backoff import Backoff
from cockpit.engine.link_state import Reason
from cockpit.engine.sampler import KINDS, SamplerKind
from cockpit.errors import NoPython, ProbeError

FAST_DEATHS = 3
"""Deaths in a row, each within HEALTHY_S of its start, before the next kind is taken."""


class SamplerChoice:
    def __init__(self, jitter: Callable[[], float]) -> None:
        self._backoff = Backoff(jitter)
        self._position = 0
        self.fallback: Reason | None = None
        """Why it is not the probe that runs; None while it is."""

    @property
    def kind(self) -> SamplerKind:
        return KINDS[self._position]

    def cannot_start(self, error: ProbeError) -> float:
        """This kind does not run here; returns seconds to wait before the next start."""
        if self._position + 1 == len(KINDS):
            return self._backoff.next_s()
        self._take_next("no_python" if isinstance(error, NoPython) else error.code, error)
        return 0.0

    def died(self, lived_s: float, words: str) -> float:
        """It ended by itself; returns seconds to wait before the next start."""
        self._backoff.ended_after(lived_s)
        delay_s = self._backoff.next_s()
        if self._backoff.failures >= FAST_DEATHS and self._position + 1 < len(KINDS):
            self._take_next("probe_died", ProbeError("probe_died", words=words or None))
        return delay_s

    def forgive(self) -> None:
        """Start over with the best kind: someone asks, or the connection is new."""
        self._position = 0
        self.fallback = None
        self._backoff.reset()

    def _take_next(self, code: str, error: ProbeError) -> None:
        self._position += 1
        self._backoff.reset()
        if self.fallback is None:
            why = {name: value for name, value in error.facts.items() if name != "host"}
            self.fallback = Reason("degraded", code, why)
