"""Findings from samples: memory nearly full, a lost card, a driver that does not answer, OOM kills.

Each rule has two thresholds or a time, so that nothing flaps; what began says when it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from cockpit.domain.incidents import Evidence, FactValue, Family, Finding, Severity
from cockpit.domain.models import GpuSample, HostSample, RunId, XidEvent
from cockpit.domain.remedies import make_all
from cockpit.domain.signatures.xids import cause_of, meaning

NEAR_FULL_OPEN: Final = 0.97
NEAR_FULL_OPEN_S: Final = 30.0
NEAR_FULL_CLOSE: Final = 0.92
NEAR_FULL_CLOSE_S: Final = 120.0
"""Two thresholds and a time each; vLLM's own share of 90 to 92 % stays below the first."""
LARGEST_STEP_S: Final = 60.0
"""A gap between samples longer than this counts as this much: we did not see what was in it."""

_LOST_CODES: Final = frozenset({"gpu_lost"})
_DRIVER_CODES: Final[dict[str, tuple[Severity, tuple[str, ...]]]] = {
    "driver_mismatch": ("fatal", ("reload_driver", "restart_host")),
    "nvml_lost": ("fatal", ("restart_instance",)),
    "driver_hung": ("fatal", ("check_xid", "restart_instance")),
    "driver_not_loaded": ("warning", ("check_xid", "restart_instance")),
}
_CAUSES: Final = {"nvml_lost": "container_lost_gpus", "driver_not_loaded": "driver_not_answering"}
_OOM_REMEDIES: Final = ("fewer_workers", "stream_data", "raise_container_limit")


@dataclass(frozen=True, slots=True)
class Signal:
    """A condition that began (`open`), ended (`close`) or was none (`withdraw`), on a host or one of its cards."""

    action: Literal["open", "close", "withdraw"]
    finding: Finding
    gpu: int | None = None
    evidence: tuple[Evidence, ...] = ()
    run: RunId | None = None
    """Whose process it is about, where one is known."""


@dataclass(slots=True)
class _Fill:
    """How long one card has been above the upper threshold, or below the lower one."""

    above_s: float = 0.0
    below_s: float = 0.0
    opened: Finding | None = None


@dataclass(slots=True)
class HostWatch:
    """The sample detectors of one host; they remember only what their rules need."""

    _last_s: float | None = None
    _fills: dict[int, _Fill] = field(default_factory=dict)
    _lost: dict[int, Finding] = field(default_factory=dict)
    _driver: Finding | None = None
    _oom_kills: int | None = None
    _incarnation: str = ""

    def feed(self, sample: HostSample) -> list[Signal]:
        """What changed with this sample."""
        step_s = 0.0 if self._last_s is None else max(0.0, sample.at_s - self._last_s)
        self._last_s = sample.at_s
        self._restarted(sample.facts.incarnation)
        signals = [*self._driver_signals(sample), *self._kill_signals(sample)]
        for event in sample.xids:
            signals += _xid_signals(event)
        for gpu in sample.gpus:
            signals += self._lost_signals(gpu, sample.at_s)
            signals += self._fill_signals(gpu, min(step_s, LARGEST_STEP_S))
        return signals

    def _restarted(self, incarnation: str) -> None:
        """A machine that started anew counts from zero."""
        if incarnation != self._incarnation:
            self._incarnation, self._oom_kills = incarnation, None

    def _fill_signals(self, gpu: GpuSample, step_s: float) -> Iterator[Signal]:
        share = _share(gpu)
        if share is None:
            return
        fill = self._fills.setdefault(gpu.index, _Fill())
        fill.above_s = fill.above_s + step_s if share >= NEAR_FULL_OPEN else 0.0
        fill.below_s = fill.below_s + step_s if share < NEAR_FULL_CLOSE else 0.0
        if fill.opened is None and fill.above_s >= NEAR_FULL_OPEN_S:
            fill.opened = _near_full(gpu, fill.above_s)
            yield Signal("open", fill.opened, gpu.index)
        elif fill.opened is not None and fill.below_s >= NEAR_FULL_CLOSE_S:
            yield Signal("close", fill.opened, gpu.index)
            fill.opened = None

    def _lost_signals(self, gpu: GpuSample, at_s: float) -> Iterator[Signal]:
        gone = gpu.error_code in _LOST_CODES
        known = self._lost.get(gpu.index)
        if gone and known is None:
            finding = finding_with(
                "hardware",
                "gpu-lost",
                "fatal",
                "gpu_lost",
                _card_facts(gpu),
                ("restart_instance", "report_card"),
            )
            self._lost[gpu.index] = replace(finding, text=gpu.error or "")
            yield Signal("open", self._lost[gpu.index], gpu.index, _said(at_s, "nvml", gpu.error))
        elif known is not None and not gone and gpu.error is None:
            del self._lost[gpu.index]
            yield Signal("close", known, gpu.index)

    def _driver_signals(self, sample: HostSample) -> Iterator[Signal]:
        code = sample.gpu_error_code if sample.gpu_error_code in _DRIVER_CODES else None
        known = self._driver
        if known is not None and (code is None or known.signature != code.replace("_", "-")):
            self._driver = None
            yield Signal("close", known)
        if code is not None and self._driver is None:
            severity, remedies = _DRIVER_CODES[code]
            facts: dict[str, FactValue] = {"words": sample.gpu_error} if sample.gpu_error else {}
            cause = _CAUSES.get(code, code)
            finding = finding_with(
                "driver", code.replace("_", "-"), severity, cause, facts, remedies
            )
            self._driver = replace(finding, text=sample.gpu_error or "")
            yield Signal("open", self._driver, None, _said(sample.at_s, "nvml", sample.gpu_error))

    def _kill_signals(self, sample: HostSample) -> Iterator[Signal]:
        """The container's own counter went up: the kernel ended a process in it."""
        now, before = sample.cgroup_oom_kills, self._oom_kills
        if now is None:
            return
        self._oom_kills = now
        if before is not None and now > before:
            text = f"oom_kill {before} -> {now}"
            finding = finding_with(
                "host_oom",
                "cgroup-oom-kill",
                "fatal",
                "cgroup_oom_kill",
                _host_facts(sample),
                _OOM_REMEDIES,
            )
            yield Signal(
                "open", replace(finding, text=text), None, _said(sample.at_s, "cgroup", text)
            )


