"""The real sampler: the shipped probe, or the shell streams that stand in for it where there is no Python."""

from __future__ import annotations

from cockpit.domain.text import safe_line
from cockpit.domain.wire import SampleDecoder
from cockpit.engine.sampler import Cadence
from cockpit.engine.shipping import RemoteProgram, start_probe
from cockpit.transport.base import HostTransport

WORDS_CHARS = 300


class ProbeSampler:
    def __init__(self, transport: HostTransport, program: RemoteProgram) -> None:
        self._channel = program.channel
        self._python = program.python
        self._decoder = SampleDecoder(transport.host)
        self.read = program.channel.read
        self.decode = self._decoder.feed

    @property
    def noise(self) -> bytes:
        return self._channel.noise

    @property
    def has_python(self) -> bool:
        return bool(self._python)

    async def tell(self, cadence: Cadence, *, now: bool = False) -> None:
        if self.has_python:
            wish = f"interval {cadence.interval_s:g}\nfocus {cadence.focused:d}\n"
            await self._channel.write((wish + "now\n" * now).encode())

    def last_words(self) -> str:
        """The last line of stderr: an exception's own sentence, a shell's complaint."""
        lines = self._channel.stderr_tail().split(b"\n")
        said = [line for line in lines if line.strip()]
        return safe_line(said[-1][-4 * WORDS_CHARS :], WORDS_CHARS) if said else ""

    async def close(self) -> None:
        await self._channel.close()


async def start_probe_sampler(
    transport: HostTransport, python: str | None, cadence: Cadence
) -> ProbeSampler:
    """Raises ProbeError, TransportError."""
    program = await start_probe(transport, interval_s=cadence.interval_s, python=python)
    sampler = ProbeSampler(transport, program)
    if cadence.focused:
        await sampler.tell(cadence)
    return sampler
