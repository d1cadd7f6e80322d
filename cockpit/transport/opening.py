"""Opening the connections of one host, with a queue for each server and a few tries where one is too busy."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import asyncssh

from cockpit.errors import HostUnreachable
from cockpit.transport.attempt import Attempt, Context, Dropped, OpenedHop
from cockpit.transport.brief import brief
from cockpit.transport.dial import dial
from cockpit.transport.failures import Place
from cockpit.transport.in_time import in_time
from cockpit.transport.known_hosts import KnownKeys, known_keys
from cockpit.transport.own_thread import in_own_thread

T = TypeVar("T")


class Opener:
    """Opens the connections of one host. `known_hosts` is our own file."""

    def __init__(
        self,
        context: Context,
        known_hosts: Path,
        *,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._context = context
        self._known_hosts = known_hosts
        self._limits = context.limits
        self._uniform = uniform

    async def open(
        self,
        place: Place,
        tunnel: asyncssh.SSHClientConnection | None,
        on_lost: Callable[[Exception | None], None],
    ) -> OpenedHop:
        """A connection to `place`, logged in. Raises TransportError and its children."""
        known = await in_own_thread(known_keys, place.endpoint, self._known_hosts)
        attempt = Attempt(self._context, place, tunnel, known, on_lost)
        return await self._with_retries(place, tunnel, attempt.login)

    async def offered_key(
        self, place: Place, tunnel: asyncssh.SSHClientConnection | None, algorithms: list[str]
    ) -> asyncssh.SSHKey:
        """The key that the server shows, of the first of `algorithms` that it has. Nothing is sent but the question."""
        attempt = Attempt(self._context, place, tunnel, KnownKeys(), lambda _: None, algorithms)
        return await self._with_retries(place, tunnel, attempt.look)

    async def _with_retries(
        self,
        place: Place,
        tunnel: asyncssh.SSHClientConnection | None,
        attempt: Callable[[], Awaitable[T]],
    ) -> T:
        slots = self._context.shared.handshakes(place.server)
        for left in range(self._limits.retries, -1, -1):
            try:
                async with slots:
                    return await attempt()
            except Dropped as error:
                if left == 0:
                    raise await self._why_dropped(place, tunnel, error) from error
            tried = self._limits.retries - left + 1
            await asyncio.sleep(self._limits.retry_s * tried * self._uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    async def _why_dropped(
        self, place: Place, tunnel: asyncssh.SSHClientConnection | None, error: Dropped
    ) -> HostUnreachable:
        """Say hello once more by hand: what comes back tells a busy sshd from another kind of server."""
        greeting = b""
        if tunnel is None and place.endpoint.proxy_command is None:
            with suppress(OSError):
                greeting = await in_time(self._limits.greeting_s, self._greeting(place))
        text = brief(greeting.decode("utf-8", "replace").partition("\n")[0])
        busy = not greeting or greeting.startswith((b"SSH-", b"Exceeded", b"Not allowed"))
        why = "busy" if busy else "not_ssh"
        return HostUnreachable(why=why, text=text or brief(error), **place.facts)

    async def _greeting(self, place: Place) -> bytes:
        loop = asyncio.get_running_loop()
        opened = await dial(place.endpoint, self._limits.connect_s)
        try:
            await loop.sock_sendall(opened, b"SSH-2.0-cockpit\r\n\r\n")
            return await loop.sock_recv(opened, 256)
        finally:
            opened.close()
