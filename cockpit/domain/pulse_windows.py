"""Readings become one low, middle and high value a window; a run keeps a few windows and no more."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MOST_READINGS: Final = 128
MOST_WINDOWS: Final = 32


class Spread(NamedTuple):
    """The tenth, half and nine tenths of a window's readings."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time that is over."""

    start_s: float
    end_s: float
    values: Mapping[str, Spread]
    steps: int = 0
    """How far the step counter went in it."""
    is_aside: bool = False
    """Something beside steps was done in it: an evaluation, a save."""

    def mid(self, name: str) -> float | None:
        spread = self.values.get(name)
        return None if spread is None else spread.mid

    def high(self, name: str) -> float | None:
        spread = self.values.get(name)
        return None if spread is None else spread.high


@dataclass(slots=True)
class Windows:
    """The newest ones of one run."""

    closed: deque[Window] = field(default_factory=lambda: deque(maxlen=MOST_WINDOWS))
    _readings: dict[str, list[float]] = field(default_factory=dict)
    _count: int = 0
    _start_s: float | None = None
    _steps: int = 0
    _is_aside: bool = False

    def feed(
        self, at_s: float, width_s: float, values: Mapping[str, float], steps: int, aside: bool
    ) -> Window | None:
        """Take a reading; the window that it ended."""
        done = None
        if self._start_s is not None and at_s - self._start_s >= width_s:
            done = Window(
                self._start_s, at_s, _spreads(self._readings), self._steps, self._is_aside
            )
            self.closed.append(done)
            self._begin(at_s)
        elif self._start_s is None:
            self._begin(at_s)
        if self._count < MOST_READINGS:
            self._count += 1
            for name, value in values.items():
                self._readings.setdefault(name, []).append(value)
        self._steps += steps
        self._is_aside = self._is_aside or aside
        return done

    def forget(self) -> None:
        """There was a time that nobody saw: what is before it does not join what comes."""
        self.closed.clear()
        self._start_s = None

    def since(self, at_s: float) -> list[Window]:
        """Those that lie whole after this moment."""
        return [window for window in self.closed if window.start_s >= at_s]

    def last(self, count: int) -> list[Window]:
        """The newest so many; nothing while there are fewer."""
        return list(self.closed)[-count:] if len(self.closed) >= count else []

    def _begin(self, at_s: float) -> None:
        self._start_s, self._readings, self._count = at_s, {}, 0
        self._steps, self._is_aside = 0, False


def _spreads(readings: Mapping[str, list[float]]) -> dict[str, Spread]:
    return {name: spread_of(values) for name, values in readings.items() if values}


def spread_of(values: list[float]) -> Spread:
    ordered = sorted(values)
    last = len(ordered) - 1
    return Spread(ordered[round(last * 0.1)], ordered[last // 2], ordered[round(last * 0.9)])
