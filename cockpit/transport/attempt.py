"""One try at one server: dial, handshake with a known key, log in; each with a limit and a clear failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import asyncssh
from asyncssh.agent import SSHAgentClient

from cockpit.domain.models import HostName
from cockpit.errors import HostUnreachable, TransportError
from cockpit.transport.algorithms import accepted, host_key_order
from cockpit.transport.answers import Patience
from cockpit.transport.base import AskSecret
from cockpit.transport.brief import brief
from cockpit.transport.credentials import Credentials
from cockpit.transport.dial import ProxyProcess, dial
from cockpit.transport.failures import Place, dial_failed, login_failed
from cockpit.transport.known_hosts import KnownKeys
from cockpit.transport.login import Login
from cockpit.transport.questions import LoginRecord, Questions
from cockpit.transport.shared import Shared

AGENT_TIMEOUT_S = 3.0
CLEANUP_TIMEOUT_S = 2.0


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


@dataclass(frozen=True, slots=True)
class Context:
    """What all tries for one host have in common."""

    host: HostName
    shared: Shared
    ask: AskSecret | None
    clock: Callable[[], float]
    limits: Limits


class Dropped(Exception):
    """The server closed the connection before a login was tried: too many at once, or no SSH server."""


class Attempt:
    """One way to one server; each call of `login` or `look` is a fresh connection."""

    def __init__(
        self,
        context: Context,
        place: Place,
        tunnel: asyncssh.SSHClientConnection | None,
        known: KnownKeys,
        on_lost: Callable[[Exception | None], None],
        algorithms: list[str] | None = None,
    ) -> None:
        self._context = context
        self._place = place
        self._tunnel = tunnel
        self._known = known
        self._on_lost = on_lost
        self._algorithms = algorithms
        self._limits = context.limits

    async def login(self) -> OpenedHop:
        record = LoginRecord()
        endpoint = self._place.endpoint
        patience = Patience(self._limits.connect_s + self._limits.login_s, self._context.clock)
        shared = self._context.shared
        questions = Questions(self._context.host, self._context.ask, shared.answers, patience)
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
        patience = Patience(self._limits.connect_s + self._limits.login_s, self._context.clock)
        questions = Questions(self._context.host, None, self._context.shared.answers, patience)
        endpoint = self._place.endpoint
        credentials = Credentials(endpoint, self._context.shared.ring, questions, record)
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
        started = self._context.clock()
        try:
            if self._tunnel is not None:
                opened["tunnel"] = self._tunnel
            elif self._place.endpoint.proxy_command:
                proxy, opened["sock"] = await ProxyProcess.start(self._place.endpoint.proxy_command)
            else:
                opened["sock"] = await dial(self._place.endpoint, self._limits.connect_s)
        except (OSError, TimeoutError) as error:
            raise dial_failed(error, self._place, self._limits.connect_s) from error
        dial_s = self._context.clock() - started
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
                words = brief(await proxy.last_words())
                raise HostUnreachable(
                    why="proxy_command", text=words, **self._place.facts
                ) from error
            if login.may_retry and isinstance(error, (asyncssh.ConnectionLost, OSError)):
                raise Dropped(str(error)) from error
            raise login_failed(error, self._place, record, self._known, login.methods) from error
        except BaseException:
            await self._abandon(task)
            raise
        finally:
            if (sock := opened.get("sock")) is not None and not login.connected:
                sock.close()

    async def _abandon(self, task: asyncio.Future[Any]) -> None:
        """End a handshake that nobody waits for any more, also one that has just succeeded."""
        task.cancel()
        await asyncio.wait({task}, timeout=CLEANUP_TIMEOUT_S)
        if task.done() and not task.cancelled() and task.exception() is None:
            task.result().abort()

    async def _within(
        self, task: asyncio.Future[Any], login: Login, patience: Patience
    ) -> asyncssh.SSHClientConnection:
        """The connection, unless it stays silent or takes too long; a person's answer may take its time."""
        greet_by = self._context.clock() + self._limits.greeting_s
        while not task.done():
            left = patience.left_s()
            if not login.greeted:
                left = min(left, greet_by - self._context.clock())
            if left <= 0:
                raise self._too_late(login)
            await asyncio.wait({task}, timeout=left)
        connection: asyncssh.SSHClientConnection = task.result()
        return connection

    def _too_late(self, login: Login) -> HostUnreachable:
        why, limit_s = "no_banner", self._limits.greeting_s
        if login.greeted:
            why, limit_s = "login_timeout", self._limits.connect_s + self._limits.login_s
        elif self._tunnel is not None and not login.connected:
            why = "timeout"
        return HostUnreachable(why=why, timeout_s=limit_s, **self._place.facts)

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
