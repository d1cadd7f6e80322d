"""A host for tests of links: its transport, its samplers, and everything that can go wrong with them."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName, HostSample
from cockpit.domain.wire import Decoded, Hello, ProbeFault, SampleDecoder
from cockpit.engine.events import Event, EventBus, LinkChanged
from cockpit.engine.fleet import FleetStore, HostState
from cockpit.engine.link import LinkParts
from cockpit.engine.links import Links
from cockpit.engine.no_runs import NoRuns
from cockpit.engine.sampler import Cadence, Sampler
from cockpit.engine.wiring import EngineParts, Wiring
from cockpit.errors import LinkLost
from cockpit.transport.base import (
    AskSecret,
    ByteChannel,
    Completed,
    HostTransport,
    LinkFacts,
    TcpStream,
)
from tests.builders.clock import FakeClock


class FakeSampler:
    """Yields what the test pushes; samples travel as numbered lines."""

    def __init__(self, cadence: Cadence, *, has_python: bool = True) -> None:
        self.noise = b""
        self.has_python = has_python
        self.told: list[tuple[Cadence, bool]] = [(cadence, False)]
        self.words = ""
        self.closed = False
        self.close_hangs = False
        self._chunks: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self._values: dict[bytes, Hello | HostSample] = {}

    def push(self, *values: HostSample | Hello | bytes) -> None:
        """Samples as lines in one chunk each; bytes as they are."""
        for value in values:
            if isinstance(value, bytes):
                self._chunks.put_nowait(value)
            else:
                line = b"%d" % len(self._values)
                self._values[line] = value
                self._chunks.put_nowait(line + b"\n")

    def die(self, words: str = "") -> None:
        self.words = words
        self._chunks.put_nowait(b"")

    def fail(self, error: Exception) -> None:
        self._chunks.put_nowait(error)

    async def read(self) -> bytes:
        chunk = await self._chunks.get()
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def decode(self, line: bytes) -> Decoded:
        return self._values.get(line) or ProbeFault("bad_line", line[:20].decode("latin-1"))

    async def tell(self, cadence: Cadence, *, now: bool = False) -> None:
        self.told.append((cadence, now))

    def last_words(self) -> str:
        return self.words

    async def close(self) -> None:
        self.closed = True
        if self.close_hangs:
            await asyncio.Event().wait()


class DecodingSampler(FakeSampler):
    """Takes lines as a probe writes them."""

    def __init__(self, host: HostName, cadence: Cadence) -> None:
        super().__init__(cadence)
        self._decoder = SampleDecoder(host)

    def decode(self, line: bytes) -> Decoded:
        return self._decoder.feed(line)


class FakeTransport:
    def __init__(self, owner: FakeHost) -> None:
        self.host = owner.spec.name
        self.connected = False
        self.closed = False
        self._owner = owner
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def connect(self) -> LinkFacts:
        owner = self._owner
        owner.attempts_s.append(asyncio.get_running_loop().time())
        if owner.connect_hangs:
            await asyncio.Event().wait()
        if owner.connect_errors:
            raise owner.connect_errors.popleft()
        self.connected = True
        return LinkFacts(
            address="192.0.2.1",
            port=22,
            user="root",
            key_type="ssh-ed25519",
            fingerprint="SHA256:known",
            latency_s=0.02,
        )

    def lose(self, why: str = "connection reset") -> None:
        """The connection breaks, as a transport notices it."""
        self.connected = False
        if not self._lost.done():
            self._lost.set_result(why)

    async def wait_closed(self) -> str:
        return await asyncio.shield(self._lost)

    async def close(self) -> None:
        self.closed = True
        if self._owner.close_hangs:
            await asyncio.Event().wait()
        self.lose("closed")

    async def open(self, script: bytes) -> ByteChannel:
        raise LinkLost(host=self.host, why="not in this test")

    async def run(
        self, script: bytes, *, stdin: bytes = b"", timeout_s: float = 30.0, limit: int = 1 << 20
    ) -> Completed:
        raise LinkLost(host=self.host, why="not in this test")

    async def open_tcp(
        self, port: int, host: str = "127.0.0.1", *, timeout_s: float = 10.0
    ) -> TcpStream:
        raise LinkLost(host=self.host, why="not in this test")

    async def forward(
        self, local_port: int, remote_port: int, remote_host: str = "127.0.0.1"
    ) -> int:
        raise LinkLost(host=self.host, why="not in this test")

    def unforward(self, local_port: int) -> None: ...


@dataclass
class FakeHost:
    """One host and its faults, set before or while it is watched."""

    name: str = "vast-a"
    connect_errors: deque[Exception] = field(default_factory=deque)
    start_errors: deque[Exception] = field(default_factory=deque)
    connect_hangs: bool = False
    start_hangs: bool = False
    close_hangs: bool = False
    has_python: bool = True
    transports: list[FakeTransport] = field(default_factory=list)
    samplers: list[FakeSampler] = field(default_factory=list)
    attempts_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spec = HostSpec(name=HostName(self.name), host="192.0.2.1")

    def make_sampler(self, cadence: Cadence) -> FakeSampler:
        return FakeSampler(cadence, has_python=self.has_python)

    @property
    def sampler(self) -> FakeSampler:
        return self.samplers[-1]

    @property
    def transport(self) -> FakeTransport:
        return self.transports[-1]


class FakeFleet:
    """Links over fake hosts, with everything that they said."""

    def __init__(self, clock: FakeClock, *hosts: FakeHost, jitter: float = 0.0) -> None:
        self.clock = clock
        self.store = FleetStore()
        self.fakes = {fake.spec.name: fake for fake in hosts}
        self.events: list[Event] = []
        self.listener_errors: list[Exception] = []
        self.samples: list[HostSample] = []
        self.asking: set[HostName] = set()
        bus = EventBus(self.listener_errors.append)
        bus.subscribe(self.events.append)
        self.parts = LinkParts(
            fleet=self.store,
            bus=bus,
            clock=clock,
            make_transport=self._make_transport,
            start_sampler=self._start_sampler,
            jitter=lambda: jitter,
            is_asking=self.asking.__contains__,
            on_sample=self.samples.append,
        )
        self.links = Links(self.parts)

    async def __aenter__(self) -> FakeFleet:
        await self.links.set_hosts([fake.spec for fake in self.fakes.values()])
        self.links.start()
        await settle()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.links.close()

    def state(self, name: str = "vast-a") -> HostState:
        return self.store.hosts[HostName(name)]

    def link_states(self, name: str = "vast-a") -> list[str]:
        """Every state that was announced, in order."""
        return [
            event.after
            for event in self.events
            if isinstance(event, LinkChanged) and event.host == name
        ]

    def _make_transport(self, spec: HostSpec) -> HostTransport:
        fake = self.fakes[spec.name]
        fake.transports.append(FakeTransport(fake))
        return fake.transport

    async def _start_sampler(
        self, transport: HostTransport, python: str | None, cadence: Cadence
    ) -> Sampler:
        fake = self.fakes[transport.host]
        if fake.start_hangs:
            await asyncio.Event().wait()
        if fake.start_errors:
            raise fake.start_errors.popleft()
        fake.samplers.append(fake.make_sampler(cadence))
        return fake.sampler


def fake_wiring(*hosts: FakeHost) -> Wiring:
    """The wiring of an engine whose hosts are these; runs are left out."""
    fakes = {fake.spec.name: fake for fake in hosts}

    def make_transport(spec: HostSpec, parts: EngineParts, ask: AskSecret | None) -> HostTransport:
        fake = fakes[spec.name]
        fake.transports.append(FakeTransport(fake))
        return fake.transport

    async def start_sampler(
        transport: HostTransport, python: str | None, cadence: Cadence
    ) -> Sampler:
        fake = fakes[transport.host]
        fake.samplers.append(fake.make_sampler(cadence))
        return fake.sampler

    return Wiring(
        make_transport=make_transport,
        start_sampler=start_sampler,
        make_runs=lambda _parts: NoRuns(),
        jitter=lambda: 0.0,
    )


class ProbeHost(FakeHost):
    """A host whose samplers take lines as a probe writes them."""

    def make_sampler(self, cadence: Cadence) -> FakeSampler:
        return DecodingSampler(self.spec.name, cadence)


async def settle(turns: int = 20) -> None:
    """Let every task that can run do so, without the clock moving."""
    for _ in range(turns):
        await asyncio.sleep(0)
