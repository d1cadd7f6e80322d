"""Which hosts and cards the fleet shows, in which order and on which lines: values only, no drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cockpit.domain.models import GpuSample, HostName
from cockpit.domain.occupancy import largest_free_mib
from cockpit.engine.fleet import HostState

Density = Literal["pane", "row"]
SortKey = Literal["file", "name", "free", "util", "memory", "temp", "price", "trouble"]
LineKind = Literal["top", "card", "bottom", "words"]

CardFilter = Callable[[HostState, GpuSample | None], bool]
"""Whether a card shows; None stands for a host that has no cards."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A host and those of its cards that are shown."""

    host: HostName
    cards: tuple[int, ...]
    trouble: bool


@dataclass(frozen=True, slots=True)
class Place:
    """What one line of the view is: part of which entry, and which card."""

    entry: int
    kind: LineKind
    card: int | None = None
    first: bool = False

    @property
    def selectable(self) -> bool:
        return self.kind in ("card", "words")


@dataclass(frozen=True, slots=True)
class Plan:
    """Every line from top to bottom. Equal plans mean that nothing moved."""

    entries: tuple[Entry, ...] = ()
    places: tuple[Place, ...] = ()
    starts: tuple[int, ...] = ()
    """First line of each entry."""

    def find(self, host: HostName | None, card: int | None) -> int | None:
        """The line of a card, else of its host; None when neither shows."""
        fallback = None
        for number, place in enumerate(self.places):
            if place.selectable and self.entries[place.entry].host == host:
                if place.card == card:
                    return number
                fallback = number if fallback is None else fallback
        return fallback


@dataclass(frozen=True, slots=True)
class FleetOrder:
    """How the fleet is sorted."""

    key: SortKey = "file"
    reverse: bool = False


@dataclass(slots=True)
class FleetChoice:
    """What shows: a filter, and the hosts that have an open incident."""

    card_filter: CardFilter | None = None
    only_trouble: bool = False
    incidents: frozenset[tuple[HostName, int | None]] = field(default_factory=frozenset)


def sorted_entries(
    entries: Sequence[Entry],
    states: Mapping[HostName, HostState],
    order: FleetOrder,
    prices: Mapping[HostName, float | None],
) -> list[Entry]:
    """By a number, the most first, or by name; what is not known comes last either way."""
    if order.key == "name":
        return sorted(entries, key=lambda entry: entry.host, reverse=order.reverse)
    values = {
        entry.host: _sort_value(states[entry.host], entry, order.key, prices) for entry in entries
    }
    known = [entry for entry in entries if values[entry.host] is not None]
    known.sort(key=lambda entry: entry.host)
    known.sort(key=lambda entry: values[entry.host] or 0.0, reverse=not order.reverse)
    return known + [entry for entry in entries if values[entry.host] is None]


def make_entry(state: HostState, choice: FleetChoice) -> Entry | None:
    """The host with the cards that pass, or None when nothing of it shows."""
    gpus = state.latest.gpus if state.latest is not None else ()
    trouble = state.link not in ("live", "connecting")
    shown = []
    for gpu in gpus:
        bad = trouble or gpu.error is not None or (state.host, gpu.index) in choice.incidents
        if choice.only_trouble and not bad and (state.host, None) not in choice.incidents:
            continue
        if choice.card_filter is None or choice.card_filter(state, gpu):
            shown.append(gpu.index)
    filtered = choice.card_filter is not None or choice.only_trouble
    if not shown and filtered and (gpus or not _host_shows(state, choice, trouble)):
        return None
    return Entry(state.host, tuple(shown), trouble)


def _host_shows(state: HostState, choice: FleetChoice, trouble: bool) -> bool:
    if choice.only_trouble and not trouble:
        return False
    return choice.card_filter is None or choice.card_filter(state, None)


def _sort_value(
    state: HostState, entry: Entry, key: SortKey, prices: Mapping[HostName, float | None]
) -> float | None:
    gpus = state.latest.gpus if state.latest is not None else ()
    if key == "free":
        return largest_free_mib(gpus)
    if key == "util":
        return _most(gpu.util_pct for gpu in gpus)
    if key == "memory":
        return _most(gpu.mem_used_mib for gpu in gpus)
    if key == "temp":
        return _most(gpu.temp_c for gpu in gpus)
    if key == "price":
        return prices.get(state.host)
    return 1.0 if entry.trouble or any(gpu.error for gpu in gpus) else 0.0


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def lay_out(entries: Sequence[Entry], density: Density) -> Plan:
    """Give every entry its lines."""
    places: list[Place] = []
    starts: list[int] = []
    for number, entry in enumerate(entries):
        starts.append(len(places))
        if density == "pane":
            places.append(Place(number, "top"))
            places += [Place(number, "card", card) for card in entry.cards]
            if not entry.cards:
                places.append(Place(number, "words"))
            places.append(Place(number, "bottom"))
        elif not entry.cards or entry.trouble:
            places.append(Place(number, "words", first=True))
            places += [Place(number, "card", card) for card in entry.cards]
        else:
            places += [
                Place(number, "card", card, first=not position)
                for position, card in enumerate(entry.cards)
            ]
    return Plan(tuple(entries), tuple(places), tuple(starts))


def choose_density(entries: Sequence[Entry], width: int, height: int) -> Density:
    """Panes where all of them fit and are wide enough to say something; else rows."""
    needed = sum(2 + max(1, len(entry.cards)) for entry in entries)
    return "pane" if width >= 100 and needed <= height else "row"
