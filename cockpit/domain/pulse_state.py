"""What the rules of one run's progress remember: windows, the step counter, and what was normal for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from cockpit.domain.incidents import Evidence, FactValue, Family, Finding, Severity
from cockpit.domain.models import GpuSample
from cockpit.domain.pulse_beat import Beat, foreign_pids, vitals
from cockpit.domain.pulse_levels import Levels
from cockpit.domain.pulse_steps import StepClock
from cockpit.domain.pulse_windows import Window, Windows
from cockpit.domain.remedies import make_all

WORD: Final = ("possible", "likely")
NORMAL_WINDOWS: Final = 30
SWING_READINGS: Final = 300


@dataclass(slots=True)
class PulseState:
    """Bounded, whatever the run's age."""

    levels: Levels
    windows: Windows = field(default_factory=Windows)
    steps: StepClock = field(default_factory=StepClock)
    heard_s: float | None = None
    """When the last byte of its log came."""
    began_s: float | None = None
    normal_power: deque[float] = field(default_factory=lambda: deque(maxlen=NORMAL_WINDOWS))
    """Of windows in which it worked."""
    base_power: float | None = None
    base_clock: float | None = None
    base_util: float | None = None
    base_tokens: float | None = None
    known_pids: frozenset[int] = frozenset()
    """Others' processes that were on its cards while the baseline was made."""
    quiet_since_s: float | None = None
    """Since when no card of it did anything."""
    busy_s: dict[int, float] = field(default_factory=dict)
    """When each card of it did something last."""
    swings: deque[float] = field(default_factory=lambda: deque(maxlen=SWING_READINGS))
    swing_step_s: float | None = None
    _bytes: int | None = None
    _swing_s: float | None = None

    def take(self, beat: Beat) -> bool:
        """Remember a look; whether a window ended with it."""
        at_s = beat.at_s
        if self._bytes != beat.log_bytes or self.heard_s is None:
            self._bytes, self.heard_s = beat.log_bytes, at_s
        if self.began_s is None:
            self.began_s = at_s
        progress = beat.progress
        done, aside = self.steps.feed(at_s, progress.step, beat.marks)
        self.steps.pace(beat.stepped, self.levels)
        cards = beat.cards
        used = self._used(cards, at_s)
        values = vitals(beat, used or cards)
        values["working"], values["spinning"] = self._at_work(cards)
        baseline_s, step_s = self.steps.baseline_s(self.levels), self.steps.step_s()
        if baseline_s and step_s and not self.steps.is_basing(self.levels):
            values["ratio"] = step_s / baseline_s
        self._swing(at_s, values.get("util"))
        closed = self.windows.feed(at_s, self.levels.window_s, values, done, aside)
        if closed is not None:
            self._note(closed, beat)
        return closed is not None

    def unseen(self, gap_s: float) -> None:
        """For so long there were no samples: the link was down, or this computer slept."""
        self.steps.unseen(gap_s)
        self.windows.forget()
        self.swings.clear()
        self.heard_s = None if self.heard_s is None else self.heard_s + gap_s
        self.quiet_since_s = None
        self.busy_s.clear()

    # -- what the rules ask ----------------------------------------------------------------

    @property
    def is_stepped(self) -> bool:
        """It has a step counter, whether or not it moved while we looked."""
        return self.steps.step is not None and (self.steps.has_moved or self.steps.step > 0)

    def still_s(self, at_s: float) -> float:
        """Since the last sign of getting on: a step, another counter; without one, a byte of the log."""
        if self.is_stepped:
            return self.steps.still_s(at_s)
        moved_s = max(self.heard_s or at_s, self.steps.moved_s or self.began_s or at_s)
        return at_s - moved_s

    def held(self) -> list[Window]:
        """The windows that make up the time for which a condition must hold; none while there are too few."""
        return self.windows.last(3)

    def is_moving(self, windows: list[Window]) -> bool:
        """Steps were done in each of them and nothing else; a log that speaks seldom moves in some."""
        if any(window.is_aside for window in windows):
            return False
        if 2 * self.steps.gap_s() > self.levels.window_s:
            return any(window.steps > 0 for window in windows)
        return all(window.steps > 0 for window in windows)

    def usual_power(self) -> float | None:
        return median(self.normal_power) if self.normal_power else None

    def unused(self, at_s: float, for_s: float) -> int:
        """How many of its cards did nothing for so long while others of it worked."""
        lately = [at_s - busy_s for busy_s in self.busy_s.values()]
        return (
            sum(span_s >= for_s for span_s in lately) if min(lately, default=for_s) < for_s else 0
        )

    def _used(self, cards: tuple[GpuSample, ...], at_s: float) -> tuple[GpuSample, ...]:
        """Those that did something lately: a card that is reserved and left alone says nothing of the steps."""
        known = {gpu.index for gpu in cards}
        self.busy_s = {index: busy_s for index, busy_s in self.busy_s.items() if index in known}
        for gpu in cards:
            is_busy = gpu.util_pct is None or gpu.util_pct > self.levels.quiet_util_pct
            if is_busy or gpu.index not in self.busy_s:
                self.busy_s[gpu.index] = at_s
        return tuple(gpu for gpu in cards if at_s - self.busy_s[gpu.index] <= self.levels.window_s)

    def _at_work(self, cards: Iterable[GpuSample]) -> tuple[float, float]:
        """How many cards work, and how many only spin in a kernel that waits."""
        usual, levels = self.usual_power(), self.levels
        working = spinning = 0
        for gpu in cards:
            if gpu.util_pct is None:
                working += 1
            elif gpu.util_pct > levels.quiet_util_pct:
                spins = gpu.util_pct >= levels.spin_util_pct and _is_low(gpu, usual, levels)
                spinning, working = spinning + spins, working + (not spins)
        return float(working), float(spinning)

    def _note(self, window: Window, beat: Beat) -> None:
        levels = self.levels
        util, power = window.mid("util"), window.mid("power")
        is_normal = window.steps > 0 or (not self.is_stepped and (util or 0.0) >= 50.0)
        if is_normal and power is not None and (util or 0.0) > levels.quiet_util_pct:
            self.normal_power.append(power)
        if window.steps > 0 and not window.is_aside and self.steps.is_basing(levels):
            self.base_power, self.base_util = power, util
            self.base_clock, self.base_tokens = window.mid("clock"), window.mid("tokens")
            self.known_pids = foreign_pids(beat)
        is_quiet = (window.high("util_most") or 0.0) <= levels.quiet_util_pct
        if "util_most" not in window.values or not is_quiet:
            self.quiet_since_s = None
        elif self.quiet_since_s is None:
            self.quiet_since_s = window.start_s

    def _swing(self, at_s: float, util: float | None) -> None:
        """Use second by second, while steps are long enough to be seen in it."""
        if util is None:
            return
        if self._swing_s is not None and at_s - self._swing_s > 2.5:
            self.swings.clear()
        span_s = at_s - self._swing_s if self._swing_s is not None else None
        self._swing_s, self.swing_step_s = at_s, span_s
        self.swings.append(util)


