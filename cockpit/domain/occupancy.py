"""Who holds a card and what that costs: busy, free, lost or not known, and the fleet's sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cockpit.domain.models import GpuSample, HostSample, ProcessSample

CardUse: TypeAlias = Literal["busy", "free", "lost", "unknown"]

FREE_MEM_FRACTION = 0.05
"""A card with no process in sight and less than this of its memory held is free: drivers keep some."""
FREE_UTIL_PCT = 5
IDLE_TOLD_S = 600.0
"""A host that stood still for so long is worth a word, since it costs the same."""


def card_use(gpu: GpuSample) -> CardUse:
    if gpu.error is not None:
        return "lost"
    if gpu.processes:
        return "busy"
    if gpu.util_pct is not None and gpu.util_pct > FREE_UTIL_PCT:
        return "busy"
    if gpu.mem_used_mib is None or not gpu.mem_total_mib:
        return "unknown" if gpu.util_pct is None else "free"
    return "busy" if gpu.mem_used_mib > FREE_MEM_FRACTION * gpu.mem_total_mib else "free"


def is_idle(gpus: Sequence[GpuSample]) -> bool:
    """Whether all that can be computed with stands still; a host without cards is not judged."""
    return bool(gpus) and all(card_use(gpu) == "free" for gpu in gpus)


def main_process(gpu: GpuSample) -> ProcessSample | None:
    """The process that holds most of the card."""
    return max(gpu.processes, key=lambda process: process.mem_used_mib or 0, default=None)


@dataclass(slots=True)
class Sums:
    """Totals of what can be seen. Memory, power and money count only where they are known."""

    hosts: int = 0
    live_hosts: int = 0
    cards: int = 0
    busy: int = 0
    free: int = 0
    lost: int = 0
    mem_used_mib: int = 0
    mem_total_mib: int = 0
    power_w: float = 0.0
    price_per_h: dict[str, float] = field(default_factory=dict)
    idle_per_h: dict[str, float] = field(default_factory=dict)

    def add(self, sample: HostSample, price_per_h: float | None, currency: str | None) -> None:
        """Count a host's newest sample."""
        uses = [self._add_card(gpu) for gpu in sample.gpus]
        if price_per_h is None:
            return
        unit = currency or ""
        self.price_per_h[unit] = self.price_per_h.get(unit, 0.0) + price_per_h
        if uses:
            idle = price_per_h * uses.count("free") / len(uses)
            self.idle_per_h[unit] = self.idle_per_h.get(unit, 0.0) + idle

    def add_unseen(self, price_per_h: float | None, currency: str | None) -> None:
        """A host without a sample still costs its price."""
        if price_per_h is not None:
            unit = currency or ""
            self.price_per_h[unit] = self.price_per_h.get(unit, 0.0) + price_per_h

    def _add_card(self, gpu: GpuSample) -> CardUse:
        use = card_use(gpu)
        self.cards += 1
        self.busy += use == "busy"
        self.free += use == "free"
        self.lost += use == "lost"
        self.mem_used_mib += gpu.mem_used_mib or 0
        self.mem_total_mib += gpu.mem_total_mib or 0
        self.power_w += gpu.power_w or 0.0
        return use


def money_text(amounts: Mapping[str, float]) -> str:
    """ "9.84 USD + 3.20 CNY": currencies are never added to each other."""
    return " + ".join(f"{amount:.2f} {unit}".rstrip() for unit, amount in sorted(amounts.items()))


def largest_free_mib(gpus: Iterable[GpuSample]) -> int | None:
    """The most memory that any one card has left."""
    free = [
        gpu.mem_total_mib - gpu.mem_used_mib
        for gpu in gpus
        if gpu.mem_total_mib is not None and gpu.mem_used_mib is not None
    ]
    return max(free, default=None)
