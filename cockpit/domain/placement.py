"""Which cards of which host a run gets: a pure choice over what is free now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.domain.occupancy import FREE_UTIL_PCT, card_use, main_process

Obstacle: TypeAlias = Literal["lost", "held", "small", "unknown", "absent"]
Reserved: TypeAlias = Mapping[tuple[HostName, int | str], str]
"""(host, index) of the cards that a run holds, (host, uuid) of the slices, with the run."""
_NONE: Reserved = {}
MIG: Final = "MIG-"
"""So begins the uuid of a slice, which has no other name."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a profile's `[gpus]` table and the command line ask for, on one host."""

    count: int | None = None
    """None: every card of the host (`count = "all"`), unless `indices` says which."""
    indices: tuple[int, ...] | None = None
    min_free_mib: int | None = None
    share: bool = False

    def number(self, present: int) -> int:
        """How many cards that is on a host with `present` ones that would do."""
        if self.indices is not None:
            return len(self.indices)
        return present if self.count is None else min(self.count, present)


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

    @property
    def slice(self) -> str:
        """The uuid of a slice of a card; empty for a whole one."""
        return self.uuid if self.uuid.startswith(MIG) else ""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where there is room; no host when there is none. `candidates` is everything that was looked at."""

    host: HostName | None
    cards: tuple[Card, ...]
    """Every card there that would do, the best first: the first ones are taken."""
    candidates: tuple[Card, ...]
    queued: bool = False
    """The cards are not free yet."""


def free_mib(gpu: GpuSample) -> int | None:
    if gpu.mem_total_mib is None or gpu.mem_used_mib is None:
        return None
    return max(0, gpu.mem_total_mib - gpu.mem_used_mib)


def candidates(sample: HostSample, wanted: Wanted, reserved: Reserved = _NONE) -> list[Card]:
    """Every card of a host in the driver's order, each with the first thing that speaks against it.

    Of a card that is split there are the slices: CUDA can use it in no other way.
    """
    found = []
    for gpu in sample.gpus:
        if gpu.mig and gpu.error is None:
            found += _slices(sample.host, gpu, wanted, reserved)
        else:
            holder = reserved.get((sample.host, gpu.index))
            found.append(_candidate(sample.host, gpu, wanted, holder))
    return found


def _slices(host: HostName, gpu: GpuSample, wanted: Wanted, reserved: Reserved) -> list[Card]:
    """Who is on a slice is known to its host; from here a slice is busy when its memory is."""
    bare = replace(gpu, util_pct=None, processes=(), mig=None, mig_instances=())
    found = []
    for one in gpu.mig_instances:
        if one.uuid.startswith(MIG):
            name = f"{gpu.name} {one.profile}".strip()
            part = replace(
                bare,
                uuid=one.uuid,
                name=name,
                mem_used_mib=one.mem_used_mib,
                mem_total_mib=one.mem_total_mib,
            )
            found.append(_candidate(host, part, wanted, reserved.get((host, one.uuid))))
    unusable = _candidate(host, replace(bare, mem_used_mib=None), wanted, None)
    return found or [replace(unusable, obstacle="absent", holder=None)]


def _candidate(host: HostName, gpu: GpuSample, wanted: Wanted, run: str | None) -> Card:
    obstacle = _obstacle(gpu, wanted)
    if obstacle is None and run is not None and not wanted.share:
        obstacle = "held"
    return Card(
        host=host,
        index=gpu.index,
        uuid=gpu.uuid,
        name=gpu.name,
        free_mib=free_mib(gpu),
        total_mib=gpu.mem_total_mib,
        holder=run or _holder(gpu),
        obstacle=obstacle,
    )


def _holder(gpu: GpuSample) -> str | None:
    process = main_process(gpu)
    if process is None:
        return "somebody out of sight" if card_use(gpu) == "busy" else None
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
    if wanted.share or use != "busy":
        return None
    is_worked = bool(gpu.processes) or (gpu.util_pct or 0) > FREE_UTIL_PCT
    is_worked = is_worked or gpu.uuid.startswith(MIG)
    return "held" if is_worked or wanted.min_free_mib is None else None


def place(hosts: Sequence[HostSample], wanted: Wanted, reserved: Reserved = _NONE) -> Placement:
    """The first host, in the order given, that has room; its emptiest cards first."""
    looked_at: list[Card] = []
    chosen: tuple[HostName, tuple[Card, ...]] | None = None
    for sample in hosts:
        cards = candidates(sample, wanted, reserved)
        looked_at += cards
        if chosen is None and (picked := _pick(cards, wanted)) is not None:
            chosen = sample.host, picked
    if chosen is None:
        return Placement(None, (), tuple(looked_at))
    return Placement(*chosen, tuple(looked_at))


def _pick(cards: Sequence[Card], wanted: Wanted) -> tuple[Card, ...] | None:
    """The cards to take, in the driver's order, then others that would do in their place."""
    if wanted.indices is not None:
        return _named(cards, wanted.indices)
    free = [card for card in cards if card.obstacle is None]
    if wanted.count is None:
        return tuple(free) if free and len(free) == len(cards) else None
    if len(free) < wanted.count:
        return None
    emptiest = sorted(free, key=lambda card: (-(card.free_mib or 0), card.index))
    first = sorted(emptiest[: wanted.count], key=lambda card: card.index)
    return (*first, *emptiest[wanted.count :])


def _named(cards: Sequence[Card], indices: Sequence[int]) -> tuple[Card, ...] | None:
    """A card for each index: of one that is split, its emptiest slice."""
    left = [card for card in cards if card.obstacle is None]
    picked = []
    for index in indices:
        found = [card for card in left if card.index == index]
        if not found:
            return None
        picked.append(max(found, key=lambda card: card.free_mib or 0))
        left.remove(picked[-1])
    return tuple(picked)
