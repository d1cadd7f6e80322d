"""The watch over one run's progress: hung, starved, slow, idle, or a loss that is none. One cause, one incident.

Fed once a sample with what the log, the cards and the processes show; memory does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from cockpit.domain.incidents import SEVERITIES, Evidence, Finding
from cockpit.domain.pulse_beat import Beat
from cockpit.domain.pulse_hang import (
    hang,
    hang_evidence,
    hang_over,
    not_a_number,
    server_stuck,
)
from cockpit.domain.pulse_idle import idle, idle_evidence, idle_over
from cockpit.domain.pulse_levels import LEVELS, Levels
from cockpit.domain.pulse_slow import (
    slow,
    slow_evidence,
    slow_over,
    swing_evidence,
    swings,
    swings_over,
)
from cockpit.domain.pulse_starved import starved, starved_evidence, starved_over
from cockpit.domain.pulse_state import PulseState

__all__ = ["Levels", "PulseSignal", "RunPulse"]


@dataclass(frozen=True, slots=True)
class PulseSignal:
    """A finding began or goes on with new numbers (`open`), ended (`close`), or has a better name (`give_way`)."""

    action: Literal["open", "close", "give_way"]
    finding: Finding
    evidence: tuple[Evidence, ...] = ()
    to: Finding | None = None
    """What explains one that gives way."""


class _Rule(NamedTuple):
    name: str
    holds: Callable[[PulseState, Beat], Finding | None]
    is_over: Callable[[PulseState, Beat], bool]
    evidence: Callable[[PulseState, Beat], tuple[Evidence, ...]]
    by_window: bool = True
    """What it says changes only when a window is over."""


@dataclass(slots=True)
class _Open:
    finding: Finding
    told_s: float


@dataclass(slots=True)
class RunPulse:
    """Of one attempt of a run; the next attempt has its own."""

    levels: Levels = LEVELS
    _state: PulseState = field(init=False)
    _open: dict[str, _Open] = field(default_factory=dict)
    _last_s: float | None = None
    _step: int | None = None

    def __post_init__(self) -> None:
        self._state = PulseState(self.levels)

    @property
    def open_findings(self) -> tuple[Finding, ...]:
        return tuple(one.finding for one in self._open.values())

    def feed(self, beat: Beat) -> list[PulseSignal]:
        """What changed with this look."""
        gap_s = 0.0 if self._last_s is None else beat.at_s - self._last_s
        if gap_s < 0:
            return []
        self._last_s = beat.at_s
        if gap_s > max(self.levels.gap_s, 4 * beat.sample.interval_s):
            self._state.unseen(gap_s)
        closed = self._state.take(beat)
        return [
            signal
            for rule in _RULES
            if closed or not rule.by_window or rule.name in self._open
            for signal in self._judge(rule, beat)
        ]

    def end(self) -> list[PulseSignal]:
        """The run is over, or begins anew: nothing of it goes on."""
        signals = [PulseSignal("close", one.finding) for one in self._open.values()]
        self._open.clear()
        return signals

    def _judge(self, rule: _Rule, beat: Beat) -> Iterator[PulseSignal]:
        known = self._open.get(rule.name)
        stronger = self._stronger(rule)
        if stronger is not None:
            if known is not None:
                del self._open[rule.name]
                yield PulseSignal("give_way", known.finding, to=stronger)
            return
        finding = rule.holds(self._state, beat)
        if finding is None:
            if known is not None and rule.is_over(self._state, beat):
                del self._open[rule.name]
                yield PulseSignal("close", known.finding)
            return
        again_s = self.levels.lasting_again_s if rule.by_window else self.levels.again_s
        if known is None or _is_news(known, finding, beat.at_s, again_s):
            self._open[rule.name] = _Open(finding, beat.at_s)
            yield PulseSignal("open", finding, rule.evidence(self._state, beat))

    def _stronger(self, rule: _Rule) -> Finding | None:
        """What is open and explains whatever this rule would say."""
        names = _EXPLAINED_BY.get(rule.name, ())
        return next((self._open[name].finding for name in names if name in self._open), None)


def _is_news(known: _Open, finding: Finding, at_s: float, again_s: float) -> bool:
    worse = SEVERITIES.index(finding.severity) < SEVERITIES.index(known.finding.severity)
    return worse or at_s - known.told_s >= again_s


def _marks_over(state: PulseState, beat: Beat) -> bool:
    return True


def _log_evidence(state: PulseState, beat: Beat) -> tuple[Evidence, ...]:
    return ()


_RULES: Final = (
    _Rule("nan", not_a_number, _marks_over, _log_evidence, by_window=False),
    _Rule("server", server_stuck, _marks_over, _log_evidence, by_window=False),
    _Rule("hang", hang, hang_over, hang_evidence, by_window=False),
    _Rule("starved", starved, starved_over, starved_evidence),
    _Rule("slow", slow, slow_over, slow_evidence),
    _Rule("swings", swings, swings_over, swing_evidence),
    _Rule("idle", idle, idle_over, idle_evidence),
)
_EXPLAINED_BY: Final[dict[str, tuple[str, ...]]] = {
    "starved": ("hang",),
    "slow": ("hang", "starved"),
    "swings": ("hang", "starved", "slow"),
    "idle": ("hang", "server", "starved"),
}
"""A rule that gives way, and those that it gives way to."""
