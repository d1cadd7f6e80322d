"""Whether a run stands still, told from one that is quiet and works.

A run that shall be seen as hung: steps in its log (`step 12/900 loss 1.2`, a bar), its card busy for
a window at least (above 50 % use, near its usual power), then no step any more while either the card
stays at 95 % and more with less than half of the usual power (a collective that spins), or card and
processes do nothing (use at most 5 %, CPU at most 10 % of a core). The first is told after
`frozen_least_s` (two minutes, `[watch] stall` where that is less), the second after `stall`.
"""

from __future__ import annotations

from typing import Final

from cockpit.domain.incidents import Evidence, FactValue, Finding, Severity
from cockpit.domain.pulse_beat import Beat, main_pid
from cockpit.domain.pulse_state import PulseState, card_line, made, proc_line, rounded, word
from cockpit.domain.pulse_windows import Window

SIGNATURE: Final = "hang-silence"
SERVER_SIGNATURE: Final = "server-stuck"
_REMEDIES: Final = {
    "hang_spinning": ("py_spy", "compare_ranks", "flight_recorder", "restart_from_checkpoint"),
    "hang_blocked": ("py_spy", "no_workers_once", "restart_from_checkpoint"),
    "hang_disk": ("check_mounts", "py_spy", "restart_from_checkpoint"),
    "hang_gone": ("read_first_error", "restart_from_checkpoint"),
}


def hang(state: PulseState, beat: Beat) -> Finding | None:
    """The finding while it stands still, else None."""
    levels = state.levels
    if levels.stall_s is None or beat.is_starting or beat.is_serving:
        return None
    still_s = state.still_s(beat.at_s)
    if still_s < min(levels.stall_s, levels.frozen_least_s):
        return None
    windows = state.windows.since(beat.at_s - still_s)[-3:]
    if len(windows) < (2 if still_s >= 3 * levels.window_s else 1) or not _worked(state):
        return None
    cause = _spins(state, beat, windows, still_s) or _stands(state, beat, windows, still_s)
    return None if cause is None else _finding(state, beat, windows[-1], still_s, cause)


def _worked(state: PulseState) -> bool:
    """Steps, or cards that did something: what never began is not stuck, others watch over starts."""
    return state.is_stepped or bool(state.normal_power)


def _spins(
    state: PulseState, beat: Beat, windows: list[Window], still_s: float
) -> tuple[str, int] | None:
    """Use of a card that works, power of one that waits: a collective that never ends."""
    if any(window.high("working") or not window.mid("spinning") for window in windows):
        return None
    levels = state.levels
    step_s = state.steps.step_s() or beat.progress.step_s or 0.0
    limit_s = max(
        levels.frozen_least_s,
        levels.frozen_steps * step_s,
        levels.frozen_gaps * state.steps.gap_s(),
    )
    usual = state.usual_power()
    if usual is None or _is_busy_elsewhere(state, beat, windows) or not state.is_stepped:
        limit_s = max(limit_s, levels.stall_s or 0.0)
    return ("hang_spinning", 1 + (usual is not None)) if still_s >= limit_s else None


def _stands(
    state: PulseState, beat: Beat, windows: list[Window], still_s: float
) -> tuple[str, int] | None:
    """Neither cards nor processes do anything."""
    levels = state.levels
    limit_s = max(levels.stall_s or 0.0, levels.frozen_gaps * state.steps.gap_s())
    if _is_busy_elsewhere(state, beat, windows):
        limit_s *= levels.patience
    if still_s < limit_s:
        return None
    if not beat.cards:
        is_idle = all(
            (window.high("host_cpu") or 100.0) <= levels.quiet_host_pct for window in windows
        )
        return ("hang_blocked", 1) if is_idle and state.is_stepped else None
    if any(window.high("working") or window.high("spinning") for window in windows):
        return None
    last = windows[-1]
    if (last.mid("mains_blocked") or 0.0) > 0 or _blocked_share(last) > levels.busy_share:
        return "hang_disk", 2
    cpu, count = last.mid("cpu"), last.mid("processes")
    if cpu is None:
        gone = not any(gpu.processes for gpu in beat.cards)
        return ("hang_gone", 2) if gone and _reads_processes(beat) else ("hang_blocked", 1)
    return ("hang_blocked", 2) if cpu <= levels.quiet_cpu_pct * max(1.0, count or 1.0) else None


