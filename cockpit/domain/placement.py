"""Which cards of which host a run gets: a pure choice over what is free now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.domain.occupancy import card_use, main_process

Obstacle: TypeAlias = Literal["lost", "held", "small", "unknown", "absent"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a profile's `[gpus]` table and the command line ask for, on one host."""

    count: int | None = None
    """None: every card of the host (`count = "all"`), unless `indices` says which."""
    indices: tuple[int, ...] | None = None
    min_free_mib: int | None = None
    share: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """A card as a candidate, with what speaks against it."""

    host: HostName
    index: int
    uuid: str
    name: str
    free_mib: int | None
    total_mib: int | None
    holder: str | None = None
    """Who uses it, in a few words; None when nobody does."""
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The chosen cards, or None and what was short; `candidates` is everything that was looked at."""

    host: HostName | None
    cards: tuple[Card, ...]
    candidates: tuple[Card, ...]


def free_mib(gpu: GpuSample) -> int | None:
    if gpu.mem_total_mib is None or gpu.mem_used_mib is None:
        return None
    return max(0, gpu.mem_total_mib - gpu.mem_used_mib)


def candidates(sample: HostSample, wanted: Wanted) -> list[Card]:
    """Every card of a host in the driver's order, each with the first thing that speaks against it."""
    return [_candidate(sample.host, gpu, wanted) for gpu in sample.gpus]


def _candidate(host: HostName, gpu: GpuSample, wanted: Wanted) -> Card:
    return Card(
        host=host,
        index=gpu.index,
        uuid=gpu.uuid,
        name=gpu.name,
        free_mib=free_mib(gpu),
        total_mib=gpu.mem_total_mib,
        holder=_holder(gpu),
        obstacle=_obstacle(gpu, wanted),
    )


def _holder(gpu: GpuSample) -> str | None:
    process = main_process(gpu)
    if process is None:
        return None
    if process.run is not None:
        return str(process.run)
    if not process.visible:
        return f"pid {process.pid} (outside this container)"
    return f"{process.user or '?'}: {process.name or process.command or process.pid}"


def _obstacle(gpu: GpuSample, wanted: Wanted) -> Obstacle | None:
    use = card_use(gpu)
    if use == "lost":
        return "lost"
    free = free_mib(gpu)
    if wanted.min_free_mib is not None:
        if free is None:
            return "unknown"
        if free < wanted.min_free_mib:
            return "small"
    if use == "busy" and not wanted.share and (wanted.min_free_mib is None or gpu.processes):
        return "held"
    return None


def place(hosts: Sequence[HostSample], wanted: Wanted) -> Placement:
    """The first host, in the order given, that has room; its emptiest cards, in the driver's order."""
    looked_at: list[Card] = []
    chosen: Placement | None = None
    for sample in hosts:
        cards = candidates(sample, wanted)
        looked_at += cards
        if chosen is None and (picked := _pick(cards, wanted)) is not None:
            chosen = Placement(sample.host, picked, ())
    if chosen is None:
        return Placement(None, (), tuple(looked_at))
    return Placement(chosen.host, chosen.cards, tuple(looked_at))


def _pick(cards: Sequence[Card], wanted: Wanted) -> tuple[Card, ...] | None:
    if wanted.indices is not None:
        by_index = {card.index: card for card in cards}
        named = [by_index.get(index) for index in wanted.indices]
        if any(card is None or card.obstacle is not None for card in named):
            return None
        return tuple(card for card in named if card is not None)
    free = [card for card in cards if card.obstacle is None]
    if wanted.count is None:
        return tuple(free) if free and len(free) == len(cards) else None
    if len(free) < wanted.count:
        return None
    emptiest = sorted(free, key=lambda card: (-(card.free_mib or 0), card.index))[: wanted.count]
    return tuple(sorted(emptiest, key=lambda card: card.index))
