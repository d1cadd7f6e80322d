"""One host's link: connect, sample, let go, try again. Each host has its own task and its own fate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostFacts, HostName, HostSample
from cockpit.engine.backoff import Backoff
from cockpit.engine.bounds import attempt, end, within
from cockpit.engine.clock import Clock
from cockpit.engine.door import DoorWatch
from cockpit.engine.events import EventBus, HostRestarted, LinkChanged
from cockpit.engine.fleet import FleetStore
from cockpit.engine.link_state import (
    DISCONNECTED,
    PROBE_DIED,
    Reason,
    reason_of_error,
    reason_of_sample,
    waits_for_person,
)
from cockpit.engine.sampler import Cadence, StartSampler
from cockpit.engine.sampling import Sampling
from cockpit.errors import CockpitError, HostKeyChanged, HostKeyUnknown, HostUnreachable
from cockpit.transport.base import HostTransport, LinkFacts

log = logging.getLogger(__name__)

CONNECT_LIMIT_S = 120.0
"""Above all of the transport's own limits together, jumps and the queue for handshakes included."""
CLOSE_LIMIT_S = 2.0
END_LIMIT_S = 3.8
"""For a whole link: its sampler's farewell, then its own."""
CONNECTING = Reason("connecting", None, {})


def _nothing(*_: object) -> None:
    """No listener."""


@dataclass(frozen=True, slots=True)
class LinkParts:
    """What every link of an engine shares."""

    fleet: FleetStore
    bus: EventBus
    clock: Clock
    make_transport: Callable[[HostSpec], HostTransport]
    start_sampler: StartSampler
    jitter: Callable[[], float]
    is_asking: Callable[[HostName], bool] = lambda _host: False
    """True while a person is asked for a secret of this host: no limit runs out meanwhile."""
    annotate: Callable[[HostSample], HostSample] = lambda sample: sample
    on_sample: Callable[[HostSample], None] = _nothing
    on_up: Callable[[HostSpec, HostTransport], None] = _nothing
    on_down: Callable[[HostName], None] = _nothing
    make_quiet_transport: Callable[[HostSpec], HostTransport] | None = None
    """A transport that asks nobody anything; None: logins are not tried beside an open connection."""
    was_asked: Callable[[HostName], bool] = lambda _host: False
    """Whether a person had to type a secret of this host."""
    on_door: Callable[[HostName, CockpitError | None], None] = _nothing
    """Whether a new login succeeds, while the old connection stands."""


