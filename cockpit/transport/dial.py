"""A socket to a server: over TCP by the first address that answers, or through the person's own ProxyCommand."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from cockpit.transport.endpoints import Endpoint
from cockpit.transport.in_time import in_time
from cockpit.transport.inbox import Tail
from cockpit.transport.own_thread import in_own_thread

STAGGER_S = 0.25
LAST_WORDS_S = 0.5
AddressInfo: TypeAlias = tuple[Any, Any, int, str, Any]


async def dial(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    """A connected, non-blocking socket. Raises TimeoutError, socket.gaierror, OSError."""
    return await in_time(timeout_s, _dial(endpoint), socket.socket.close)


async def _dial(endpoint: Endpoint) -> socket.socket:
    found = await _addresses(endpoint)
    pending: set[asyncio.Task[socket.socket]] = set()
    errors: list[OSError] = []
    try:
        for info in found:
            pending.add(asyncio.create_task(_connect(info, endpoint.bind_address)))
            last = info is found[-1]
            while pending:
                done, pending = await asyncio.wait(
                    pending,
                    timeout=None if last else STAGGER_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                won = _first_connected(done, errors)
                if won is not None:
                    return won
                if not last:
                    break
    finally:
        await _drop(pending)
    raise errors[0]


def _first_connected(
    done: set[asyncio.Task[socket.socket]], errors: list[OSError]
) -> socket.socket | None:
    won: socket.socket | None = None
    for task in done:
        error = task.exception()
        if isinstance(error, OSError):
            errors.append(error)
        elif error is not None:
            raise error
        elif won is None:
            won = task.result()
        else:
            task.result().close()
    return won


async def _drop(pending: set[asyncio.Task[socket.socket]]) -> None:
    for task in pending:
        task.cancel()
    for outcome in await asyncio.gather(*pending, return_exceptions=True):
        if isinstance(outcome, socket.socket):
            outcome.close()


async def _addresses(endpoint: Endpoint) -> Sequence[AddressInfo]:
    flags = 0
    with suppress(ValueError):
        ipaddress.ip_address(endpoint.address.partition("%")[0])
        flags = socket.AI_NUMERICHOST
    where = (endpoint.address, endpoint.port, endpoint.family, socket.SOCK_STREAM, 0, flags)
    found = socket.getaddrinfo(*where) if flags else await in_own_thread(socket.getaddrinfo, *where)
    return _interleaved(found)


def _interleaved(found: Sequence[AddressInfo]) -> Sequence[AddressInfo]:
    """IPv6 and IPv4 by turns, each in the resolver's order, so that one dead family costs a quarter second."""
    first = found[0][0]
    own = [info for info in found if info[0] == first]
    other = [info for info in found if info[0] != first]
    mixed: list[AddressInfo] = []
    for at in range(max(len(own), len(other))):
        mixed += own[at : at + 1] + other[at : at + 1]
    return mixed


async def _connect(info: AddressInfo, bind_address: str | None) -> socket.socket:
    family, kind, protocol, _, address = info
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setblocking(False)
        if bind_address:
            opened.bind((bind_address, 0))
        await asyncio.get_running_loop().sock_connect(opened, address)
    except BaseException:
        opened.close()
        raise
    return opened


class ProxyProcess:
    """A ProxyCommand of the person's own ssh_config, in a group of its own so that it can be ended whole."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr = Tail(4096)
        self._reading = asyncio.create_task(self._read_stderr())

    @classmethod
    async def start(cls, command: str) -> tuple[ProxyProcess, socket.socket]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                f"exec {command}",
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(process), ours

    async def last_words(self) -> str:
        """The last line of its stderr, once it has said everything."""
        await asyncio.wait({self._reading}, timeout=LAST_WORDS_S)
        lines = self._stderr.bytes().decode("utf-8", "replace").splitlines()
        return next((line for line in reversed(lines) if line.strip()), "")

    async def close(self) -> None:
        """End it, and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._reading.cancel()
        await asyncio.wait({self._reading, asyncio.create_task(self._process.wait())}, timeout=2)

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._stderr.feed(data)
