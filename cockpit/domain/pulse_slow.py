"""Whether steps take longer than the run's own first healthy ones, and whether use swings with them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from cockpit.domain.incidents import Evidence, FactValue, Finding, Severity
from cockpit.domain.pulse_beat import Beat, foreign_pids, main_pid
from cockpit.domain.pulse_state import PulseState, card_line, made, proc_line, rounded, word
from cockpit.domain.pulse_windows import Window

SIGNATURE: Final = "slow-steps"
SWING_SIGNATURE: Final = "util-swings"
_REMEDIES: Final = {
    "slow_throttled": ("card_cooling", "other_card"),
    "slow_neighbour": ("look_at_card", "pick_empty_card"),
    "slow_waiting": ("compare_rank_times", "check_fabric", "py_spy"),
    "slow_input": ("prefetch_more", "local_copy", "more_workers"),
    "slow_unknown": ("py_spy_top", "compare_rank_times"),
}
_LEAST_READINGS: Final = 48


def slow(state: PulseState, beat: Beat) -> Finding | None:
    """The finding while the last steps are slower than the first, else None."""
    levels = state.levels
    windows, baseline_s, step_s = (
        state.held(),
        state.steps.baseline_s(levels),
        state.steps.step_s(),
    )
    if beat.is_starting or beat.is_serving or not windows or not baseline_s or not step_s:
        return None
    ratios = [window.mid("ratio") or 0.0 for window in windows]
    if min(ratios) <= levels.slow_notice or not state.is_moving(windows):
        return None
    cause, signals = _why(state, beat, windows)
    if not cause:
        return None
    facts: dict[str, FactValue | None] = {
        "confidence": word(signals),
        "slower_pct": round(100 * (ratios[-1] - 1)),
        "step_ms": round(step_s * 1000),
        "usual_ms": round(baseline_s * 1000),
        "util_pct": rounded(windows[-1].mid("util")),
        "power_w": rounded(windows[-1].mid("power")),
        "usual_w": rounded(state.base_power),
        "main_pid": main_pid(beat),
    }
    severity: Severity = "warning" if min(ratios) > levels.slow_warning else "notice"
    return made("starved", SIGNATURE, severity, cause, facts, _REMEDIES[cause])


def _why(state: PulseState, beat: Beat, windows: list[Window]) -> tuple[str, int]:
    """A cause and the number of signals; an empty one where the steps themselves became larger."""
    if all(window.mid("slowed") for window in windows):
        return "slow_throttled", 2
    if foreign_pids(beat) - state.known_pids:
        return "slow_neighbour", 2
    if _is_more_work(state, windows):
        return "", 0
    util, power = windows[-1].mid("util"), windows[-1].mid("power")
    if util is not None and state.base_util is not None and util < state.base_util - 15:
        return "slow_input", 2
    is_full = util is not None and util >= state.levels.spin_util_pct
    is_low = power is not None and power < 0.85 * (state.base_power or 0.0)
    is_waiting = is_full and is_low and len(beat.cards) > 1
    return ("slow_waiting", 2) if is_waiting else ("slow_unknown", 1)


def _is_more_work(state: PulseState, windows: list[Window]) -> bool:
    """Longer sequences and the like: as many tokens as before, or cards that work as hard as ever."""
    levels = state.levels
    tokens = [window.mid("tokens") for window in windows]
    if state.base_tokens and all(told is not None for told in tokens):
        return all((told or 0.0) >= levels.same_tokens * state.base_tokens for told in tokens)
    pairs = [
        (window.mid(name), base)
        for window in windows
        for name, base in (("power", state.base_power), ("clock", state.base_clock))
    ]
    known = [(now, base) for now, base in pairs if now is not None and base is not None]
    as_hard = len(known) >= 3 and all(now >= levels.same_work * base for now, base in known)
    return as_hard and all((window.mid("util") or 0.0) >= 90.0 for window in windows)


def slow_over(state: PulseState, beat: Beat) -> bool:
    baseline_s, step_s = state.steps.baseline_s(state.levels), state.steps.step_s()
    if not baseline_s or not step_s:
        return True
    return step_s / baseline_s < state.levels.slow_over


def slow_evidence(state: PulseState, beat: Beat) -> tuple[Evidence, ...]:
    last = state.windows.closed[-1]
    baseline_s, step_s = state.steps.baseline_s(state.levels), state.steps.step_s()
    said = f"{step_s or 0:.3g} s a step, {baseline_s or 0:.3g} s at first"
    cards = card_line(last, beat.at_s, state.base_power)
    return (Evidence(beat.at_s, "log", said), *cards, *proc_line(last, beat.at_s))


def swings(state: PulseState, beat: Beat) -> Finding | None:
    """Use that goes up and down once a step: part of every step is spent on waiting for others."""
    levels, windows, step_s = state.levels, state.held(), state.steps.step_s()
    if beat.is_starting or beat.is_serving or not windows or step_s is None:
        return None
    if step_s < levels.swing_least_step_s or not all(
        _swings(w, levels.swing_points) for w in windows
    ):
        return None
    lag = round(step_s / state.swing_step_s) if state.swing_step_s else 0
    values = list(state.swings)
    if lag < 2 or len(values) < max(_LEAST_READINGS, 4 * lag):
        return None
    if correlation(values, lag) < levels.swing_correlation:
        return None
    middle = (windows[-1].values["util"].low + windows[-1].values["util"].high) / 2
    low = sum(value < middle for value in values) / len(values)
    ranks = len(beat.cards)
    facts: dict[str, FactValue | None] = {
        "confidence": word(1),
        "share_pct": round(100 * low),
        "low_pct": rounded(windows[-1].values["util"].low),
        "high_pct": rounded(windows[-1].values["util"].high),
        "step_ms": round(step_s * 1000),
        "cards": ranks,
    }
    cause = "swings_ranks" if ranks > 1 else "swings_alone"
    remedies = (
        ("overlap_sync", "no_sync", "check_fabric")
        if ranks > 1
        else ("prefetch_more", "compile_steps")
    )
    return made("starved", SWING_SIGNATURE, "notice", cause, facts, remedies)


def _swings(window: Window, points: float) -> bool:
    spread = window.values.get("util")
    return (
        spread is not None
        and window.steps > 0
        and not window.is_aside
        and spread.high - spread.low > points
    )


def swings_over(state: PulseState, beat: Beat) -> bool:
    windows = state.windows.last(2)
    return bool(windows) and not any(_swings(w, state.levels.swing_points) for w in windows)


def swing_evidence(state: PulseState, beat: Beat) -> tuple[Evidence, ...]:
    last = state.windows.closed[-1]
    spread = last.values.get("util")
    if spread is None:
        return ()
    words = f"util {spread.low:.0f} to {spread.high:.0f} % within each step"
    return (Evidence(beat.at_s, "nvml", words), *proc_line(last, beat.at_s))


def correlation(values: Sequence[float], lag: int) -> float:
    """Of a series with itself so many readings later, from -1 to 1."""
    mean = fmean(values)
    spread = sum((value - mean) ** 2 for value in values)
    if not spread:
        return 0.0
    both = sum((a - mean) * (b - mean) for a, b in zip(values, values[lag:], strict=False))
    return both / spread * len(values) / (len(values) - lag)
