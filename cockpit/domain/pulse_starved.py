"""Whether a run's cards wait for data, and for what: CPU, Python, a disk, the network, too few workers.

A run that shall be seen as starved: steps that move (in its log), use of its cards below 50 % at less
than 60 % of their power limit for three windows (three minutes, or `[watch] stall` where that is less).
`data_time: 0.4 time: 0.6` in its log makes it certain; busy or blocked workers make it likely.
"""

from __future__ import annotations

from typing import Final

from cockpit.domain.incidents import Evidence, FactValue, Finding, Severity
from cockpit.domain.pulse_beat import Beat, main_pid
from cockpit.domain.pulse_levels import Levels
from cockpit.domain.pulse_state import PulseState, card_line, made, proc_line, rounded, word
from cockpit.domain.pulse_windows import Window

SIGNATURE: Final = "starved-input"
_REMEDIES: Final = {
    "starved_quota": ("fewer_threads", "workers_to_cores", "more_cpu"),
    "starved_disk": ("local_copy", "larger_shards", "prefetch_more"),
    "starved_cpu": ("fewer_threads", "workers_to_cores", "decode_ahead", "decode_on_gpu"),
    "starved_memory": ("fewer_workers", "raise_container_limit"),
    "starved_network": ("local_copy", "more_streams", "prefetch_more"),
    "starved_python": ("more_workers", "compile_steps", "log_less"),
    "starved_workers": ("more_workers", "prefetch_more", "local_copy"),
    "starved_data": ("more_workers", "prefetch_more", "local_copy"),
    "starved_unknown": ("more_workers", "compile_steps", "py_spy_top"),
}
_READINGS: Final = {
    "workers": "workers",
    "workers_busy": "workers_busy",
    "workers_blocked": "workers_blocked",
    "main_cpu_pct": "main_cpu",
    "iowait_pct": "iowait",
    "throttled_pct": "throttled",
    "net_mib_s": "net_in",
    "load": "load",
}
_FACTS: Final = {
    "starved_quota": ("throttled_pct", "workers"),
    "starved_cpu": ("workers", "workers_busy", "load"),
    "starved_network": ("net_mib_s",),
    "starved_python": ("main_cpu_pct",),
    "starved_workers": ("workers",),
    "starved_disk": ("workers", "workers_blocked", "iowait_pct"),
}
"""What shows each cause."""


def starved(state: PulseState, beat: Beat) -> Finding | None:
    """The finding while its cards are not fed, else None."""
    windows = state.held()
    if beat.is_starting or beat.is_serving or not windows:
        return None
    if not state.is_moving(windows):
        return None
    levels = state.levels
    waits = all((window.mid("data_share") or 0.0) >= levels.data_share for window in windows)
    if not waits and not all(_is_low(window, levels) for window in windows):
        return None
    return _finding(state, beat, windows, waits)


def _is_low(window: Window, levels: Levels) -> bool:
    util, share = window.mid("util"), window.mid("power_share")
    if util is None or util >= levels.starved_util_pct:
        return False
    return share is None or share < levels.starved_power_share


def _finding(state: PulseState, beat: Beat, windows: list[Window], waits: bool) -> Finding:
    cause = _why(windows, beat, state.levels)
    last = windows[-1]
    signals = 1 + (cause != "starved_unknown")
    if cause == "starved_unknown" and waits:
        cause = "starved_data"
    sure = "certain" if waits else word(signals)
    facts: dict[str, FactValue | None] = {
        "confidence": sure,
        "util_pct": rounded(last.mid("util")),
        "power_pct": rounded(_percent(last.mid("power_share"))),
        "wait_pct": rounded(_percent(last.mid("data_share"))),
        "cores": cores_of(beat),
        "main_pid": main_pid(beat),
        **{name: rounded(last.mid(_READINGS[name])) or None for name in _FACTS.get(cause, ())},
    }
    severity: Severity = "notice" if sure == "possible" else "warning"
    return made("starved", SIGNATURE, severity, cause, facts, _REMEDIES[cause])


