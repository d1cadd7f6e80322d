"""The wire to remote/runs.sh: requests as lines, answered one after the other in the order of asking."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.engine.bounds import end, within
from cockpit.errors import CockpitError, LinkLost, ProtocolError
from cockpit.transport.base import ByteChannel

GREETING = b"cockpit-runs 1"
HELLO_S = 20.0
WRITE_S = 60.0
MAX_LINE_BYTES = 64 * 1024
MAX_LINES = 5000
MAX_DATA_BYTES = 1 << 20


@dataclass(slots=True)
class ShAnswer:
    """The lines of an answer as (key, words), and the bytes of a file if it has some."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    data: bytes = b""
    refused: str | None = None

    def last(self, key: str) -> str | None:
        return next((words for name, words in reversed(self.lines) if name == key), None)

    def each(self, key: str) -> Iterator[str]:
        return (words for name, words in self.lines if name == key)


@dataclass(frozen=True, slots=True)
class _Asked:
    number: int
    answer: asyncio.Future[ShAnswer]


class ShLink:
    """Owns the channel. Whatever ends it ends every question the same way."""

    def __init__(self, channel: ByteChannel, host: HostName) -> None:
        self._channel = channel
        self._host = host
        self._numbers = 0
        self._asked: deque[_Asked] = deque()
        self._writing = asyncio.Lock()
        self._failure: CockpitError | None = None
        self._buffer = bytearray()
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read())

    async def greeted(self) -> None:
        """Wait until the program has said what it is. Raises ProtocolError, LinkLost."""
        try:
            await within(HELLO_S, self._greeted)
        except asyncio.TimeoutError as error:
            raise LinkLost(host=self._host, why="no hello") from error

    async def ask(self, op: str, *words: str, limit_s: float, order: bytes = b"") -> ShAnswer:
        """Send a request, with the lines of an order, and wait for its answer. Raises LinkLost, ProtocolError."""
        if self._failure is not None:
            raise self._failure
        answer: asyncio.Future[ShAnswer] = asyncio.get_running_loop().create_future()
        async with self._writing:
            self._numbers += 1
            asked = _Asked(self._numbers, answer)
            line = " ".join((op, str(asked.number), *words))
            self._asked.append(asked)
            await self._write(line.encode("utf-8", "surrogateescape") + b"\n" + order)
        try:
            return await within(limit_s, answer)
        except asyncio.TimeoutError as error:
            self._fail(LinkLost(host=self._host, why="no answer", op=op))
            raise LinkLost(host=self._host, why="no answer", op=op) from error

    async def _write(self, data: bytes) -> None:
        try:
            await within(WRITE_S, self._channel.write(data))
        except asyncio.TimeoutError as error:
            self._fail(LinkLost(host=self._host, why="not reading"))
            raise LinkLost(host=self._host, why="not reading") from error
        except asyncio.CancelledError:  # half a request may be on its way: nothing can follow it
            self._fail(LinkLost(host=self._host, why="cut short"))
            raise

    async def closed(self) -> CockpitError:
        """Return when the link is of no more use, with the reason."""
        await asyncio.wait({self._reader})
        return self._failure or LinkLost(host=self._host, why="closed")

    async def close(self) -> None:
        self._fail(LinkLost(host=self._host, why="closed"))
        await end(self._reader)
        await self._channel.close()

    def _fail(self, failure: CockpitError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        answers: list[asyncio.Future[Any]] = [asked.answer for asked in self._asked]
        for waiting in (self._greeted, *answers):
            if not waiting.done():
                waiting.set_exception(failure)
                waiting.exception()  # nobody may be waiting for it
        self._reader.cancel()

    # -- reading ---------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            if await self._line() != GREETING:
                raise ProtocolError(host=self._host, why="hello")
            if not self._greeted.done():
                self._greeted.set_result(None)
            while True:
                await self._read_answer()
        except CockpitError as error:
            self._fail(error)

    async def _read_answer(self) -> None:
        answer, size = ShAnswer(), 0
        while True:
            line = await self._line()
            kind, _, rest = line.partition(b" ")
            size += len(line)
            if not self._asked or len(answer.lines) > MAX_LINES or size > MAX_DATA_BYTES:
                raise ProtocolError(host=self._host, why="answer")
            if kind == b".":
                return self._deliver(answer, rest)
            if kind == b"D":
                answer.data = await self._exactly(rest)
            elif kind == b"!":
                answer.refused = rest.decode("utf-8", "replace")
            elif kind == b"=":
                key, _, words = rest.decode("utf-8", "replace").partition(" ")
                answer.lines.append((key, words))
            else:
                raise ProtocolError(host=self._host, why="answer", line=safe_line(line[:80]))

    def _deliver(self, answer: ShAnswer, number: bytes) -> None:
        asked = self._asked.popleft()
        if number != str(asked.number).encode():
            raise ProtocolError(host=self._host, why="another answer")
        if not asked.answer.done():
            asked.answer.set_result(answer)

    async def _line(self) -> bytes:
        searched = 0
        while (at := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_LINE_BYTES:
                raise ProtocolError(host=self._host, why="line_too_long")
            await self._more()
        line = bytes(memoryview(self._buffer)[:at])
        del self._buffer[: at + 1]
        return line

    async def _exactly(self, told: bytes) -> bytes:
        if not told.isdigit() or len(told) > 9 or int(told) > MAX_DATA_BYTES:
            raise ProtocolError(host=self._host, why="length")
        length = int(told)
        while len(self._buffer) < length:
            await self._more()
        data = bytes(memoryview(self._buffer)[:length])
        del self._buffer[:length]
        return data

    async def _more(self) -> None:
        data = await self._channel.read()
        if not data:
            words = safe_line(self._channel.stderr_tail()[-1000:])
            raise LinkLost(host=self._host, why="agent ended", stderr=words)
        self._buffer += data
