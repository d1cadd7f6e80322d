"""A host over SSH: one connection through all its jumps, three channels, ports on demand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import asyncssh

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.errors import (
    HostUnreachable,
    LinkLost,
    ProtocolError,
    ProxyWithoutExec,
    TransportError,
)
from cockpit.transport.attempt import Context, Limits
from cockpit.transport.base import AskSecret, Completed, LinkFacts
from cockpit.transport.brief import brief
from cockpit.transport.channel import CommandChannel, PortStream
from cockpit.transport.completed import complete
from cockpit.transport.endpoints import Endpoint, ResolvedHost
from cockpit.transport.failures import PROXIES_WITHOUT_EXEC, Place, dial_failed, link_lost
from cockpit.transport.in_time import in_time
from cockpit.transport.link import Link, link_facts, places
from cockpit.transport.opening import Opener
from cockpit.transport.own_thread import in_own_thread
from cockpit.transport.session import BOOTSTRAP, new_token, script_line
from cockpit.transport.shared import shared
from cockpit.transport.ssh_config import resolve

T = TypeVar("T")

CHANNELS = 3
"""sshd allows ten sessions, and some versions drop the connection over one too many."""
PORT_STREAMS = 4
OPEN_TIMEOUT_S = 30.0
"""From asking for a channel to the sentinel: rc files that start conda take seconds on a busy host."""


class SshTransport:
    """Implements HostTransport. May be connected again after a loss."""

    def __init__(
        self,
        spec: HostSpec,
        known_hosts: Path,
        hosts: Mapping[HostName, HostSpec] | None = None,
        *,
        ask_secret: AskSecret | None = None,
        ssh_config: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        limits: Limits | None = None,
    ) -> None:
        self._spec = spec
        self._known_hosts = known_hosts
        self._hosts = hosts or {}
        self._ask = ask_secret
        self._ssh_config = ssh_config
        self._clock = clock
        self._limits = limits or Limits()
        self._link: Link | None = None
        self._facts: LinkFacts | None = None
        self._connecting = asyncio.Lock()
        self._channels = asyncio.Semaphore(CHANNELS)
        self._lingering: set[CommandChannel] = set()
        self._port_streams = asyncio.Semaphore(PORT_STREAMS)

    @property
    def host(self) -> HostName:
        return self._spec.name

    @property
    def connected(self) -> bool:
        return self._link is not None and not self._link.lost.is_set()

    async def connect(self) -> LinkFacts:
        async with self._connecting:
            if self.connected and self._facts is not None:
                return self._facts
            started = self._clock()
            resolved = await self.resolved()
            link = await self.open_hops(resolved, len(resolved.chain))
            self._link = link
            self._facts = link_facts(resolved, link, self._clock() - started)
            return self._facts

    async def open_hops(self, resolved: ResolvedHost, count: int) -> Link:
        """Log in to the first `count` servers of the chain, each through the one before."""
        link = Link(self.host)
        opener = self.opener()
        try:
            for place in places(resolved)[:count]:
                tunnel = link.connection if link.hops else None
                link.hops.append(await opener.open(place, tunnel, link.on_lost))
        except BaseException:
            await link.close()
            raise
        if link.loss is not None and count:
            await link.close()
            raise link.loss
        return link

    def opener(self) -> Opener:
        context = Context(self.host, shared(), self._ask, self._clock, self._limits)
        return Opener(context, self._known_hosts)

    async def open(self, script: bytes) -> CommandChannel:
        self._live()
        await self._channels.acquire()
        token = new_token()
        channel = CommandChannel(self.host, token)
        channel.when_gone(lambda: self._give_back(channel))
        try:
            await _in_time(
                self._start(self._live(), channel, script_line(script, token)),
                OPEN_TIMEOUT_S,
                channel.late,
            )
        except BaseException:
            channel.abort()
            raise
        return channel

    async def run(
        self, script: bytes, *, stdin: bytes = b"", timeout_s: float = 30.0, limit: int = 1 << 20
    ) -> Completed:
        return await complete(self, script, stdin=stdin, timeout_s=timeout_s, limit=limit)

    async def open_tcp(
        self, port: int, host: str = "127.0.0.1", *, timeout_s: float = 10.0
    ) -> PortStream:
        self._live()
        await self._port_streams.acquire()
        stream = PortStream(self.host)
        stream.when_gone(self._port_streams.release)

        def late() -> TransportError:
            return HostUnreachable(why="timeout", host=self.host, port=port)

        try:
            await _in_time(self._reach(self._live(), stream, host, port), timeout_s, late)
        except BaseException:
            stream.abort()
            raise
        return stream

    async def forward(
        self, local_port: int, remote_port: int, remote_host: str = "127.0.0.1"
    ) -> int:
        link = self._live()
        try:
            listener = await link.connection.forward_local_port(
                "127.0.0.1", local_port, remote_host, remote_port
            )
        except OSError as error:
            text = brief(error.strerror or error)
            raise TransportError(
                "port_taken", host=self.host, port=local_port, text=text
            ) from error
        link.listeners.append(listener)
        return int(listener.get_port())

    def unforward(self, local_port: int) -> None:
        if self._link is None:
            return
        for listener in tuple(self._link.listeners):
            if listener.get_port() == local_port:
                listener.close()
                self._link.listeners.remove(listener)

    async def wait_closed(self) -> str:
        if self._link is None:
            return "not connected"
        await self._link.lost.wait()
        loss = self._link.loss
        return "closed" if loss is None else str(loss.facts.get("text") or loss.facts["why"])

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()

    async def resolved(self) -> ResolvedHost:
        """What would be dialled now. Raises HostUnreachable, ProxyWithoutExec."""
        resolved = await in_own_thread(
            resolve, self._spec, self._hosts, ssh_config=self._ssh_config
        )
        for place in places(resolved):
            if place.endpoint.address.lower() in PROXIES_WITHOUT_EXEC:
                raise ProxyWithoutExec(**place.facts)
        return resolved

    def _live(self) -> Link:
        if self._link is None:
            raise LinkLost(why="not_connected", host=self.host)
        if self._link.lost.is_set():
            raise self._link.loss or LinkLost(why="closed", host=self.host)
        return self._link

    async def _start(self, link: Link, channel: CommandChannel, line: bytes) -> None:
        try:
            await link.connection.create_session(
                lambda: channel, BOOTSTRAP, encoding=None, request_pty=False
            )
        except asyncssh.ChannelOpenError as error:
            raise self._refused(link, error) from error
        except (asyncssh.Error, OSError) as error:
            raise link.loss or link_lost(error, self.host) from error
        await channel.write(line)
        await channel.started()

    def _refused(self, link: Link, error: asyncssh.ChannelOpenError) -> TransportError:
        """No session: the link went, sshd has no room for another, or this server runs no commands.

        Where commands that we have left hold the sessions, only a new connection gets new ones.
        """
        text = brief(error.reason)
        if link.lost.is_set() or link.connection.is_closed():
            return link.loss or LinkLost(why="closed", host=self.host, text=text)
        if error.code == asyncssh.OPEN_REQUEST_SESSION_FAILED:
            return ProtocolError(why="exec_refused", host=self.host, text=text)
        lost = LinkLost(why="max_sessions", host=self.host, text=text)
        if any(channel.lingers for channel in self._lingering):
            link.give_up(lost)
        return lost

    def _give_back(self, channel: CommandChannel) -> None:
        self._lingering = {old for old in self._lingering if old.lingers}
        if channel.lingers:
            self._lingering.add(channel)
        self._channels.release()

    async def _reach(self, link: Link, stream: PortStream, host: str, port: int) -> None:
        try:
            await link.connection.create_connection(lambda: stream, host, port, encoding=None)
        except asyncssh.ChannelOpenError as error:
            if link.lost.is_set() or link.connection.is_closed():
                raise link.loss or LinkLost(why="closed", host=self.host) from error
            behind = Place(self.host, Endpoint(name=self.host, address=host, port=port, user=""))
            raise dial_failed(error, behind) from error
        except (asyncssh.Error, OSError) as error:
            raise link.loss or link_lost(error, self.host) from error


async def _in_time(work: Awaitable[T], timeout_s: float, late: Callable[[], Exception]) -> T:
    try:
        return await in_time(timeout_s, work)
    except TimeoutError:
        raise late() from None
