"""One life of a connection to a host: its hops, its listeners, and why it ended."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncssh

from cockpit.domain.models import HostName
from cockpit.errors import LinkLost
from cockpit.transport.attempt import OpenedHop
from cockpit.transport.base import LinkFacts
from cockpit.transport.brief import brief
from cockpit.transport.endpoints import ResolvedHost
from cockpit.transport.failures import Place, key_type, link_lost


class Link:
    """From the first login to the loss. `lost` is set when it is over."""

    def __init__(self, host: HostName) -> None:
        self._host = host
        self.hops: list[OpenedHop] = []
        self.listeners: list[asyncssh.SSHListener] = []
        self.loss: LinkLost | None = None
        self.lost = asyncio.Event()

    @property
    def connection(self) -> asyncssh.SSHClientConnection:
        return self.hops[-1].connection

    def on_lost(self, error: Exception | None) -> None:
        """The first hop to go names the reason; the others follow it."""
        if self.loss is None:
            self.loss = link_lost(error, self._host)
        for listener in self.listeners:
            listener.close()
        self.lost.set()

    def give_up(self, loss: LinkLost) -> None:
        """End a connection that is of no more use; `close` cleans up after it."""
        self.loss = self.loss or loss
        self.connection.abort()

    async def close(self) -> None:
        if self.loss is None:
            self.loss = LinkLost(why="closed", host=self._host)
        for listener in self.listeners:
            listener.close()
        if self.hops:
            await self.hops[-1].close()
        await asyncio.gather(*(hop.close() for hop in self.hops[:-1]))
        self.lost.set()


def places(resolved: ResolvedHost) -> tuple[Place, ...]:
    """The servers of the chain, the jump hosts numbered from 1."""
    found: list[Place] = []
    for at, endpoint in enumerate(resolved.chain, start=1):
        hop = None if endpoint is resolved.target else at
        found.append(Place(resolved.name, endpoint, hop, resolved.chain[: at - 1]))
    return tuple(found)


def link_facts(resolved: ResolvedHost, link: Link, connect_s: float) -> LinkFacts:
    assert resolved.target is not None
    key = link.connection.get_server_host_key()
    return LinkFacts(
        address=resolved.target.address,
        port=resolved.target.port,
        user=resolved.target.user,
        key_type=key_type(key) if key else None,
        fingerprint=key.get_fingerprint("sha256") if key else None,
        server_version=brief(_version(link.connection)),
        via=tuple(hop.name for hop in resolved.jumps),
        connect_s=connect_s,
        latency_s=link.hops[0].dial_s if len(link.hops) == 1 else None,
    )


def _version(connection: Any) -> str:
    return str(connection.get_extra_info("server_version") or "")
