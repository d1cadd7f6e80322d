"""A whole command over any transport: send, collect within a limit, end it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from cockpit.domain.models import HostName
from cockpit.errors import LinkLost
from cockpit.transport.base import ByteChannel, Completed
from cockpit.transport.in_time import in_time


class Opens(Protocol):
    @property
    def host(self) -> HostName: ...

    async def open(self, script: bytes) -> ByteChannel: ...


async def complete(
    transport: Opens, script: bytes, *, stdin: bytes, timeout_s: float, limit: int
) -> Completed:
    """What HostTransport.run promises."""
    try:
        return await in_time(timeout_s, _complete(transport, script, stdin, limit))
    except TimeoutError:
        raise LinkLost(why="timeout", host=transport.host, timeout_s=timeout_s) from None


async def _complete(transport: Opens, script: bytes, stdin: bytes, limit: int) -> Completed:
    channel = await transport.open(script)
    sending = asyncio.create_task(_send(channel, stdin))
    try:
        stdout, truncated = await _collect(channel, limit)
        code = None if truncated else await channel.wait()
        return Completed(code, stdout, channel.stderr_tail(), channel.signal, truncated)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await channel.close()


async def _send(channel: ByteChannel, stdin: bytes) -> None:
    await channel.write(stdin)
    await channel.write_eof()


async def _collect(channel: ByteChannel, limit: int) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    size = 0
    while data := await channel.read():
        parts.append(data[: limit - size])
        size += len(data)
        if size > limit:
            return b"".join(parts), True
    return b"".join(parts), False
