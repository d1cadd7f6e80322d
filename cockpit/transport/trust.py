"""A person's word for a host's key: look at what is offered, compare, write it down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.errors import (
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    ProtocolError,
    UsageError,
)
from cockpit.transport.algorithms import HOST_KEYS
from cockpit.transport.attempt import Limits
from cockpit.transport.base import AskSecret
from cockpit.transport.endpoints import ResolvedHost
from cockpit.transport.failures import Place, key_type
from cockpit.transport.known_hosts import KnownKeys, known_keys, record_key
from cockpit.transport.link import Link, places
from cockpit.transport.own_thread import in_own_thread
from cockpit.transport.ssh import SshTransport

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_FAMILIES = (HOST_KEYS, HOST_KEYS[1:4], HOST_KEYS[4:])
"""ED25519 first; the others in case the person compares with one of theirs."""


@dataclass(frozen=True, slots=True)
class KeyOffer:
    """The key that a server shows, and what was known of it before."""

    host: HostName
    hop: int | None
    name: str
    address: str
    port: int
    key_type: str
    fingerprint: str
    known: str | None
    """The fingerprint known so far: the same, another one, or None on first contact."""

    @property
    def is_known(self) -> bool:
        return self.known == self.fingerprint


class Truster:
    """Looks at the keys of one host and its jump hosts. `hop` counts jump hosts from 1; None is the host."""

    def __init__(
        self,
        spec: HostSpec,
        home: Home,
        hosts: Mapping[HostName, HostSpec] | None = None,
        *,
        ask_secret: AskSecret | None = None,
        ssh_config: Path | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._spec = spec
        self._file = home.known_hosts
        self._transport = SshTransport(
            spec,
            home.known_hosts,
            hosts,
            ask_secret=ask_secret,
            ssh_config=ssh_config,
            limits=limits,
        )

    async def look(self, hop: int | None = None) -> KeyOffer:
        """What is offered now; nothing is written. Raises TransportError, UsageError."""
        place, link = await self._reach(await self._resolved(), hop)
        try:
            key = await self._offered(place, link)
        finally:
            await link.close()
        return _offer(place, key, await self._known(place))

    async def trust(self, fingerprint: str, hop: int | None = None) -> KeyOffer:
        """Record the key, if it is this one: added on first contact, else in place of the known one.

        Without `hop`, a jump host on the way that shows this very key is the one that is meant.
        Raises HostKeyChanged (`why` = mismatch or revoked) and what connecting raises.
        """
        wanted = normal_fingerprint(fingerprint)
        resolved = await self._resolved()
        try:
            place, link = await self._reach(resolved, hop)
        except (HostKeyUnknown, HostKeyChanged) as error:
            at = error.facts.get("hop")
            if hop is not None or error.facts.get("fingerprint") != wanted:
                raise
            place, link = await self._reach(resolved, at if isinstance(at, int) else None)
        try:
            key = await self._matching(place, link, wanted)
        finally:
            await link.close()
        return await self._record(place, key)

    async def _resolved(self) -> ResolvedHost:
        resolved = await self._transport.resolved()
        if resolved.target is None:
            raise UsageError("host_local", host=self._spec.name)
        return resolved

    async def _reach(self, resolved: ResolvedHost, hop: int | None) -> tuple[Place, Link]:
        """The server that is meant, and the connection up to the one before it."""
        chain = places(resolved)
        if hop is not None and not 0 < hop < len(chain):
            raise UsageError(
                "no_such_hop", host=self._spec.name, hop=hop, hops=tuple(_names(chain))
            )
        index = len(chain) - 1 if hop is None else hop - 1
        return chain[index], await self._transport.open_hops(resolved, index)

    async def _offered(
        self, place: Place, link: Link, algorithms: tuple[str, ...] = HOST_KEYS
    ) -> asyncssh.SSHKey:
        tunnel = link.connection if link.hops else None
        return await self._transport.opener().offered_key(place, tunnel, list(algorithms))

    async def _matching(self, place: Place, link: Link, wanted: str) -> asyncssh.SSHKey:
        first: asyncssh.SSHKey | None = None
        for family in _FAMILIES:
            try:
                key = await self._offered(place, link, family)
            except (ProtocolError, HostUnreachable):
                # OpenSSH hangs up on a client that wants only keys that it does not have.
                if first is None:
                    raise
                continue
            if key.get_fingerprint("sha256") == wanted:
                return key
            first = first or key
        assert first is not None
        raise HostKeyChanged(
            why="mismatch",
            known=wanted,
            fingerprint=first.get_fingerprint("sha256"),
            key_type=key_type(first),
            **place.facts,
        )

    async def _record(self, place: Place, key: asyncssh.SSHKey) -> KeyOffer:
        before = await self._known(place)
        offer = _offer(place, key, before)
        if key in before.revoked:
            raise HostKeyChanged(
                why="revoked",
                known=None,
                fingerprint=offer.fingerprint,
                key_type=offer.key_type,
                **place.facts,
            )
        if key not in before.trusted:
            await in_own_thread(record_key, self._file, place.endpoint, key)
        return offer

    async def _known(self, place: Place) -> KnownKeys:
        return await in_own_thread(known_keys, place.endpoint, self._file)


async def trust_key(
    spec: HostSpec,
    home: Home,
    hosts: Mapping[HostName, HostSpec] | None,
    fingerprint: str,
    *,
    hop: int | None = None,
    ask_secret: AskSecret | None = None,
    ssh_config: Path | None = None,
) -> KeyOffer:
    """Connect, compare, record or replace. See Truster.trust."""
    truster = Truster(spec, home, hosts, ask_secret=ask_secret, ssh_config=ssh_config)
    return await truster.trust(fingerprint, hop)


def normal_fingerprint(text: str) -> str:
    """SHA256:… without padding, as ssh-keygen prints it. Raises UsageError."""
    bare = text.strip().rstrip("=")
    whole = bare if bare.startswith("SHA256:") else f"SHA256:{bare}"
    if not _FINGERPRINT.fullmatch(whole):
        raise UsageError("bad_fingerprint", text=text[:80])
    return whole


def _offer(place: Place, key: asyncssh.SSHKey, known: KnownKeys) -> KeyOffer:
    prints = known.fingerprints
    own = key.get_fingerprint("sha256")
    same = own if own in prints else None
    return KeyOffer(
        place.host,
        place.hop,
        place.endpoint.name,
        place.endpoint.address,
        place.endpoint.port,
        key_type(key),
        own,
        same or (prints[0] if prints else None),
    )


def _names(chain: tuple[Place, ...]) -> list[str]:
    return [place.endpoint.name for place in chain if place.hop is not None]
