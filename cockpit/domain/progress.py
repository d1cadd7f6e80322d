"""How far a run is, read from what its tools print."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import Final

from cockpit.domain.lines import Line
from cockpit.domain.progress_lines import Said, read
from cockpit.domain.runs import Progress

PACE_SAMPLES: Final = 20
"""Steps over which the pace is measured by our own clock."""
_READ_FIRST, _READ_LAST = 16, 48
_RANK: Final = re.compile(r"\[(?:rank|default)(\d{1,5})\]:")


class ProgressReader:
    """Feed it lines and bar states in order; it keeps what they said last."""

    def __init__(self) -> None:
        self.progress = Progress()
        self._bar_total: int | None = None
        self._marks: deque[tuple[int, float]] = deque(maxlen=PACE_SAMPLES)
        self._restarted = True

    def feed(self, text: str, at_s: float | None = None) -> bool:
        """Take one line (plain text); True when `progress` changed."""
        rank = _RANK.match(text) if text.startswith("[") else None
        if rank is not None:
            text = text[rank.end() :]
        said = read(text)
        if said is None or (rank is not None and int(rank[1]) != 0):
            return False
        if said.bar and not self._is_ours(said):
            return False
        before = self.progress
        self.progress = self._merged(said, at_s)
        return self.progress != before

    def _is_ours(self, said: Said) -> bool:
        """The first bar of a run is its training; a shorter one beside it is an evaluation."""
        if said.total is None or said.total < 2:
            return False
        if self._bar_total is None or said.total > self._bar_total:
            self._bar_total = said.total
        return said.total == self._bar_total

    def _merged(self, said: Said, at_s: float | None) -> Progress:
        old = self.progress
        step_s = self._pace(said, at_s)
        merged = replace(
            old,
            step=old.step if said.step is None else said.step,
            total_steps=old.total_steps if said.total is None else said.total,
            epoch=old.epoch if said.epoch is None else said.epoch,
            loss=old.loss if said.loss is None else said.loss,
            step_s=old.step_s if step_s is None else step_s,
            tokens_s=old.tokens_s if said.tokens_s is None else said.tokens_s,
        )
        return replace(merged, eta_s=_eta_s(merged, said))

    def _pace(self, said: Said, at_s: float | None) -> float | None:
        """Seconds a step by our own clock where there is one: a bar's own rate is wrong after a resume."""
        if said.step is None or at_s is None:
            return said.step_s
        if self._marks and said.step < self._marks[-1][0]:
            self._marks.clear()
            self._restarted = True
        if not self._marks or said.step > self._marks[-1][0]:
            self._marks.append((said.step, at_s))
        if self._restarted and len(self._marks) == 2:
            self._marks.popleft()
            self._restarted = False
        (first, first_s), (last, last_s) = self._marks[0], self._marks[-1]
        if last <= first or last_s <= first_s:
            return said.step_s
        return (last_s - first_s) / (last - first)


def _eta_s(progress: Progress, said: Said) -> float | None:
    if progress.step is None or progress.total_steps is None:
        return None
    if progress.step_s is None:
        return said.eta_s
    return max(0, progress.total_steps - progress.step) * progress.step_s


def telling(lines: list[Line]) -> list[Line]:
    """Of one piece of a log those that are read for progress: what is between is outdated on arrival."""
    if len(lines) <= _READ_FIRST + _READ_LAST:
        return lines
    return lines[:_READ_FIRST] + lines[-_READ_LAST:]
