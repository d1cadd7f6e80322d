"""What has arrived and was not read yet: bounded, with back-pressure to whoever sends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

PAUSE_AT = 1 << 20
RESUME_AT = 1 << 18


class Inbox:
    """One writer (the wire) and one reader. `pause` and `resume` tell the wire to hold back."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def ended(self) -> bool:
        return self._ended

    def feed(self, data: bytes) -> None:
        if not data or self._ended:
            return
        self._chunks.append(data)
        self._size += len(data)
        if self._size >= PAUSE_AT and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """Nothing more comes. What has arrived can still be read; then `error`, or b"" without one."""
        if self._ended:
            return
        self._ended = True
        self._error = error
        self._wake()

    async def take(self, limit: int) -> bytes:
        """At least one byte, at most `limit`; b"" at the end."""
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            await self._arrival()
        return self._pop(limit)

    def discard(self) -> None:
        """Drop what nobody will read."""
        self._chunks.clear()
        self._size = 0

    async def _arrival(self) -> None:
        if self._waiter is not None:
            raise RuntimeError("a stream has one reader at a time")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _pop(self, limit: int) -> bytes:
        first = self._chunks.popleft()
        if len(first) > limit:
            self._chunks.appendleft(first[limit:])
            taken = first[:limit]
        elif self._chunks and len(first) + len(self._chunks[0]) <= limit:
            taken = self._join(first, limit)
        else:
            taken = first
        self._size -= len(taken)
        if self._paused and self._size <= RESUME_AT:
            self._paused = False
            self._resume()
        return taken

    def _join(self, first: bytes, limit: int) -> bytes:
        parts, size = [first], len(first)
        while self._chunks and size + len(self._chunks[0]) <= limit:
            part = self._chunks.popleft()
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Tail:
    """The last bytes of a stream that is kept for the record only. Counts all of them."""

    def __init__(self, limit: int = 64 * 1024) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        self._kept += data[-self._limit :]
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]

    def bytes(self) -> bytes:
        return bytes(self._kept[-self._limit :])
