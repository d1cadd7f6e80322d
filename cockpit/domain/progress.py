"""How far a run is, read from what its tools print."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from cockpit.domain.lines import Line
from cockpit.domain.progress_bars import other_bar
from cockpit.domain.progress_lines import read
from cockpit.domain.progress_said import Said
from cockpit.domain.runs import Progress

PACE_SAMPLES: Final = 20
"""Steps over which the pace is measured by our own clock."""
_READ_FIRST, _READ_LAST = 16, 48
_PHASE: Final = re.compile(
    r"(?<![\w./])(evaluat\w+|validat\w+|saving|save[ds]?|writing|checkpoint\w*|loading|download\w+|fetching"
    r"|compil\w+|capturing|warm\w*[ -]?up|uploading|pushing|tokeniz\w+|quantiz\w+|merging)\b",
    re.IGNORECASE,
)
_PHASES: Final = {
    "eval": "evaluate", "vali": "evaluate", "savi": "save", "save": "save", "writ": "save", "chec": "save",
    "load": "load", "down": "load", "fetc": "load", "comp": "compile", "capt": "compile", "warm": "compile",
    "uplo": "save", "push": "save", "toke": "load", "quan": "load", "merg": "save",
}  # fmt: skip
_RANK: Final = re.compile(r"\[(?:rank|default)(\d{1,5})\]:")


@dataclass(frozen=True, slots=True)
class Marks:
    """What of a log is no progress, and tells a busy run from a dead one."""

    moves: int = 0
    """How often another counter moved: an evaluation, a save, a download."""
    phase: str = ""
    """What it said last that it does beside its steps: evaluate, save, load, compile; empty after a step."""
    bad_losses: int = 0
    """Reports in a row whose loss was NaN or infinite."""
    stuck_reports: int = 0
    """A server's reports in a row with requests in work and not one token made."""


class ProgressReader:
    """Feed it lines and bar states in order; it keeps what they said last."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.marks = Marks()
        self._bar_total: int | None = None
        self._other_bar = ""
        self._steps: deque[tuple[int, float]] = deque(maxlen=PACE_SAMPLES)
        self._restarted = True

    @property
    def stepped(self) -> tuple[int, float] | None:
        """The newest step that was seen as it came, and when."""
        return self._steps[-1] if self._steps else None

    def feed(self, text: str, at_s: float | None = None) -> bool:
        """Take one line (plain text); True when `progress` changed."""
        rank = _RANK.match(text) if text.startswith("[") else None
        if rank is not None:
            text = text[rank.end() :]
        said = read(text)
        is_first = rank is None or int(rank[1]) == 0
        if said is None or not is_first or (said.bar and not self._is_ours(said)):
            if is_first:
                self._note(text)
            return False
        before = self.progress
        self.progress = self._merged(said, at_s)
        self._mark(said, before)
        return self.progress != before

    def _note(self, text: str) -> None:
        """A line that is no step: another counter that moves, or a word about what is done now."""
        place = other_bar(text)
        if place and place != self._other_bar:
            self._other_bar = place
            self.marks = replace(self.marks, moves=self.marks.moves + 1)
        word = _PHASE.search(text[:400])
        if word is not None:
            self.marks = replace(self.marks, phase=_PHASES[word[1].lower()[:4]])

    def _mark(self, said: Said, before: Progress) -> None:
        """A loss that is none, a server that makes nothing; a step ends whatever was done beside it."""
        marks = self.marks
        if said.step is not None and said.step != before.step:
            marks = replace(marks, phase="")
        if said.is_bad:
            is_same_bar = said.bar and said.step == before.step
            marks = replace(marks, bad_losses=marks.bad_losses + (not is_same_bar))
        elif said.loss is not None:
            marks = replace(marks, bad_losses=0)
        if said.running is not None:
            is_stuck = said.running > 0 and said.tokens_s == 0 and not said.prompt_s
            marks = replace(marks, stuck_reports=marks.stuck_reports + 1 if is_stuck else 0)
        self.marks = marks

    def _is_ours(self, said: Said) -> bool:
        """The first bar of a run is its training; a shorter one beside it is an evaluation."""
        if said.total is None or said.total < 2:
            return False
        if self._bar_total is None or said.total > self._bar_total:
            self._bar_total = said.total
        return said.total == self._bar_total

    def _merged(self, said: Said, at_s: float | None) -> Progress:
        old = self.progress
        told = {
            "step": said.step,
            "total_steps": said.total,
            "epoch": said.epoch,
            "loss": said.loss,
            "step_s": self._pace(said, at_s),
            "tokens_s": said.tokens_s,
            "samples_s": said.samples_s,
            "data_s": said.data_s,
            "requests_running": said.running,
            "requests_waiting": said.waiting,
            "kv_pct": said.kv_pct,
        }
        known = {name: value for name, value in told.items() if value is not None}
        merged = replace(old, **known)  # type: ignore[arg-type]
        return replace(merged, eta_s=_eta_s(merged, said))

    def _pace(self, said: Said, at_s: float | None) -> float | None:
        """Seconds a step by our own clock where there is one: a bar's own rate is wrong after a resume."""
        if said.step is None or at_s is None:
            return said.step_s
        if self._steps and said.step < self._steps[-1][0]:
            self._steps.clear()
            self._restarted = True
        if not self._steps or said.step > self._steps[-1][0]:
            self._steps.append((said.step, at_s))
        if self._restarted and len(self._steps) == 2:
            self._steps.popleft()
            self._restarted = False
        (first, first_s), (last, last_s) = self._steps[0], self._steps[-1]
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
