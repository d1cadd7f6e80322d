"""The client of remote/courier.py: requests and answers, one after the other, on one channel.

A host is not trusted to keep to the form: lines, bodies and chunks have limits, and silence has one.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

from cockpit.domain.run_spec import Json
from cockpit.domain.text import safe_line
from cockpit.engine.bounds import within
from cockpit.engine.shipping import load_program, start_program
from cockpit.errors import CockpitError, LinkLost, ProtocolError
from cockpit.transport.base import ByteChannel, HostTransport

Result = TypeVar("Result")
OpenCourier: TypeAlias = Callable[[HostTransport, str | None], Awaitable[ByteChannel]]

QUIET_S = 90.0
"""A courier that works says so every other second; one that waits for another launch, longer."""
WRITE_S = 90.0
MAX_LINE_BYTES = 64 * 1024
MAX_CHUNK_BYTES = 1 << 20


class Refusal(CockpitError):
    """The courier's own answer: a code of its, and facts that are harmless to show."""

    default_code = "code_host_failed"


async def open_shipped_courier(transport: HostTransport, python: str | None) -> ByteChannel:
    started = await start_program(transport, load_program("courier"), ("serve",), python=python)
    return started.channel


class Courier:
    """Every method raises LinkLost, ProtocolError, or Refusal."""

    def __init__(self, channel: ByteChannel, host: str) -> None:
        self._channel = channel
        self.host = host
        self._unread = bytearray()
        self.received_bytes = 0
        self.sent_bytes = 0

    async def close(self) -> None:
        await self._channel.close()

    async def ask(
        self, op: str, fields: Mapping[str, Json], body: bytes = b"", *, most_bytes: int = 0
    ) -> tuple[dict[str, object], bytes]:
        """An answer and at most `most_bytes` behind it."""
        await self.tell(op, fields, body)
        return await self.answer(most_bytes=most_bytes)

    async def tell(self, op: str, fields: Mapping[str, Json], body: bytes = b"") -> None:
        line = json.dumps({"op": op, **fields, "bytes": len(body)})
        await self.write(line.encode() + b"\n" + body)

    async def answer(self, *, most_bytes: int = 0) -> tuple[dict[str, object], bytes]:
        while True:
            fields = self._object(await self._line())
            if "beat" not in fields:
                break
        count = fields.get("bytes", 0)
        if not isinstance(count, int) or not 0 <= count <= most_bytes:
            raise ProtocolError(host=self.host, why="body")
        body = await self._exactly(count)
        if "error" in fields:
            raise self._refusal(fields)
        return fields, body

    async def write(self, data: bytes) -> None:
        """Raw bytes, for whom the request has handed the channel over to."""
        await self._timed(WRITE_S, self._channel.write(data))
        self.sent_bytes += len(data)

    async def send_chunk(self, data: bytes) -> None:
        await self.write(struct.pack(">I", len(data)) + data)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Up to the empty one."""
        while True:
            (size,) = struct.unpack(">I", await self._exactly(4))
            if size > MAX_CHUNK_BYTES:
                raise ProtocolError(host=self.host, why="chunk")
            if not size:
                return
            yield await self._exactly(size)

    async def _line(self) -> bytes:
        while (end := self._unread.find(b"\n")) < 0:
            if len(self._unread) > MAX_LINE_BYTES:
                raise ProtocolError(host=self.host, why="line")
            await self._more()
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    async def _exactly(self, count: int) -> bytes:
        while len(self._unread) < count:
            await self._more()
        data = bytes(self._unread[:count])
        del self._unread[:count]
        return data

    async def _more(self) -> None:
        data = await self._timed(QUIET_S, self._channel.read())
        if not data:
            said = safe_line(self._channel.stderr_tail()[-400:], 400)
            raise LinkLost(host=self.host, why="courier ended", text=said or None)
        self.received_bytes += len(data)
        self._unread += data

    async def _timed(self, limit_s: float, work: Awaitable[Result]) -> Result:
        try:
            return await within(limit_s, work)
        except asyncio.TimeoutError:
            raise LinkLost(host=self.host, why="timeout") from None

    def _object(self, line: bytes) -> dict[str, object]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ProtocolError(host=self.host, why="answer")
        return value

    def _refusal(self, fields: Mapping[str, object]) -> Refusal:
        told = fields.get("facts")
        facts = told if isinstance(told, dict) else {}
        text = facts.get("text")
        number = facts.get("errno")
        return Refusal(
            safe_line(str(fields["error"]), 40),
            host=self.host,
            text=safe_line(text, 300) if isinstance(text, str) else None,
            errno=number if isinstance(number, int) and 0 < number < 200 else None,
        )
