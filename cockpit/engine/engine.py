"""The engine as front ends see it: it composes links, stores, incidents and runs, and does little itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cockpit.config.paths import Home
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.runs import HOLDING
from cockpit.engine.bounds import attempt, end
from cockpit.engine.door import report_door
from cockpit.engine.events import EventBus, OnEvent
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.incidents_api import IncidentStore
from cockpit.engine.incidents_face import IncidentsFace
from cockpit.engine.link import LinkParts
from cockpit.engine.links import Links
from cockpit.engine.person import Person
from cockpit.engine.runs_face import RunsFace
from cockpit.engine.sample_watch import SampleWatch
from cockpit.engine.sampler import StartSampler
from cockpit.engine.server_load import load_by
from cockpit.engine.wiring import (
    EngineParts,
    Wiring,
    flight_recorder,
    load_runs,
    load_transports,
)
from cockpit.engine.witness import Witness
from cockpit.errors import UsageError

if TYPE_CHECKING:
    from cockpit.config.hosts import HostSpec
    from cockpit.transport.base import AskSecret, HostTransport

log = logging.getLogger(__name__)

RUNS_CLOSE_LIMIT_S = 1.0
CLOSE_LIMIT_S = 4.9


async def open_engine(
    home: Home, *, ask_secret: AskSecret | None = None, wiring: Wiring | None = None
) -> Engine:
    """An engine over the home's hosts, or over this machine when there are none and it has a GPU.

    Raises ConfigError when hosts.toml has mistakes.
    """
    from cockpit.engine.host_list import hosts_to_watch

    hosts = await asyncio.to_thread(hosts_to_watch, home)
    if wiring is None:
        await asyncio.to_thread(load_runs)
        wiring = Wiring(make_recorder=flight_recorder)
    return Engine(home, hosts, ask_secret=ask_secret, wiring=wiring)


class Engine(RunsFace, IncidentsFace):
    """Implements EngineApi on one asyncio loop."""

    def __init__(
        self,
        home: Home,
        hosts: Mapping[HostName, HostSpec],
        *,
        ask_secret: AskSecret | None = None,
        wiring: Wiring | None = None,
        interval_s: float = 1.0,
    ) -> None:
        self._wiring = wiring or Wiring()
        self._clock = self._wiring.clock
        self._home = home
        self._hosts = dict(hosts)
        self.person = None if ask_secret is None else Person(ask_secret)
        self._fleet = FleetStore(self._hosts)
        self._bus = EventBus(lambda error: log.error("a listener failed", exc_info=error))
        self._desk = IncidentDesk(self._bus, self._clock)
        self._witness = Witness(self._fleet)
        self._desk.testify = self._witness.testify
        self._parts = EngineParts(
            home, self._hosts, self._clock, self._bus, self._fleet, self._desk
        )
        make_recorder = self._wiring.make_recorder
        self._recorder = None if make_recorder is None else make_recorder(self._parts)
        self._parts = replace(self._parts, recorder=self._recorder)
        self._watch = SampleWatch(
            self._desk,
            self._held,
            self._parts.wishes,
            self._profile_of,
            load_by(lambda: self._runs.store),
        )
        self._runs = self._wiring.make_runs(self._parts)
        if self._recorder is not None:
            self._recorder.watches(self._runs.store)
        self._bus.subscribe(self._runs.heard)
        self._reloading = asyncio.Lock()
        self._muting = asyncio.Lock()
        self._unkept = {}
        self._learning: asyncio.Future[None] | None = None
        self._links = Links(self._link_parts(), interval_s)

    def _link_parts(self) -> LinkParts:
        return LinkParts(
            fleet=self._fleet,
            bus=self._bus,
            clock=self._clock,
            make_transport=self._make_transport,
            start_sampler=self._start_sampler(),
            jitter=self._wiring.jitter,
            is_asking=self._is_asking,
            annotate=self._runs.annotate,
            on_sample=self._take_sample,
            on_up=self._runs.host_up,
            on_down=self._runs.host_down,
            make_quiet_transport=lambda spec: self._wiring.make_transport(spec, self._parts, None),
            was_asked=self._was_asked,
            on_door=lambda host, failure: report_door(self._desk, host, failure),
        )

    def _start_sampler(self) -> StartSampler:
        start = self._wiring.start_sampler
        return start if self._recorder is None else self._recorder.recording(start)

    # -- lifetime -----------------------------------------------------------------------

    async def start(self) -> None:
        if not all(spec.local for spec in self._hosts.values()):
            await asyncio.to_thread(load_transports)
        await self._links.set_hosts(self._hosts.values())
        self._links.start()
        self._runs.begin()
        self._learning = asyncio.ensure_future(self.refresh_mutes())

    async def close(self) -> None:
        await attempt(CLOSE_LIMIT_S, self._close())

    async def _close(self) -> None:
        if self._learning is not None:
            await end(self._learning)
        if self._recorder is not None:
            await attempt(RUNS_CLOSE_LIMIT_S, self._recorder.close())
        await attempt(RUNS_CLOSE_LIMIT_S, self._runs.close())
        await self._links.close()

    @property
    def fleet(self) -> FleetStore:
        return self._fleet

    @property
    def incidents(self) -> IncidentStore:
        return self._desk

    @property
    def hosts(self) -> dict[HostName, HostSpec]:
        return self._hosts

    def now_s(self) -> float:
        return self._clock.now_s()

    def wall_s(self) -> float:
        return self._clock.wall_s()

    def subscribe(self, listener: OnEvent) -> Callable[[], None]:
        return self._bus.subscribe(listener)

    # -- links --------------------------------------------------------------------------

    def focus(self, host: HostName | None) -> None:
        self._links.focus(host)

    def set_interval(self, seconds: float) -> None:
        self._links.set_interval(seconds)

    def probe_now(self, hosts: Sequence[HostName] = ()) -> None:
        self._links.probe_now(hosts)

    def connect(self, host: HostName) -> None:
        self._links.probe_now((host,))

    def disconnect(self, host: HostName) -> None:
        self._links.disconnect(host)

    # -- hosts --------------------------------------------------------------------------

    async def add_host(self, name: str, pasted: str, *, replace: bool = False) -> HostSpec:
        from cockpit.config.hosts import add_host

        spec, _notices = await asyncio.to_thread(
            add_host, self._home, name, pasted, replace=replace
        )
        await self.reload_hosts()
        return self._hosts.get(spec.name, spec)

    async def remove_host(self, host: HostName) -> None:
        from cockpit.config.hosts import remove_host

        await asyncio.to_thread(remove_host, self._home, host)
        await self.reload_hosts()

    async def reload_hosts(self) -> None:
        from cockpit.engine.host_list import hosts_to_watch

        async with self._reloading:
            wanted = await asyncio.to_thread(hosts_to_watch, self._home)
            for gone in self._hosts.keys() - wanted.keys():
                self._watch.forget(gone)
                self._witness.forget(gone)
                if self._recorder is not None:
                    self._recorder.forget(gone)
                self._runs.host_removed(gone)
            self._hosts.clear()
            self._hosts.update(wanted)
            await self._links.set_hosts(self._hosts.values())

    async def trust(self, host: HostName, fingerprint: str) -> None:
        from cockpit.transport.trust import trust_key

        spec = self._spec(host)
        await trust_key(spec, self._home, self._hosts, fingerprint, ask_secret=self.person)
        self._links.probe_now((host,))

    def shell_argv(self, host: HostName) -> list[str]:
        from cockpit.transport.shell import shell_argv

        return shell_argv(self._spec(host), self._home, self._hosts)

    def _spec(self, host: HostName) -> HostSpec:
        if host not in self._hosts:
            raise UsageError("host_unknown", host=host, known=tuple(self._hosts))
        return self._hosts[host]

    # -- what the parts tell each other ---------------------------------------------------

    def _take_sample(self, sample: HostSample) -> None:
        self._witness.take(sample, self._clock.wall_s())
        self._watch.take(sample)
        self._runs.sampled(sample)

    def _held(self, host: HostName) -> Mapping[int, RunId]:
        living = (
            view for view in self._runs.store.all() if view.host == host and view.state in HOLDING
        )
        return {card: view.run for view in living for card in view.gpus}

    def _profile_of(self, run: RunId) -> str | None:
        view = self._runs.store.get(run)
        return None if view is None else view.profile

    def _is_asking(self, host: HostName) -> bool:
        return self.person is not None and host in self.person.asked

    def _was_asked(self, host: HostName) -> bool:
        return self.person is not None and host in self.person.ever_asked

    def _make_transport(self, spec: HostSpec) -> HostTransport:
        return self._wiring.make_transport(spec, self._parts, self.person)