def _share(gpu: GpuSample) -> float | None:
    """How full a card is; a shared-memory machine is judged by its host memory, not here."""
    if gpu.mem_used_mib is None or not gpu.mem_total_mib or gpu.unified or gpu.error is not None:
        return None
    return gpu.mem_used_mib / gpu.mem_total_mib


def _near_full(gpu: GpuSample, for_s: float) -> Finding:
    assert gpu.mem_used_mib is not None and gpu.mem_total_mib is not None
    facts: dict[str, FactValue] = {
        "gpu_index": gpu.index,
        "in_use_mib": gpu.mem_used_mib,
        "total_mib": gpu.mem_total_mib,
        "free_mib": gpu.mem_total_mib - gpu.mem_used_mib,
        "for_s": round(for_s),
        "open_pct": round(NEAR_FULL_OPEN * 100),
    }
    remedies = ("smaller_batch", "expandable_segments", "watch_memory")
    return finding_with("near_full", "near-full", "warning", "near_full", facts, remedies)


def _xid_signals(event: XidEvent) -> Iterator[Signal]:
    known = meaning(event.xid)
    if known.weight == "fallout":
        return
    facts: dict[str, FactValue] = {"xid": event.xid}
    if event.bus_id:
        facts["bus_id"] = event.bus_id
    if event.gpu_index is not None:
        facts["gpu_index"] = event.gpu_index
    finding = finding_with(
        "hardware", f"xid-{event.xid}", known.severity, cause_of(event.xid), facts, known.advice
    )
    finding = replace(finding, text=event.text)
    yield Signal("open", finding, event.gpu_index, _said(event.at_s, "kernel", event.text))


def finding_with(
    family: Family,
    signature: str,
    severity: Severity,
    cause: str,
    facts: Mapping[str, FactValue],
    remedies: tuple[str, ...],
) -> Finding:
    """A finding of samples; its remedies are made from its own numbers."""
    made = make_all(remedies, facts)
    return Finding(family, signature, severity, dict(facts), cause=cause, remedies=made)


def _card_facts(gpu: GpuSample) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {"gpu_index": gpu.index}
    return facts | {"bus_id": gpu.bus_id} if gpu.bus_id else facts


def _host_facts(sample: HostSample) -> dict[str, FactValue]:
    numbers = {
        "host_used_mib": sample.cgroup_used_mib if sample.cgroup_limit_mib else sample.mem_used_mib,
        "host_total_mib": sample.cgroup_limit_mib or sample.mem_total_mib,
        "limit_mib": sample.cgroup_limit_mib,
    }
    return {name: value for name, value in numbers.items() if value is not None}


def _said(at_s: float, source: str, text: str | None) -> tuple[Evidence, ...]:
    return (Evidence(at_s, source, text),) if text else ()
