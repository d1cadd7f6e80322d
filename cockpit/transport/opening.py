"""Opening one SSH connection: dial, handshake with a known key, log in; each with a limit and a clear failure."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import asyncssh
from asyncssh.agent import SSHAgentClient

from cockpit.domain.models import HostName
from cockpit.errors import HostUnreachable, TransportError
from cockpit.transport.algorithms import accepted, host_key_order
from cockpit.transport.answers import Patience
from cockpit.transport.base import AskSecret
from cockpit.transport.dial import ProxyProcess, dial
from cockpit.transport.failures import Place, brief, dial_failed, login_failed
from cockpit.transport.known_hosts import KnownKeys, known_keys
from cockpit.transport.login import Credentials, Login, LoginRecord, Questions
from cockpit.transport.own_thread import in_own_thread
from cockpit.transport.shared import Shared

T = TypeVar("T")

AGENT_TIMEOUT_S = 3.0
CLEANUP_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each step may take, and how often a dropped login is tried again."""

    connect_s: float = 10.0
    greeting_s: float = 10.0
    login_s: float = 30.0
    retries: int = 3
    retry_s: float = 0.3
    keepalive_s: float = 4.5
    """asyncssh gives up (count + 1) intervals after the last packet: 13.5 s, inside the promised 15."""
    keepalive_count: int = 2


@dataclass(slots=True)
class OpenedHop:
    """A connection that is logged in, with what has to be closed after it."""

    connection: asyncssh.SSHClientConnection
    dial_s: float
    proxy: ProxyProcess | None = None

    async def close(self) -> None:
        """Returns within seconds whatever the server does."""
        self.connection.close()
        closed = asyncio.ensure_future(self.connection.wait_closed())
        await asyncio.wait({closed}, timeout=1.0)
        if not closed.done():
            self.connection.abort()
            await asyncio.wait({closed}, timeout=CLEANUP_TIMEOUT_S)
            closed.cancel()
        if self.proxy is not None:
            await self.proxy.close()


class _Dropped(Exception):
    """The server closed the connection before it said who it is: too many logins at once, or no SSH server."""


