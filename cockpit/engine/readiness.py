"""Is a server up? Its paths are asked through the SSH connection, without a port on this computer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from cockpit.domain.readiness import Readiness
from cockpit.domain.text import safe_line
from cockpit.engine.bounds import attempt, within
from cockpit.errors import CockpitError
from cockpit.transport.base import HostTransport, TcpStream

POLL_S = 1.0
POLL_SLOW_S = 5.0
SLOW_AFTER_S = 120.0
ASK_LIMIT_S = 5.0
_HEAD_BYTES = 4096
_BODY_BYTES = 256 * 1024
_NAME_CHARS = 200
READY_NOTE = "ready"
"""A run's note on its host, for a computer that did not start it."""


async def http_ok(transport: HostTransport, port: int, path: str) -> bool:
    """True when GET `path` on the host's loopback answers 2xx. False for everything else, silence included."""
    try:
        return await within(ASK_LIMIT_S, _status_is_2xx(transport, port, path))
    except (CockpitError, asyncio.TimeoutError):
        return False


async def model_name(transport: HostTransport, port: int) -> str | None:
    """What an OpenAI-like server calls its first model: the name to ask it by. None when it does not say."""
    try:
        answer = await within(ASK_LIMIT_S, _asked(transport, port, "/v1/models", _whole))
    except (CockpitError, asyncio.TimeoutError):
        return None
    body = answer.partition(b"\r\n\r\n")[2]
    start, end = body.find(b"{"), body.rfind(b"}")
    try:
        models = json.loads(body[start : end + 1])["data"]
        name = models[0]["id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return safe_line(name)[:_NAME_CHARS] if isinstance(name, str) else None


async def _status_is_2xx(transport: HostTransport, port: int, path: str) -> bool:
    words = (await _asked(transport, port, path, _first_line)).split(b" ", 2)
    return len(words) >= 2 and words[0].startswith(b"HTTP/1.") and words[1][:1] == b"2"


async def _asked(
    transport: HostTransport,
    port: int,
    path: str,
    read: Callable[[TcpStream], Awaitable[bytes]],
) -> bytes:
    stream = await transport.open_tcp(port, timeout_s=ASK_LIMIT_S)
    try:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        await stream.write(request.encode("ascii", "replace"))
        return await read(stream)
    finally:
        await attempt(ASK_LIMIT_S, stream.close())


async def _first_line(stream: TcpStream) -> bytes:
    head = b""
    while b"\r\n" not in head and len(head) < _HEAD_BYTES:
        piece = await stream.read(_HEAD_BYTES)
        if not piece:
            break
        head += piece
    return head.split(b"\r\n", 1)[0]


async def _whole(stream: TcpStream) -> bytes:
    """To the end, which is near: such a list is short."""
    answer = b""
    while len(answer) < _BODY_BYTES and (piece := await stream.read(_HEAD_BYTES)):
        answer += piece
    return answer


async def wait_until_ready(
    transport: HostTransport, ready: Readiness, now_s: Callable[[], float]
) -> bool:
    """Wait until every path answers, in order; False when the link ends first."""
    started_s = now_s()
    for path in ready.http if ready.port is not None else ():
        while not await http_ok(transport, ready.port or 0, path):
            if not transport.connected:
                return False
            slow = now_s() - started_s > SLOW_AFTER_S
            await asyncio.sleep(POLL_SLOW_S if slow else POLL_S)
    return True


def encode_ready(ready: Readiness) -> str:
    """As it is kept in a run's notes, so that any computer can tell when the run is ready."""
    return json.dumps({"port": ready.port, "http": list(ready.http)})


def decode_ready(text: str) -> Readiness | None:
    """From a run's notes. A host may have changed them: no pattern is taken from there, and what has not
    the right form is no readiness.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    port, paths = value.get("port"), value.get("http")
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536:
        port = None
    if not isinstance(paths, list):
        paths = []
    kept = tuple(
        p for p in paths[:8] if isinstance(p, str) and p.startswith("/") and p.isprintable()
    )
    return Readiness(port=port, http=kept)
