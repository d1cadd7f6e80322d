"""One sampler on one host: reads its lines, decodes them, hands samples on, and bounds what a host may cost.

Apart from the link because a sampler dies, hangs and is replaced while the connection stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cockpit.domain.models import HostFacts, HostName, HostSample
from cockpit.domain.wire import Decoded, Hello
from cockpit.engine.clock import Clock
from cockpit.engine.lines import LineSplitter, LineTooLong
from cockpit.errors import ProtocolError
from cockpit.transport.base import HostTransport

FAULT_LIMIT = 50
"""Lines in a row that are no sample before the link is given up."""
LINES_PER_S = 25.0
LINES_BURST = 100.0
BYTES_PER_S = 512.0 * 1024
BYTES_BURST = 4.0 * 1024 * 1024
TELL_LIMIT_S = 5.0
CLOSE_LIMIT_S = 1.5


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often, and whether the slow readings come along because someone looks."""

    interval_s: float = 1.0
    focused: bool = False


class Sampler(Protocol):
    """A sampler that runs on a host: the probe, or what stands in for it where there is no Python."""

    @property
    def noise(self) -> bytes: ...

    @property
    def has_python(self) -> bool: ...

    async def read(self) -> bytes:
        """At least one byte, b"" at its end. Raises LinkLost."""

    def decode(self, line: bytes) -> Decoded: ...

    async def tell(self, cadence: Cadence, *, now: bool = False) -> None:
        """Change the cadence; `now` also asks for a sample at once. Nothing where it cannot be told."""

    def last_words(self) -> str:
        """What it said on stderr, cleaned and short."""

    async def close(self) -> None: ...


class StartSampler(Protocol):
    """Starts the best sampler that the host can run. Raises ProbeError, TransportError."""

    async def __call__(
        self, transport: HostTransport, python: str | None, cadence: Cadence
    ) -> Sampler: ...


class Budget:
    """A token bucket: what is beyond it is waited for, and back-pressure reaches the host."""

    def __init__(self, now_s: float, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._at_s = now_s

    def spend(self, amount: float, now_s: float) -> float:
        """Seconds to wait before spending more."""
        self._left = min(self._burst, self._left + (now_s - self._at_s) * self._per_s) - amount
        self._at_s = now_s
        return max(0.0, -self._left / self._per_s)


class SamplerReader:
    """Reads one sampler to its end."""

    def __init__(
        self,
        host: HostName,
        sampler: Sampler,
        clock: Clock,
        on_sample: Callable[[HostSample], None],
        on_facts: Callable[[HostFacts], None],
        on_fault: Callable[[], None],
    ) -> None:
        self._host = host
        self._sampler = sampler
        self._clock = clock
        self._on_sample = on_sample
        self._on_facts = on_facts
        self._on_fault = on_fault
        self._faults_in_a_row = 0
        now_s = clock.now_s()
        self._bytes = Budget(now_s, BYTES_PER_S, BYTES_BURST)
        self._lines = Budget(now_s, LINES_PER_S, LINES_BURST)

    async def read_to_end(self) -> None:
        """Return when the sampler ended by itself. Raises ProtocolError, LinkLost."""
        splitter = LineSplitter()
        read, now_s = self._sampler.read, self._clock.now_s
        while chunk := await read():
            try:
                lines = splitter.feed(chunk)
            except LineTooLong:
                raise ProtocolError(host=self._host, why="line_too_long") from None
            for line in lines:
                self._take(line)
            moment_s = now_s()
            wait_s = max(
                self._bytes.spend(len(chunk), moment_s), self._lines.spend(len(lines), moment_s)
            )
            if wait_s > 0.0:
                await asyncio.sleep(wait_s)

    def _take(self, line: bytes) -> None:
        decoded = self._sampler.decode(line)
        if isinstance(decoded, HostSample):
            self._faults_in_a_row = 0
            self._on_sample(decoded)
        elif isinstance(decoded, Hello):
            self._on_facts(decoded.facts)
        elif decoded is not None:
            self._on_fault()
            self._faults_in_a_row += 1
            if self._faults_in_a_row >= FAULT_LIMIT:
                raise ProtocolError(host=self._host, why="not_samples", words=decoded.text or None)