class Opener:
    """Opens the connections of one host. `known_hosts` is our own file."""

    def __init__(
        self,
        host: HostName,
        known_hosts: Path,
        shared: Shared,
        *,
        ask: AskSecret | None,
        clock: Callable[[], float],
        limits: Limits,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._host = host
        self._known_hosts = known_hosts
        self._shared = shared
        self._ask = ask
        self._clock = clock
        self._limits = limits
        self._uniform = uniform

    async def open(
        self,
        place: Place,
        tunnel: asyncssh.SSHClientConnection | None,
        on_lost: Callable[[Exception | None], None],
    ) -> OpenedHop:
        """A connection to `place`, logged in. Raises TransportError and its children."""
        known = await in_own_thread(known_keys, place.endpoint, self._known_hosts)
        attempt = _Attempt(self, place, tunnel, known, on_lost)
        return await self._with_retries(place, tunnel, attempt.login)

    async def offered_key(
        self, place: Place, tunnel: asyncssh.SSHClientConnection | None, algorithms: list[str]
    ) -> asyncssh.SSHKey:
        """The key that the server shows, of the first of `algorithms` that it has. Nothing is sent but the question."""
        attempt = _Attempt(self, place, tunnel, KnownKeys(), lambda _: None, algorithms)
        return await self._with_retries(place, tunnel, attempt.look)

    async def _with_retries(
        self,
        place: Place,
        tunnel: asyncssh.SSHClientConnection | None,
        attempt: Callable[[], Awaitable[T]],
    ) -> T:
        via = "" if tunnel is None else f"{id(tunnel)}>"
        slots = self._shared.handshakes(f"{via}{place.endpoint.address}:{place.endpoint.port}")
        for left in range(self._limits.retries, -1, -1):
            try:
                async with slots:
                    return await attempt()
            except _Dropped as error:
                if left == 0:
                    raise await self._why_dropped(place, tunnel, error) from error
            tried = self._limits.retries - left + 1
            await asyncio.sleep(self._limits.retry_s * tried * self._uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    async def _why_dropped(
        self, place: Place, tunnel: asyncssh.SSHClientConnection | None, error: _Dropped
    ) -> HostUnreachable:
        """Say hello once more by hand: what comes back tells a busy sshd from another kind of server."""
        greeting = b""
        if tunnel is None and place.endpoint.proxy_command is None:
            with suppress(OSError, TimeoutError, asyncio.TimeoutError):
                greeting = await asyncio.wait_for(self._greeting(place), self._limits.greeting_s)
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


class _Attempt:
    """One way to one server; each call of `login` or `look` is a fresh connection."""

    def __init__(
        self,
        opener: Opener,
        place: Place,
        tunnel: asyncssh.SSHClientConnection | None,
        known: KnownKeys,
        on_lost: Callable[[Exception | None], None],
        algorithms: list[str] | None = None,
    ) -> None:
        self._opener = opener
        self._place = place
        self._tunnel = tunnel
        self._known = known
        self._on_lost = on_lost
        self._algorithms = algorithms
        self._limits = opener._limits

    async def login(self) -> OpenedHop:
        record = LoginRecord()
        endpoint = self._place.endpoint
        patience = Patience(self._limits.connect_s + self._limits.login_s, self._opener._clock)
        shared = self._opener._shared
        questions = Questions(self._opener._host, self._opener._ask, shared.answers, patience)
        credentials = Credentials(endpoint, shared.ring, questions, record)
        agent = SSHAgentClient(endpoint.agent) if endpoint.agent else None
        try:
            pairs = await credentials.pairs(agent, AGENT_TIMEOUT_S)
            login = Login(endpoint, credentials, questions, record)
            opened = await self._connect(login, record, patience, pairs)
            login.watch(self._on_lost)
            return opened
        finally:
            if agent is not None:
                agent.close()

    async def look(self) -> asyncssh.SSHKey:
        """The key that is offered. The handshake ends there: the key is refused whatever it is."""
        record = LoginRecord()
        patience = Patience(self._limits.connect_s + self._limits.login_s, self._opener._clock)
        questions = Questions(self._opener._host, None, self._opener._shared.answers, patience)
        endpoint = self._place.endpoint
        credentials = Credentials(endpoint, self._opener._shared.ring, questions, record)
        login = Login(endpoint, credentials, questions, record)
        try:
            opened = await self._connect(login, record, patience, [])
        except TransportError:
            if record.offered_key is None:
                raise
            return record.offered_key
        await opened.close()
        raise AssertionError("a key was accepted that nobody knows")

    async def _connect(
        self, login: Login, record: LoginRecord, patience: Patience, pairs: list[Any]
    ) -> OpenedHop:
        opened: dict[str, Any] = {}
        proxy: ProxyProcess | None = None
        started = self._opener._clock()
        try:
            if self._tunnel is not None:
                opened["tunnel"] = self._tunnel
            elif self._place.endpoint.proxy_command:
                proxy, opened["sock"] = await ProxyProcess.start(self._place.endpoint.proxy_command)
            else:
                opened["sock"] = await dial(self._place.endpoint, self._limits.connect_s)
        except (OSError, TimeoutError) as error:
            raise dial_failed(error, self._place) from error
        dial_s = self._opener._clock() - started
        try:
            connection = await self._handshake(login, record, patience, pairs, opened, proxy)
        except BaseException:
            if proxy is not None:
                await proxy.close()
            raise
        return OpenedHop(connection, dial_s, proxy)

    async def _handshake(
        self,
        login: Login,
        record: LoginRecord,
        patience: Patience,
        pairs: list[Any],
        opened: Mapping[str, Any],
        proxy: ProxyProcess | None,
    ) -> asyncssh.SSHClientConnection:
        options = self._options(login, pairs)
        task = asyncio.ensure_future(asyncssh.connect(**opened, **options))
        try:
            return await self._within(task, login, patience)
        except asyncssh.ChannelOpenError as error:
            raise dial_failed(error, self._place) from error
        except (asyncssh.Error, OSError) as error:
            if proxy is not None and not login.greeted:
                raise HostUnreachable(
                    why="proxy_command", text=brief(proxy.last_words()), **self._place.facts
                ) from error
            if not login.greeted and isinstance(error, (asyncssh.ConnectionLost, OSError)):
                raise _Dropped(str(error)) from error
            if login.may_retry and isinstance(error, (asyncssh.ConnectionLost, OSError)):
                raise _Dropped(str(error)) from error
            raise login_failed(error, self._place, record, self._known, login.methods) from error
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=CLEANUP_TIMEOUT_S)
            if (sock := opened.get("sock")) is not None and not login.connected:
                sock.close()

    async def _within(
        self, task: asyncio.Future[Any], login: Login, patience: Patience
    ) -> asyncssh.SSHClientConnection:
        """The connection, unless it stays silent or takes too long; a person's answer may take its time."""
        greet_by = self._opener._clock() + self._limits.greeting_s
        while not task.done():
            left = patience.left_s()
            if not login.greeted:
                left = min(left, greet_by - self._opener._clock())
            if left <= 0:
                raise self._too_late(login)
            await asyncio.wait({task}, timeout=left)
        connection: asyncssh.SSHClientConnection = task.result()
        return connection

    def _too_late(self, login: Login) -> HostUnreachable:
        why = "login_timeout" if login.greeted else "no_banner"
        if self._tunnel is not None and not login.connected:
            why = "timeout"
        return HostUnreachable(why=why, **self._place.facts)

    def _options(self, login: Login, pairs: list[Any]) -> dict[str, Any]:
        """Everything is said here: no config file, no default key, no default known_hosts is read by asyncssh."""
        endpoint = self._place.endpoint
        trusted = [key for key in self._known.trusted if key not in self._known.revoked]
        authorities = [key for key in self._known.authorities if key not in self._known.revoked]
        revoked = list(self._known.revoked) if authorities else []
        order = self._algorithms or host_key_order(trusted, bool(authorities), endpoint)
        options: dict[str, Any] = {
            "host": endpoint.address,
            "port": endpoint.port,
            "config": None,
            "client_factory": lambda: login,
            "known_hosts": lambda *_: (trusted, authorities, revoked),
            "host_key_alias": endpoint.key_name,
            "server_host_key_algs": order,
            "x509_trusted_certs": None,
            "username": endpoint.user,
            "client_keys": pairs or None,
            "client_host_keys": None,
            "agent_path": None,
            "agent_forwarding": False,
            "gss_host": None,
            "preferred_auth": endpoint.methods,
            "compression_algs": None,
            "keepalive_interval": self._limits.keepalive_s,
            "keepalive_count_max": self._limits.keepalive_count,
            "login_timeout": 0,
            "connect_timeout": None,
            "env": None,
            "send_env": None,
            "request_pty": False,
        }
        return options | accepted(endpoint)
