"""How long to wait before the next try: doubling, bounded, and jittered so that hosts do not march in step."""

from __future__ import annotations

from collections.abc import Callable

FIRST_S = 1.0
LIMIT_S = 60.0
HEALTHY_S = 30.0
"""A link that held this long starts again from the first delay; a host that dies at once does not."""


class Backoff:
    def __init__(
        self, jitter: Callable[[], float], *, first_s: float = FIRST_S, limit_s: float = LIMIT_S
    ) -> None:
        """`jitter` gives a number in [0, 1)."""
        self._jitter = jitter
        self._first_s = first_s
        self._limit_s = limit_s
        self.failures = 0

    def next_s(self) -> float:
        """The delay after one more failure: at least `first_s`, at most `limit_s`."""
        full_s = min(self._limit_s, self._first_s * 2.0 ** min(self.failures, 16))
        self.failures += 1
        return max(self._first_s, full_s * (0.5 + 0.5 * self._jitter()))

    def ended_after(self, healthy_s: float) -> None:
        """Forget earlier failures when what ended had been well for long enough."""
        if healthy_s >= HEALTHY_S:
            self.failures = 0

    def reset(self) -> None:
        self.failures = 0
