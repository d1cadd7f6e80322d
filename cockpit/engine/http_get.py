"""One GET of a path on a host's loopback, through the SSH connection: bounded, in time, redirects not followed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from cockpit.engine.bounds import attempt, within
from cockpit.transport.base import HostTransport, TcpStream

HEAD_BYTES: Final = 16 * 1024
PIECE_BYTES: Final = 64 * 1024
CLOSE_LIMIT_S: Final = 5.0
_CHUNK_HEAD_BYTES: Final = 256


class NotHttp(ValueError):
    """What answers there does not speak HTTP, or ended before it had answered."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    is_whole: bool = True
    """False when there was more than was asked for; the rest was not read."""

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300 and self.is_whole


async def http_get(
    transport: HostTransport, port: int, path: str, *, limit_bytes: int, limit_s: float
) -> Answer:
    """Raises NotHttp, asyncio.TimeoutError, LinkLost, and HostUnreachable when nothing listens."""
    return await within(limit_s, _get(transport, port, path, limit_bytes, limit_s))


async def _get(
    transport: HostTransport, port: int, path: str, limit_bytes: int, limit_s: float
) -> Answer:
    stream = await transport.open_tcp(port, timeout_s=limit_s)
    try:
        request = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "Accept: text/plain, application/json, */*;q=0.1\r\nConnection: close\r\n\r\n"
        )
        await stream.write(request.encode("ascii", "replace"))
        return await _answer(stream, limit_bytes)
    finally:
        await attempt(CLOSE_LIMIT_S, stream.close())


async def _answer(stream: TcpStream, limit_bytes: int) -> Answer:
    head, rest = await _head(stream)
    first, _, lines = head.partition(b"\r\n")
    status = _status(first)
    headers = _headers(lines)
    if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
        body: _Body = _Chunked()
    else:
        length = headers.get(b"content-length", b"")
        body = _Plain(int(length) if length.isdigit() and len(length) < 16 else None)
    if status in (204, 304):
        return Answer(status)
    body.feed(rest)
    while not body.is_done:
        if len(body.data) > limit_bytes:
            return Answer(status, bytes(body.data[:limit_bytes]), is_whole=False)
        piece = await stream.read(PIECE_BYTES)
        if not piece:
            return Answer(status, bytes(body.data), is_whole=body.may_end)
        body.feed(piece)
    is_whole = len(body.data) <= limit_bytes
    return Answer(status, bytes(body.data[:limit_bytes]), is_whole)


async def _head(stream: TcpStream) -> tuple[bytes, bytes]:
    told = b""
    while b"\r\n\r\n" not in told:
        if len(told) > HEAD_BYTES or (len(told) >= 5 and not told.startswith(b"HTTP/")):
            raise NotHttp("no HTTP head")
        piece = await stream.read(PIECE_BYTES)
        if not piece:
            raise NotHttp("ended within its head")
        told += piece
    head, _, rest = told.partition(b"\r\n\r\n")
    return head, rest


def _status(line: bytes) -> int:
    words = line.split(b" ", 2)
    is_http = len(words) >= 2 and words[0].startswith(b"HTTP/1.")
    if not is_http or len(words[1]) != 3 or not words[1].isdigit():
        raise NotHttp("no status")
    return int(words[1])


def _headers(lines: bytes) -> dict[bytes, bytes]:
    pairs = (line.partition(b":") for line in lines.split(b"\r\n"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


@dataclass(slots=True)
class _Body:
    data: bytearray = field(default_factory=bytearray)
    is_done: bool = False
    may_end: bool = False
    """The connection's end is the body's end."""

    def feed(self, piece: bytes) -> None:
        self.data += piece


class _Plain(_Body):
    __slots__ = ("_length",)

    def __init__(self, length: int | None) -> None:
        super().__init__(is_done=length == 0, may_end=length is None)
        self._length = length

    def feed(self, piece: bytes) -> None:
        self.data += piece
        if self._length is not None and len(self.data) >= self._length:
            del self.data[self._length :]
            self.is_done = True


class _Chunked(_Body):
    __slots__ = ("_left", "_skip", "_waiting")

    def __init__(self) -> None:
        super().__init__()
        self._waiting = bytearray()
        self._left = self._skip = 0

    def feed(self, piece: bytes) -> None:
        self._waiting += piece
        while not self.is_done and self._step():
            pass

    def _step(self) -> bool:
        """Take one part of what waits; False when more must come first."""
        waiting = self._waiting
        if self._left:
            taken = min(self._left, len(waiting))
            self.data += waiting[:taken]
            del waiting[:taken]
            self._left -= taken
            self._skip = 0 if self._left else 2
            return self._left == 0
        if len(waiting) < self._skip:
            return False
        end = waiting.find(b"\r\n", self._skip)
        if end < 0:
            if len(waiting) > _CHUNK_HEAD_BYTES:
                raise NotHttp("no size of a chunk")
            return False
        size = bytes(waiting[self._skip : end]).partition(b";")[0].strip()
        del waiting[: end + 2]
        self._skip = 0
        self._left = _size(size)
        self.is_done = self._left == 0
        return True


def _size(digits: bytes) -> int:
    if not digits or len(digits) > 8 or digits.strip(b"0123456789abcdefABCDEF"):
        raise NotHttp("no size of a chunk")
    return int(digits, 16)
