"""Cards that are paid for and do nothing: of a run, or of a host on which no run of ours lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cockpit.domain.incidents import Evidence, FactValue, Finding, Severity
from cockpit.domain.models import HostSample
from cockpit.domain.pulse_beat import Beat, main_pid
from cockpit.domain.pulse_levels import LEVELS, Levels
from cockpit.domain.pulse_state import PulseState, made, proc_line, rounded

SIGNATURE: Final = "idle-cards"
HOST_SIGNATURE: Final = "idle-host"
_BUSY_CORES: Final = 0.5


def idle(state: PulseState, beat: Beat) -> Finding | None:
    """The finding while no card of it has done anything for as long as `[watch] idle` allows."""
    levels, since_s = state.levels, state.quiet_since_s
    windows = state.windows.last(1)
    if levels.idle_s is None or beat.is_starting or not beat.cards or not windows:
        return None
    unused = state.unused(beat.at_s, levels.idle_s)
    if unused:
        return _some(beat, unused, levels.idle_s)
    if since_s is None or beat.at_s - since_s < levels.idle_s:
        return None
    last = windows[-1]
    if (last.mid("net_in") or 0.0) >= levels.traffic_mib_s:
        return None  # it downloads
    computes = (last.mid("cpu") or 0.0) >= 100 * _BUSY_CORES
    cause = "idle_server" if beat.is_serving else "idle_cpu" if computes else "idle_run"
    facts: dict[str, FactValue | None] = {
        "for_min": round((beat.at_s - since_s) / 60),
        "cards": len(beat.cards),
        "cpu_pct": rounded(last.mid("cpu")),
        "main_pid": main_pid(beat),
        **_price(beat.at_s - since_s, beat.price_per_h, beat.currency),
    }
    severity: Severity = "warning" if cause == "idle_run" else "notice"
    remedies = {
        "idle_run": ("py_spy", "stop_the_run"),
        "idle_cpu": ("prepare_elsewhere",),
        "idle_server": ("stop_the_run", "smaller_host"),
    }[cause]
    return made("idle", SIGNATURE, severity, cause, facts, remedies)


def _some(beat: Beat, unused: int, for_s: float) -> Finding:
    """Of the cards that it reserved, some are left alone."""
    facts: dict[str, FactValue | None] = {
        "unused": unused,
        "cards": len(beat.cards),
        "for_min": round(for_s / 60),
    }
    return made("idle", SIGNATURE, "notice", "idle_some", facts, ("use_all_cards", "fewer_cards"))


def idle_over(state: PulseState, beat: Beat) -> bool:
    return state.quiet_since_s is None and not state.unused(beat.at_s, state.levels.idle_s or 0.0)


def idle_evidence(state: PulseState, beat: Beat) -> tuple[Evidence, ...]:
    last = state.windows.closed[-1] if state.windows.closed else None
    return () if last is None else proc_line(last, beat.at_s)


def _price(
    idle_s: float, price_per_h: float | None, currency: str | None
) -> dict[str, FactValue | None]:
    if not price_per_h:
        return {}
    cost = round(price_per_h * idle_s / 3600, 2)
    return {"price_per_h": price_per_h, "cost": cost, "currency": currency or ""}


@dataclass(slots=True)
class HostIdle:
    """One host: a notice once none of its cards has done anything for so long, and no run of ours is on it."""

    levels: Levels = LEVELS
    since_s: float | None = None
    opened: Finding | None = None
    _last_s: float | None = None

    def feed(
        self,
        at_s: float,
        sample: HostSample,
        *,
        has_runs: bool,
        price_per_h: float | None,
        currency: str | None,
    ) -> Finding | None:
        """The finding while it holds. `at_s` is our own clock's."""
        gap_s = 0.0 if self._last_s is None else at_s - self._last_s
        self._last_s = at_s
        known = [gpu.util_pct for gpu in sample.gpus if gpu.error is None]
        utils = [util for util in known if util is not None]
        busy = not utils or len(utils) < len(known) or max(utils) > self.levels.quiet_util_pct
        if has_runs or busy or gap_s > self.levels.gap_s:
            self.since_s = None
            return None
        self.since_s = at_s if self.since_s is None else self.since_s
        idle_s = at_s - self.since_s
        if idle_s < (self.levels.idle_s or 0.0):
            return None
        held = sum(gpu.mem_used_mib or 0 for gpu in sample.gpus if gpu.processes)
        facts: dict[str, FactValue | None] = {
            "for_min": round(idle_s / 60),
            "cards": len(utils),
            "held_mib": held or None,
            **_price(idle_s, price_per_h, currency),
        }
        return made(
            "idle", HOST_SIGNATURE, "notice", "idle_host", facts, ("release_host", "start_next_run")
        )
