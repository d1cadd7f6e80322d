"""Runs the sample detectors of every host and reports what they say: memory, cards, room, who holds what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cockpit.domain.card_watch import CardWatch
from cockpit.domain.detectors import HostWatch, Signal
from cockpit.domain.holders_watch import HoldersWatch
from cockpit.domain.incident_book import Place, key_of
from cockpit.domain.load_trend import Load
from cockpit.domain.memory_watch import MemoryWatch
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.room_watch import RoomWatch
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.watch_wishes import WatchWishes

Held: TypeAlias = Callable[[HostName], Mapping[int, RunId]]
"""Of each card of a host that a living run reserved: the run."""
LoadOf: TypeAlias = Callable[[HostName, "RunId | None"], "Load | None"]
"""What a host's server has to do, by its run; for None that of the host's only server."""
ProfileOf: TypeAlias = Callable[[RunId], "str | None"]


@dataclass(slots=True)
class _Watches:
    """The detectors of one host."""

    host: HostWatch = field(default_factory=HostWatch)
    memory: MemoryWatch = field(default_factory=MemoryWatch)
    cards: CardWatch = field(default_factory=CardWatch)
    holders: HoldersWatch = field(default_factory=HoldersWatch)
    room: RoomWatch = field(default_factory=RoomWatch)

    def feed(self, sample: HostSample, held: Held, load: LoadOf) -> Iterable[Signal]:
        yield from self.host.feed(sample)
        yield from self.memory.feed(sample, lambda run: load(sample.host, run))
        yield from self.cards.feed(sample)
        yield from self.holders.feed(sample, lambda: held(sample.host))
        yield from self.room.feed(sample)


class SampleWatch:
    def __init__(
        self,
        desk: IncidentDesk,
        held: Held,
        wishes: WatchWishes | None = None,
        profile_of: ProfileOf = lambda run: None,
        load: LoadOf = lambda host, run: None,
    ) -> None:
        self._desk = desk
        self._held = held
        self._load = load
        self._profile_of = profile_of
        self._wishes = wishes or WatchWishes()
        self._watches: dict[HostName, _Watches] = {}

    def take(self, sample: HostSample) -> None:
        watches = self._watches.get(sample.host)
        if watches is None:
            watches = self._watches[sample.host] = _Watches()
        for signal in watches.feed(sample, self._held, self._load):
            self._hear(sample.host, signal)

    def _hear(self, host: HostName, signal: Signal) -> None:
        if signal.action == "open" and not self._is_wanted(host, signal):
            return
        if signal.action == "open":
            self._desk.report(
                signal.finding,
                host=host,
                gpu=signal.gpu,
                run=signal.run,
                profile=None if signal.run is None else self._profile_of(signal.run),
                evidence=signal.evidence,
            )
            return
        key = key_of(signal.finding, Place(host, signal.gpu, signal.run))
        self._desk.settle(key, "withdrawn" if signal.action == "withdraw" else "recovered")

    def _is_wanted(self, host: HostName, signal: Signal) -> bool:
        """By the profile of the run whose process or card it is about."""
        run = signal.run
        if run is None and signal.gpu is not None:
            run = self._held(host).get(signal.gpu)
        return self._wishes.of(run).wants(signal.finding)

    def forget(self, host: HostName) -> None:
        self._watches.pop(host, None)
