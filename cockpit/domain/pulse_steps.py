"""A run's step counter over time: since when it stands, and whether its steps take longer than at first."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from cockpit.domain.progress import Marks
from cockpit.domain.pulse_levels import Levels

LEAST_SPAN_S: Final = 2.0
"""Steps faster than this are measured several at a time."""
RECENT: Final = 20
MOST_BASE: Final = 64
SKIP_S: Final = 120.0
SLOW_BASE_S: Final = 600.0
ENOUGH_SLOW: Final = 20
OUTLIERS_IN_A_ROW: Final = 3


@dataclass(slots=True)
class StepClock:
    """Differences of the counter by arrival: a tool's own pace is an average over its whole life."""

    moved_s: float | None = None
    """When the counter, or another beside it, moved last."""
    step: int | None = None
    has_moved: bool = False
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    gaps: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    """Between two moves of the counter: a log that speaks every hundred steps stands in between."""
    _base: list[float] = field(default_factory=list)
    _base_steps: int = 0
    _base_s: float = 0.0
    _skipped: int = 0
    _skipped_s: float = 0.0
    _mark: tuple[int, float] | None = None
    _moves: int | None = None
    _phase: str = ""
    _step_s: float | None = None
    _is_mixed: bool = False
    """Something else was done since the mark: the time until the next step is no step's."""
    _outliers: int = 0

    def feed(self, at_s: float, step: int | None, marks: Marks) -> tuple[int, bool]:
        """Take the counters of now; (steps done since the last time, whether something else moved)."""
        others = self._moves is not None and marks.moves != self._moves
        if others or marks.phase not in ("", self._phase):
            self.moved_s = at_s
        self._moves, self._phase = marks.moves, marks.phase
        before, self.step = self.step, step
        if self.moved_s is None or self._step_s is None:
            self.moved_s = self._step_s = at_s
        aside = self._is_aside(at_s, others, marks.phase)
        self._is_mixed = self._is_mixed or aside
        if step is None or before is None or step == before:
            return 0, aside
        if self.has_moved:
            self.gaps.append(at_s - self._step_s)
        self.moved_s = self._step_s = at_s
        self.has_moved = True
        return max(1, step - before), aside

    def _is_aside(self, at_s: float, others: bool, phase: str) -> bool:
        """Something else is done in place of steps; what a tool says or draws within each step is part of it."""
        if not others and phase in ("", "load"):
            return False
        usual_s = self.gap_s()
        return usual_s > 0 and at_s - (self._step_s or at_s) > 2 * max(LEAST_SPAN_S / 2, usual_s)

    def pace(self, stepped: tuple[int, float] | None, levels: Levels) -> None:
        """Measure what was done since the last measure."""
        if stepped is None or self._mark is None or stepped[0] < self._mark[0]:
            self._mark, self._is_mixed = stepped, False
            return
        steps, span_s = stepped[0] - self._mark[0], stepped[1] - self._mark[1]
        if steps == 0 or span_s < LEAST_SPAN_S:
            return
        is_mixed, self._mark, self._is_mixed = self._is_mixed, stepped, False
        if not is_mixed:
            self._measure(span_s / steps, steps, span_s, levels)

    def _measure(self, step_s: float, steps: int, span_s: float, levels: Levels) -> None:
        if self._skipped < levels.baseline_skip and self._skipped_s < SKIP_S:
            self._skipped += steps
            self._skipped_s += span_s
            return
        usual = median(self.recent) if self.recent else step_s
        if step_s > levels.outlier * usual and self._outliers < OUTLIERS_IN_A_ROW:
            self._outliers += 1
            return
        self._outliers = 0
        self.recent.append(step_s)
        if self._base_steps < levels.baseline_most and len(self._base) < MOST_BASE:
            self._base.append(step_s)
            self._base_steps += steps
            self._base_s += span_s

    def baseline_s(self, levels: Levels) -> float | None:
        """Of the first healthy steps; None while there are too few."""
        slow = self._base_steps >= ENOUGH_SLOW and self._base_s >= SLOW_BASE_S
        enough = self._base_steps >= levels.baseline_least and len(self._base) >= 5
        return median(self._base) if enough or slow else None

    def is_basing(self, levels: Levels) -> bool:
        """Whether the steps of now still make the baseline."""
        return self._base_steps < levels.baseline_most and len(self._base) < MOST_BASE

    def step_s(self) -> float | None:
        """The median of the last steps."""
        return median(self.recent) if self.recent else None

    def gap_s(self) -> float:
        """How long the counter usually stands between two lines; 0 while that is not known."""
        return median(self.gaps) if len(self.gaps) >= 2 else 0.0

    def still_s(self, at_s: float) -> float:
        return 0.0 if self.moved_s is None else at_s - self.moved_s

    def unseen(self, gap_s: float) -> None:
        """Nobody saw this time: it does not count as standing, nor as a step's."""
        if self.moved_s is not None:
            self.moved_s += gap_s
        if self._step_s is not None:
            self._step_s += gap_s
        self._mark = None