def _is_low(gpu: GpuSample, usual: float | None, levels: Levels) -> bool:
    if gpu.power_w is None:
        return False
    if usual is not None:
        return gpu.power_w < levels.spin_power_share * usual
    limit = gpu.power_limit_w
    return limit is not None and gpu.power_w < levels.spin_power_of_limit * limit


def made(
    family: Family,
    signature: str,
    severity: Severity,
    cause: str,
    facts: dict[str, FactValue | None],
    remedies: tuple[str, ...],
) -> Finding:
    """A finding with the facts that are known."""
    known = {name: value for name, value in facts.items() if value is not None}
    return Finding(
        family, signature, severity, known, cause=cause, remedies=make_all(remedies, known)
    )


def word(signals: int) -> str:
    """How sure: one primary signal is possible, two that do not follow from one another are likely."""
    return WORD[1] if signals >= 2 else WORD[0]


def rounded(value: float | None, digits: int = 0) -> float | int | None:
    if value is None:
        return None
    return round(value, digits) if digits else round(value)


def proc_line(window: Window, at_s: float) -> tuple[Evidence, ...]:
    """What the host's processes and disks did in a window, as one line of evidence."""
    parts = [
        f"{label} {value:.0f}{unit}"
        for name, label, unit in _SHOWN
        if (value := window.mid(name)) is not None and (value >= 0.5 or name == "main_cpu")
    ]
    return (Evidence(at_s, "proc", ", ".join(parts)),) if parts else ()


def card_line(window: Window, at_s: float, usual: float | None = None) -> tuple[Evidence, ...]:
    """What its cards did."""
    util, power = window.mid("util"), window.mid("power")
    if util is None:
        return ()
    watts = "" if power is None else f", {power:.0f} W"
    before = "" if usual is None else f" (usual {usual:.0f} W)"
    return (Evidence(at_s, "nvml", f"util {util:.0f} %{watts}{before}"),)


_SHOWN: Final = (
    ("main_cpu", "main process", " % CPU"),
    ("workers", "workers", ""),
    ("workers_busy", "at a full core", ""),
    ("workers_blocked", "in state D", ""),
    ("iowait", "iowait", " %"),
    ("io_full", "io pressure", " %"),
    ("cpu_wait", "cpu pressure", " %"),
    ("throttled", "quota cut", " %"),
    ("disk_in", "disk read", " MiB/s"),
    ("net_in", "network in", " MiB/s"),
)
