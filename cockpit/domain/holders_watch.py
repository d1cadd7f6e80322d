"""Memory on a card that is not its run's: a stranger's beside it, or nobody's that is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from cockpit.domain.detectors import LARGEST_STEP_S, Signal, finding_with
from cockpit.domain.incidents import FactValue, Finding
from cockpit.domain.lasting import Lasting
from cockpit.domain.models import GpuSample, HostSample, ProcessSample, RunId

LEFT_BEHIND_MIB: Final = 1024
"""An idle driver, a display or a persistence daemon holds less."""
STRANGER_MIB: Final = 512
"""A context of CUDA takes 300 to 500 MiB; who computes holds more."""
LAST_S: Final = 60.0
REMEMBER_S: Final = 900.0
"""So long a process is remembered that held the memory which is left."""
EVERY_S: Final = 4.0


@dataclass(slots=True)
class _Card:
    uuid: str
    orphan: Lasting = field(default_factory=lambda: Lasting(LAST_S))
    stranger: Lasting = field(default_factory=lambda: Lasting(LAST_S / 2))
    opened: dict[str, Signal] = field(default_factory=dict)
    last: ProcessSample | None = None
    last_s: float = 0.0


@dataclass(slots=True)
class HoldersWatch:
    """Who holds memory on the cards of one host."""

    _cards: dict[int, _Card] = field(default_factory=dict)
    _fed_s: float | None = None

    def feed(self, sample: HostSample, held: Callable[[], Mapping[int, RunId]]) -> list[Signal]:
        """What changed with this sample; `held` tells of each card the living run that reserved it."""
        step_s = 0.0 if self._fed_s is None else sample.at_s - self._fed_s
        if self._fed_s is not None and 0.0 <= step_s < EVERY_S:
            return []
        self._fed_s = sample.at_s
        step_s = max(0.0, min(step_s, LARGEST_STEP_S))
        signals: list[Signal] = []
        ours = held()
        for gpu in sample.gpus:
            if gpu.error is None and not gpu.unified and not gpu.mig:
                signals += self._judge(gpu, sample, ours.get(gpu.index), step_s)
        return signals

    def _judge(
        self, gpu: GpuSample, sample: HostSample, run: RunId | None, step_s: float
    ) -> Iterator[Signal]:
        card = self._cards.get(gpu.index)
        if card is None or card.uuid != gpu.uuid:
            card = self._cards[gpu.index] = _Card(gpu.uuid)
        largest = max(gpu.processes, key=lambda process: process.mem_used_mib or 0, default=None)
        if largest is not None:
            card.last, card.last_s = largest, sample.at_s
        elif sample.at_s - card.last_s > REMEMBER_S and not card.opened:
            card.last = None
        held = _held_by_nobody(gpu) if run is None else 0
        orphan = partial(_orphan, gpu, held, card.last, sample.facts.container is True)
        yield from _told(
            card, "memory-orphaned", card.orphan.feed(held > 0, step_s), orphan, gpu, None
        )
        other = _stranger(gpu, run)
        stranger = partial(_beside, gpu, other)
        change = card.stranger.feed(other is not None, step_s)
        yield from _told(card, "memory-stranger", change, stranger, gpu, run)


def _held_by_nobody(gpu: GpuSample) -> int:
    """MiB in use on a card that computes nothing and on which no process is listed; 0 when that is ordinary."""
    if gpu.util_pct != 0 or gpu.processes_age_s is None or gpu.processes:
        return 0
    held = (gpu.mem_used_mib or 0) - (gpu.mem_reserved_mib or 0)
    return held if held >= LEFT_BEHIND_MIB else 0


def _stranger(gpu: GpuSample, run: RunId | None) -> ProcessSample | None:
    """The largest process that no run of cockpit started, on a card where ours is seen."""
    if run is None or not any(process.run == run for process in gpu.processes):
        return None
    others = [one for one in gpu.processes if one.run is None]
    largest = max(others, key=lambda process: process.mem_used_mib or 0, default=None)
    return largest if largest is not None and (largest.mem_used_mib or 0) >= STRANGER_MIB else None


def _orphan(gpu: GpuSample, held: int, last: ProcessSample | None, container: bool) -> Finding:
    """Whose it was is known when its process was seen here; else, in a container, it may be a neighbour's."""
    facts: dict[str, FactValue] = {"gpu_index": gpu.index, "held_mib": held}
    if gpu.mem_total_mib:
        facts["total_mib"] = gpu.mem_total_mib
    if last is not None and (last.mem_used_mib or 0) >= held / 2:
        facts |= {"holder_pid": last.pid, "holder_mib": last.mem_used_mib or 0}
        return finding_with(
            "near_full", "memory-orphaned", "warning", "memory_orphaned", facts, _FREE_IT
        )
    if container:
        return finding_with(
            "near_full", "memory-orphaned", "notice", "memory_elsewhere", facts, _SHARED
        )
    return finding_with(
        "near_full", "memory-orphaned", "warning", "memory_orphaned", facts, _FREE_IT
    )


def _beside(gpu: GpuSample, other: ProcessSample | None) -> Finding:
    facts: dict[str, FactValue] = {"gpu_index": gpu.index}
    if other is not None:
        facts |= {"holder_pid": other.pid, "holder_mib": other.mem_used_mib or 0}
    if gpu.mem_total_mib and gpu.mem_used_mib is not None:
        facts |= {
            "total_mib": gpu.mem_total_mib,
            "free_mib": max(0, gpu.mem_total_mib - gpu.mem_used_mib),
        }
    return finding_with(
        "near_full", "memory-stranger", "warning", "memory_of_stranger", facts, _STRANGER
    )


_FREE_IT: Final = ("find_holder", "restart_instance")
_SHARED: Final = ("other_card", "report_card")
_STRANGER: Final = ("kill_orphan", "pick_empty_card", "report_card")


def _told(
    card: _Card,
    signature: str,
    change: str | None,
    make: partial[Finding],
    gpu: GpuSample,
    run: RunId | None,
) -> Iterator[Signal]:
    if change == "open":
        card.opened[signature] = Signal("open", make(), gpu.index, run=run)
        yield card.opened[signature]
    elif change == "close" and signature in card.opened:
        before = card.opened.pop(signature)
        yield Signal("close", before.finding, before.gpu, run=before.run)
