"""The fleet screen's view on the stores: what shows, who holds what, and when a host must be redrawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cockpit.domain.filter import Filter
from cockpit.domain.filter_fields import FilterRow
from cockpit.domain.incidents import SEVERITIES, Incident, Severity
from cockpit.domain.models import GpuSample, HostName
from cockpit.engine.fleet import HostState
from cockpit.widgets.card_line import NOBODY, Holder, memory_cells
from cockpit.widgets.fleet_model import (
    CardFilter,
    Density,
    Entry,
    FleetChoice,
    FleetOrder,
    Plan,
    choose_density,
    lay_out,
    make_entry,
    sorted_entries,
)
from cockpit.widgets.host_pane import HostFace
from cockpit.widgets.host_words import FRESH_S

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi

SORT_AGAIN_S = 5.0
"""A sort by a moving number is made anew this often, so that rows do not dance."""


@dataclass(slots=True)
class FleetCounts:
    """What the line under the fleet tells."""

    shown: int = 0
    cards: int = 0
    unknown: int = 0


@dataclass(slots=True)
class FleetData:
    """Read by `FleetScreen` four times a second; recomputes only what a version says has changed."""

    engine: EngineApi
    filter: Filter = field(default_factory=Filter)
    order: FleetOrder = field(default_factory=FleetOrder)
    only_trouble: bool = False
    counts: FleetCounts = field(default_factory=FleetCounts)
    _holders: dict[tuple[HostName, int], Holder] = field(default_factory=dict)
    _troubled: frozenset[tuple[HostName, int | None]] = frozenset()
    _families: dict[tuple[HostName, int | None], tuple[str, ...]] = field(default_factory=dict)
    _versions: tuple[int, int] = (-1, -1)
    _epoch: int = 0
    _entries: dict[HostName, tuple[tuple[int, int], Entry | None]] = field(default_factory=dict)
    _sorted: list[HostName] = field(default_factory=list)
    _sorted_s: float = -SORT_AGAIN_S
    _plan: Plan = field(default_factory=Plan)
    _plan_key: object = None

    def set_choice(
        self,
        *,
        filter: Filter | None = None,
        order: FleetOrder | None = None,
        only_trouble: bool | None = None,
    ) -> None:
        """Change what shows or how it is sorted."""
        self.filter = self.filter if filter is None else filter
        self.order = self.order if order is None else order
        self.only_trouble = self.only_trouble if only_trouble is None else only_trouble
        self._epoch += 1
        self._sorted_s = -SORT_AGAIN_S

    # -- what shows ------------------------------------------------------------------------------

    def plan(self, density: str, width: int, height: int) -> tuple[Plan, Density]:
        """The lines to show; the same object as before while nothing moved."""
        self._read_holders()
        entries = self._current_entries()
        if density not in ("pane", "row"):
            density = choose_density(entries, width, height)
        chosen: Density = "pane" if density == "pane" else "row"
        key = (chosen, entries)
        if key != self._plan_key:
            self._plan, self._plan_key = lay_out(entries, chosen), key
        return self._plan, chosen

    def _current_entries(self) -> list[Entry]:
        choice = FleetChoice(
            self._card_filter() if self.filter.node is not None else None,
            self.only_trouble,
            self._troubled,
        )
        now_s = self.engine.now_s()
        entries = {}
        self.counts = FleetCounts()
        for host, state in self.engine.fleet.hosts.items():
            entry = self._entry(state, choice)
            self.counts.cards += len(state.latest.gpus) if state.latest else 0
            if entry is not None:
                entries[host] = entry
                self.counts.shown += len(entry.cards)
        if self.filter.node is not None:
            self.counts.unknown = self._count_unknown()
        return self._in_order(entries, now_s)

    def _entry(self, state: HostState, choice: FleetChoice) -> Entry | None:
        version = (state.version, self._epoch)
        known = self._entries.get(state.host)
        if known is None or known[0] != version:
            known = self._entries[state.host] = version, make_entry(state, choice)
        return known[1]

    def _in_order(self, entries: dict[HostName, Entry], now_s: float) -> list[Entry]:
        if self.order.key == "file":
            found = list(entries.values())
            return found[::-1] if self.order.reverse else found
        if now_s - self._sorted_s >= SORT_AGAIN_S or set(self._sorted) != set(entries):
            prices = {host: spec.price_per_h for host, spec in self.engine.hosts.items()}
            states = self.engine.fleet.hosts
            made = sorted_entries(list(entries.values()), states, self.order, prices)
            self._sorted, self._sorted_s = [entry.host for entry in made], now_s
        return [entries[host] for host in self._sorted]

    # -- filtering -------------------------------------------------------------------------------

    def _card_filter(self) -> CardFilter:
        def shows(state: HostState, gpu: GpuSample | None) -> bool:
            return self.filter.truth(self.row(state, gpu)) is True

        return shows

    def passes(self, found: Filter) -> bool:
        """Whether anything at all would show."""
        bare = [state for state in self.engine.fleet.hosts.values() if not state.latest]
        rows = [self.row(state, gpu) for state, gpu in self.all_cards()]
        rows += [self.row(state, None) for state in bare]
        return any(found.truth(row) is True for row in rows)

    def _count_unknown(self) -> int:
        rows = (self.row(state, gpu) for state, gpu in self.all_cards())
        return sum(self.filter.truth(row) is None for row in rows)

    def all_cards(self) -> list[tuple[HostState, GpuSample]]:
        states = self.engine.fleet.hosts.values()
        return [(state, gpu) for state in states if state.latest for gpu in state.latest.gpus]

    def row(self, state: HostState, gpu: GpuSample | None) -> FilterRow:
        """A card as the filter language sees it; numbers of a host that is not live are not known."""
        spec = self.engine.hosts.get(state.host)
        old = state.link not in ("live", "degraded")
        place = (state.host, None if gpu is None else gpu.index)
        holder = NOBODY if gpu is None else self._holders.get((state.host, gpu.index), NOBODY)
        return FilterRow(
            host=state.host,
            link=state.link,
            sample=None if old else state.latest,
            gpu=_identity(gpu) if old and gpu is not None else gpu,
            tags=spec.tags if spec else (),
            platform=(spec.platform if spec else None)
            or (state.facts.platform if state.facts else None),
            price_per_h=spec.price_per_h if spec else None,
            age_s=state.age_s(self.engine.now_s()),
            run=holder.run or None,
            incidents=self._families.get(place, ()),
            severity=holder.severity,
        )

    # -- drawing ---------------------------------------------------------------------------------

    def face(self, host: HostName) -> HostFace:
        """What one host is drawn from."""
        spec = self.engine.hosts.get(host)
        return HostFace(
            self.engine.fleet.hosts[host],
            self.engine.now_s(),
            self._holders,
            spec.price_per_h if spec else None,
            spec.currency if spec else None,
            spec.platform if spec else None,
        )

    def tokens(self) -> dict[HostName, object]:
        """For each host something that differs when its lines may have changed."""
        now_s = self.engine.now_s()
        return {
            host: (state.version, self._epoch, _age_token(state, now_s))
            for host, state in self.engine.fleet.hosts.items()
        }

    def memory_cells(self) -> int:
        totals = [gpu.mem_total_mib or 0 for _state, gpu in self.all_cards()]
        return memory_cells(max(totals, default=None))

    def holder(self, host: HostName, card: int) -> Holder:
        return self._holders.get((host, card), NOBODY)

    def trouble_places(self) -> list[tuple[HostName, int | None]]:
        """Every place that `n` stops at, in the order of the lines."""
        places: list[tuple[HostName, int | None]] = []
        for place in self._plan.places:
            if not place.selectable:
                continue
            entry = self._plan.entries[place.entry]
            if place.kind == "words" and entry.trouble:
                places.append((entry.host, None))
            elif self._is_trouble(entry.host, place.card):
                places.append((entry.host, place.card))
        return places

    def _is_trouble(self, host: HostName, card: int | None) -> bool:
        if (host, card) in self._troubled:
            return True
        latest = self.engine.fleet.hosts[host].latest
        return any(gpu.index == card and gpu.error for gpu in (latest.gpus if latest else ()))

    def _read_holders(self) -> None:
        versions = (self.engine.runs.version, self.engine.incidents.version)
        if versions == self._versions:
            return
        self._versions = versions
        self._epoch += 1
        open_ones = [one for one in self.engine.incidents.all() if one.is_loud]
        places = [(place, one) for one in open_ones for place in self._places_of(one)]
        worst: dict[tuple[HostName, int | None], Severity] = {}
        families: dict[tuple[HostName, int | None], tuple[str, ...]] = {}
        for place, incident in places:
            families[place] = (*families.get(place, ()), incident.family)
            known = worst.get(place, "notice")
            worst[place] = min(known, incident.severity, key=SEVERITIES.index)
        runs: dict[tuple[HostName, int], str] = {}
        for run in self.engine.runs.all():
            if not run.ended:
                runs.update({(run.host, card): run.profile for card in run.gpus})
        cards = {(host, card) for host, card in worst if card is not None} | runs.keys()
        self._holders = {place: Holder(runs.get(place, ""), worst.get(place)) for place in cards}
        self._troubled, self._families = frozenset(worst), families

    def _places_of(self, incident: Incident) -> list[tuple[HostName, int | None]]:
        """The cards that an incident is about; those of its run where it names none."""
        if incident.host is None:
            return []
        if incident.gpu is not None:
            return [(incident.host, incident.gpu)]
        run = self.engine.runs.get(incident.run) if incident.run is not None else None
        cards = run.gpus if run is not None and not run.ended else ()
        return [(incident.host, card) for card in cards] or [(incident.host, None)]


def _identity(gpu: GpuSample) -> GpuSample:
    """A card of which only the name is certain."""
    return GpuSample(index=gpu.index, uuid=gpu.uuid, name=gpu.name, error=gpu.error)


def _age_token(state: HostState, now_s: float) -> int:
    age_s = state.age_s(now_s)
    if state.link == "live" and (age_s is None or age_s < FRESH_S):
        return 0
    return int(now_s)