class HostLink:
    """Supervises one host from `start` to `close`."""

    def __init__(self, spec: HostSpec, parts: LinkParts, cadence: Cadence) -> None:
        self.spec = spec
        self.host = spec.name
        self.transport: HostTransport | None = None
        """The open connection; None while there is none."""
        self._parts = parts
        self._state = parts.fleet.add(spec.name)
        self._incarnation = ""
        self._supervision: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._retry = asyncio.Event()
        self._by_hand = False
        self._door = self._make_door()
        self._sampling = Sampling(
            spec,
            cadence,
            parts.clock,
            parts.start_sampler,
            parts.jitter,
            on_sample=self._take_sample,
            on_facts=self._take_facts,
            on_fault=self._count_fault,
            on_noise=self._keep_noise,
            on_dying=self._set,
        )

    def _make_door(self) -> DoorWatch | None:
        parts, spec = self._parts, self.spec
        make = parts.make_quiet_transport
        if make is None or spec.local:
            return None
        return DoorWatch(
            lambda: make(spec),
            lambda: parts.was_asked(spec.name),
            lambda failure: parts.on_door(spec.name, failure),
            parts.jitter,
        )

    def start(self) -> None:
        """Begin to connect; a link that runs already is left alone."""
        if self._supervision is None:
            self._set(CONNECTING)
            self._supervision = asyncio.ensure_future(self._supervise(tuple(self._leaving)))

    async def close(self) -> None:
        """Let go of the host, within seconds."""
        self._stop()
        await end(*self._leaving, limit_s=END_LIMIT_S)
        self._leaving.clear()

    def disconnect(self) -> None:
        """Let go because it is wanted; the farewell goes on by itself."""
        self._stop()
        self._set(Reason("unreachable", DISCONNECTED, {}))

    def probe_now(self) -> None:
        """Sample at once, or connect at once."""
        if self.transport is not None:
            self._sampling.sample_now()
            return
        self.start()
        self._by_hand = True
        self._retry.set()

    def doubt(self) -> None:
        """This computer slept: find out now whether the host is still there, or try it again at once."""
        if self.transport is not None:
            self._sampling.doubt()
        elif self._state.retry_at_s is not None:
            self._retry.set()

    def set_cadence(self, cadence: Cadence) -> None:
        self._sampling.set_cadence(cadence)

    def judge(self, now_s: float) -> float | None:
        """Turn silence into a state; returns when to look again. Called by the fleet's one timer."""
        verdict, deadline_s = self._sampling.judge(now_s)
        state = self._state
        if verdict != "fresh" and state.link in ("live", "degraded") and state.code != PROBE_DIED:
            self._set(Reason("stale", "no_sample", {}))
        return deadline_s

    # -- connect, hold, try again -------------------------------------------------------

    def _stop(self) -> None:
        if self._supervision is not None:
            self._supervision.cancel()
            self._leaving.add(self._supervision)
            self._supervision.add_done_callback(self._leaving.discard)
            self._supervision = None

    async def _supervise(self, leaving: tuple[asyncio.Task[None], ...]) -> None:
        await end(*leaving)
        backoff = Backoff(self._parts.jitter)
        while True:
            self._retry.clear()
            self._by_hand = False
            failure = await self._hold_until_it_fails(backoff)
            self._offer_key(failure)
            self._set(reason_of_error(failure))
            await self._wait_for_retry(None if waits_for_person(failure) else backoff.next_s())
            if self._by_hand:
                backoff.reset()
                self._set(CONNECTING)

    async def _hold_until_it_fails(self, backoff: Backoff) -> CockpitError:
        try:
            await self._hold(backoff)
        except CockpitError as error:
            return error
        except (
            Exception
        ) as error:  # the host's edge: a surprise ends this try, and touches no other host
            log.exception("link of %s", self.host)
            return CockpitError(host=self.host, why=type(error).__name__)
        return CockpitError(host=self.host, why="ended")

    async def _hold(self, backoff: Backoff) -> None:
        """One connection, from its first byte to its last. Always ends by raising."""
        clock = self._parts.clock
        transport = self._parts.make_transport(self.spec)
        connected_s: float | None = None
        knocking: asyncio.Task[None] | None = None
        try:
            self._keep_link_facts(await self._connect(transport))
            connected_s = clock.now_s()
            self.transport = transport
            self._parts.on_up(self.spec, transport)
            if self._door is not None:
                knocking = asyncio.ensure_future(self._door.watch())
            await self._sampling.run(transport)
        finally:
            if knocking is not None:
                knocking.cancel()
            self.transport = None
            if connected_s is not None:
                backoff.ended_after(clock.now_s() - connected_s)
                self._parts.on_down(self.host)
            await attempt(CLOSE_LIMIT_S, transport.close())
            if knocking is not None:
                await end(knocking, limit_s=CLOSE_LIMIT_S)

    async def _connect(self, transport: HostTransport) -> LinkFacts:
        try:
            return await within(
                CONNECT_LIMIT_S,
                transport.connect(),
                paused=lambda: self._parts.is_asking(self.host),
            )
        except asyncio.TimeoutError:
            raise HostUnreachable(host=self.host, why="timeout") from None

    async def _wait_for_retry(self, delay_s: float | None) -> None:
        """Until `delay_s` is over, without end when it is None; a person's wish ends either."""
        timer = None
        if delay_s is not None:
            timer = asyncio.get_running_loop().call_later(delay_s, self._retry.set)
            self._update(retry_at_s=self._parts.clock.now_s() + delay_s)
        try:
            await self._retry.wait()
        finally:
            if timer is not None:
                timer.cancel()
            self._update(retry_at_s=None)

    # -- what is learnt -----------------------------------------------------------------

    def _take_sample(self, sample: HostSample) -> None:
        parts = self._parts
        sample = parts.annotate(sample)
        parts.fleet.record(sample, parts.clock.now_s())
        self._set(reason_of_sample(sample, has_python=self._sampling.has_python))
        parts.on_sample(sample)

    def _take_facts(self, facts: HostFacts) -> None:
        before, self._incarnation = self._incarnation, facts.incarnation
        self._update(facts=facts)
        if before and facts.incarnation and before != facts.incarnation:
            self._parts.bus.publish(HostRestarted(self.host, self._parts.clock.wall_s()))

    def _keep_link_facts(self, facts: LinkFacts) -> None:
        self._update(
            address=facts.address,
            key_type=facts.key_type,
            fingerprint=facts.fingerprint,
            known_fingerprint=None,
            latency_s=facts.latency_s,
        )

    def _offer_key(self, failure: CockpitError) -> None:
        """Keep the key that the host offered, for the person to compare."""
        if isinstance(failure, HostKeyUnknown | HostKeyChanged):
            self._update(
                key_type=failure.facts.get("key_type"),
                fingerprint=failure.facts.get("fingerprint"),
                known_fingerprint=failure.facts.get("known"),
            )

    def _count_fault(self) -> None:
        self._update(faults=self._state.faults + 1)

    def _keep_noise(self, noise: bytes) -> None:
        if noise != self._state.noise:
            self._update(noise=noise)

    def _update(self, **changes: object) -> None:
        if self.host in self._parts.fleet.hosts:
            self._parts.fleet.update(self.host, **changes)

    def _set(self, reason: Reason) -> None:
        """Publish a state that is new; the facts alone may change silently."""
        state = self._state
        if (state.link, state.code, state.why) == (reason.link, reason.code, reason.why):
            return
        before, code_before = state.link, state.code
        if self.host not in self._parts.fleet.hosts:
            return
        self._parts.fleet.set_link(self.host, reason.link, code=reason.code, **reason.why)
        if (before, code_before) != (reason.link, reason.code):
            self._parts.bus.publish(
                LinkChanged(self.host, before, reason.link, reason.code, self._parts.clock.wall_s())
            )
