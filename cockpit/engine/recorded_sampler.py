"""A sampler whose lines are heard by somebody else as well."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.domain.models import HostName
from cockpit.domain.wire import Decoded
from cockpit.engine.sampler import Cadence, Sampler

Took = Callable[[HostName, bytes, Decoded], None]


class RecordedSampler:
    def __init__(self, inner: Sampler, host: HostName, took: Took) -> None:
        self._inner = inner
        self._decode = inner.decode
        self._host = host
        self._took = took
        self.read = inner.read

    @property
    def noise(self) -> bytes:
        return self._inner.noise

    @property
    def has_python(self) -> bool:
        return self._inner.has_python

    def decode(self, line: bytes) -> Decoded:
        decoded = self._decode(line)
        self._took(self._host, line, decoded)
        return decoded

    async def tell(self, cadence: Cadence, *, now: bool = False) -> None:
        await self._inner.tell(cadence, now=now)

    def last_words(self) -> str:
        return self._inner.last_words()

    async def close(self) -> None:
        await self._inner.close()