def _blocked_share(window: Window) -> float:
    workers = window.mid("workers") or 0.0
    return (window.mid("workers_blocked") or 0.0) / workers if workers else 0.0


def _reads_processes(beat: Beat) -> bool:
    return all(gpu.processes_age_s is not None for gpu in beat.cards)


def _is_busy_elsewhere(state: PulseState, beat: Beat, windows: list[Window]) -> bool:
    """It said that it saves, evaluates or compiles, or bytes move: a download, an upload, a save."""
    if beat.marks.phase:
        return True
    moving = ("net_in", "net_out", "disk")
    return any(
        (window.mid(name) or 0.0) >= state.levels.traffic_mib_s
        for window in windows
        for name in moving
    )


def _finding(
    state: PulseState, beat: Beat, last: Window, still_s: float, cause: tuple[str, int]
) -> Finding:
    code, signals = cause
    usual = state.usual_power()
    silent_s = beat.at_s - (state.heard_s or beat.at_s)
    facts: dict[str, FactValue | None] = {
        "confidence": word(signals),
        "still_s": round(still_s),
        "silent_s": round(silent_s),
        "step": beat.progress.step if state.is_stepped else None,
        "total_steps": beat.progress.total_steps if state.is_stepped else None,
        "util_pct": rounded(last.mid("util")),
        "power_w": rounded(last.mid("power")),
        "usual_w": rounded(usual),
        "cpu_pct": rounded(last.mid("cpu")),
        "main_pid": main_pid(beat),
    }
    severity: Severity = "fatal" if signals >= 2 else "warning"
    return made("hang", SIGNATURE, severity, code, facts, _REMEDIES[code])


def hang_evidence(state: PulseState, beat: Beat) -> tuple[Evidence, ...]:
    last = state.windows.closed[-1] if state.windows.closed else None
    if last is None:
        return ()
    step = beat.progress.step
    words = "no byte" if step is None else f"step {step}"
    said = Evidence(beat.at_s, "log", f"{words} for {state.still_s(beat.at_s):.0f} s")
    return (said, *card_line(last, beat.at_s, state.usual_power()), *proc_line(last, beat.at_s))


def hang_over(state: PulseState, beat: Beat) -> bool:
    """The step moved, or the log speaks again where there is no counter; or it works after all."""
    if state.still_s(beat.at_s) < 2 * state.levels.window_s:
        return True
    windows = state.windows.last(2)
    return bool(windows) and all((window.mid("working") or 0.0) > 0 for window in windows)


def server_stuck(state: PulseState, beat: Beat) -> Finding | None:
    """A server whose own reports show requests in work and no token, several times in a row."""
    if state.levels.stall_s is None or beat.marks.stuck_reports < state.levels.server_reports:
        return None
    facts: dict[str, FactValue | None] = {
        "confidence": word(1),
        "running": beat.progress.requests_running,
        "reports": beat.marks.stuck_reports,
    }
    remedies = ("py_spy", "check_xid", "restart_server")
    return made("hang", SERVER_SIGNATURE, "warning", "server_stuck", facts, remedies)


def not_a_number(state: PulseState, beat: Beat) -> Finding | None:
    """The loss was NaN or infinite in several reports in a row."""
    if beat.marks.bad_losses < state.levels.bad_losses:
        return None
    facts: dict[str, FactValue | None] = {
        "step": beat.progress.step,
        "total_steps": beat.progress.total_steps,
        "reports": beat.marks.bad_losses,
    }
    remedies = ("use_bf16", "lower_lr", "resume_checkpoint")
    return made("nan", "nan-reported", "fatal", "loss_not_finite", facts, remedies)