def _why(windows: list[Window], beat: Beat, levels: Levels) -> str:
    """The first cause of which every window gives evidence, the surest first."""
    for cause, holds in _CAUSES:
        if all(holds(window, beat, levels) for window in windows):
            return cause
    return "starved_unknown"


def _on_quota(window: Window, beat: Beat, levels: Levels) -> bool:
    return (window.mid("throttled") or 0.0) >= levels.throttled_pct


def _on_disk(window: Window, beat: Beat, levels: Levels) -> bool:
    blocked = _share_of_awake(window, "workers_blocked", levels) >= levels.busy_share
    waits = (window.mid("iowait") or 0.0) > levels.iowait_pct
    return blocked or waits or (window.mid("io_full") or 0.0) > levels.io_full_pct


def _on_cpu(window: Window, beat: Beat, levels: Levels) -> bool:
    if _share_of_awake(window, "workers_busy", levels) >= levels.busy_share:
        return True
    cores, load = cores_of(beat), window.mid("load")
    crowded = cores is not None and load is not None and load > cores
    return crowded or (window.mid("cpu_wait") or 0.0) > levels.cpu_wait_pct


def _on_memory(window: Window, beat: Beat, levels: Levels) -> bool:
    return (window.mid("mem_full") or 0.0) > levels.mem_full_pct


def _on_network(window: Window, beat: Beat, levels: Levels) -> bool:
    """It receives as much as it can, all the time."""
    spread = window.values.get("net_in")
    if spread is None or spread.low < levels.net_least_mib_s:
        return False
    return spread.high <= levels.net_flat_ratio * spread.low


def _on_python(window: Window, beat: Beat, levels: Levels) -> bool:
    main = window.mid("main_cpu")
    return main is not None and levels.main_cpu_pct <= main <= levels.main_cpu_most_pct


def _on_workers(window: Window, beat: Beat, levels: Levels) -> bool:
    """Nothing is at its limit: nobody asks early enough for what comes next."""
    workers, busy = window.mid("workers"), window.mid("workers_busy")
    main = window.mid("main_cpu")
    return workers is not None and not busy and main is not None and main < levels.main_cpu_pct


def _share_of_awake(window: Window, name: str, levels: Levels) -> float:
    """Of the workers that do anything: compilers and watchers sleep beside a loader's workers."""
    count = window.mid(name)
    busy, blocked = window.mid("workers_busy") or 0.0, window.mid("workers_blocked") or 0.0
    if not count:
        return 0.0
    cpu = window.mid("workers_cpu") or 0.0
    awake = max(busy + blocked, min(window.mid("workers") or 0.0, blocked + cpu / 100.0))
    return count / awake if awake else 0.0


def cores_of(beat: Beat) -> float | None:
    """What it may use: the quota where there is one."""
    quota, cores = beat.sample.cpu_quota_cores, beat.sample.facts.cores
    if quota is not None and cores is not None:
        return min(quota, float(cores))
    return quota if quota is not None else cores


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def starved_evidence(state: PulseState, beat: Beat) -> tuple[Evidence, ...]:
    last = state.windows.closed[-1]
    pace = state.steps.step_s()
    said = () if pace is None else (Evidence(beat.at_s, "log", f"{pace:.3g} s a step"),)
    return (*card_line(last, beat.at_s, state.usual_power()), *proc_line(last, beat.at_s), *said)


def starved_over(state: PulseState, beat: Beat) -> bool:
    """Fed again for two windows; one that stands is no longer starved but something else."""
    windows = state.windows.last(2)
    if not windows:
        return False
    fed = all(
        (window.mid("util") or 0.0) >= state.levels.fed_util_pct
        and (window.mid("data_share") or 0.0) < state.levels.data_share
        for window in windows
    )
    return fed or not any(window.steps for window in windows)


_CAUSES: Final = (
    ("starved_quota", _on_quota),
    ("starved_memory", _on_memory),
    ("starved_disk", _on_disk),
    ("starved_cpu", _on_cpu),
    ("starved_network", _on_network),
    ("starved_python", _on_python),
    ("starved_workers", _on_workers),
)
