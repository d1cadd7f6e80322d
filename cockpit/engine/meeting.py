"""Where the ranks of a run meet: an address and a port of the first host that the others were seen to reach."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.engine.bounds import attempt, end, within
from cockpit.engine.programs import load_program
from cockpit.engine.shipping import start_program
from cockpit.errors import LaunchFailed, LinkLost, ProtocolError
from cockpit.transport.base import ByteChannel, HostTransport

ANSWER_S: Final = 30.0
REACH_S: Final = 150.0
"""Every address may take its time-out."""
CLOSE_S: Final = 3.0
MAX_ANSWER_BYTES: Final = 64 * 1024
MAX_ADDRESSES: Final = 16
_NAME_CHARS: Final = 15
"""Of a network interface."""


@dataclass(frozen=True, slots=True)
class Way:
    """What leads a host to the others; None where it cannot be told."""

    interface: str | None = None
    address: str | None = None
    """Its own, at this end."""


@dataclass(frozen=True, slots=True)
class Meeting:
    address: str
    port: int
    ways: tuple[Way, ...]
    """By rank."""


async def arrange(
    hosts: Sequence[HostSpec], transports: Mapping[HostName, HostTransport]
) -> Meeting:
    """Open a port on the first host and see that every other gets there. Raises LaunchFailed, TransportError.

    The port is closed again when this returns: what will listen there is the job.
    """
    nonce = secrets.token_hex(16)
    first, *others = hosts
    channel = await _started(first, transports, "listen", {"nonce": nonce})
    try:
        told = await _answer(channel, first.name, ANSWER_S)
        port, own = _port(told, first.name), _own_addresses(told)
        tried = _candidates(first, own)
        if not tried:
            raise LaunchFailed("gang_no_address", host=first.name)
        request = {"nonce": nonce, "port": port, "addresses": tried}
        reached = await _all_reached(others, transports, request, first.name)
        return _chosen(first, [host.name for host in others], port, tried, own, reached)
    finally:
        await attempt(CLOSE_S, channel.close())


async def check_free(
    first: HostSpec, transports: Mapping[HostName, HostTransport], meeting: Meeting
) -> None:
    """Code may have been on its way for minutes since the port was chosen. Raises LaunchFailed, TransportError."""
    request = {"nonce": secrets.token_hex(16), "port": meeting.port}
    channel = await _started(first, transports, "listen", request)
    try:
        await _answer(channel, first.name, ANSWER_S, meeting.port)
    finally:
        await attempt(CLOSE_S, channel.close())


async def _started(
    host: HostSpec, transports: Mapping[HostName, HostTransport], what: str, request: object
) -> ByteChannel:
    transport = transports.get(host.name)
    if transport is None:
        raise LinkLost(host=host.name, why="not_connected")
    program = load_program("meeting")
    started = await start_program(transport, program, (what,), python=host.python)
    await within(ANSWER_S, started.channel.write(json.dumps(request).encode() + b"\n"))
    return started.channel


async def _answer(
    channel: ByteChannel, host: HostName, limit_s: float, port: int | None = None
) -> dict[str, object]:
    """`port` is the one that was asked for."""

    async def line() -> bytes:
        data = b""
        while b"\n" not in data and len(data) <= MAX_ANSWER_BYTES:
            piece = await channel.read()
            if not piece:
                raise ProtocolError(host=host, why="answer")
            data += piece
        return data.partition(b"\n")[0]

    try:
        told = json.loads(await within(limit_s, line()))
    except (asyncio.TimeoutError, ValueError, RecursionError):
        raise ProtocolError(host=host, why="answer") from None
    if not isinstance(told, dict):
        raise ProtocolError(host=host, why="answer")
    if port is not None and told.get("taken") is True:
        raise LaunchFailed("gang_port_taken", host=host, port=port)
    if "error" in told:
        raise LaunchFailed(host=host, why="io", detail=safe_line(str(told["error"]), 200))
    return told


async def _all_reached(
    hosts: Sequence[HostSpec],
    transports: Mapping[HostName, HostTransport],
    request: Mapping[str, object],
    first: HostName,
) -> list[dict[str, Way]]:
    """In the order of the hosts. Raises what the first that failed raised; the others are not waited for."""
    tasks = [asyncio.ensure_future(_reached(host, transports, request, first)) for host in hosts]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await end(*tasks)


async def _reached(
    host: HostSpec,
    transports: Mapping[HostName, HostTransport],
    request: Mapping[str, object],
    first: HostName,
) -> dict[str, Way]:
    """Address -> the way, for those that it got through to. Raises LaunchFailed when there is none."""
    channel = await _started(host, transports, "reach", request)
    try:
        told = await _answer(channel, host.name, REACH_S)
    finally:
        await attempt(CLOSE_S, channel.close())
    tried = told.get("tried")
    ones = [one for one in tried if isinstance(one, dict)] if isinstance(tried, list) else []
    through = {str(one.get("address")): _way(one) for one in ones if "why" not in one}
    if not through:
        whys = [
            f"{safe_line(str(one.get('address')), 45)}: {safe_line(str(one.get('why')), 60)}"
            for one in ones[:4]
        ]
        port = request["port"]
        facts = {"host": host.name, "first": first, "port": port, "tried": "; ".join(whys)}
        raise LaunchFailed("gang_unreachable", **facts)  # type: ignore[arg-type]
    return through


def _chosen(
    first: HostSpec,
    others: Sequence[HostName],
    port: int,
    tried: Sequence[str],
    own: Mapping[str, str | None],
    reached: Sequence[Mapping[str, Way]],
) -> Meeting:
    """The first address that all of them got through to."""
    for address in tried:
        if all(address in through for through in reached):
            here = Way(own[address], address) if address in own else Way()
            return Meeting(address, port, (here, *(through[address] for through in reached)))
    names = ", ".join(others)
    raise LaunchFailed("gang_no_common_address", host=first.name, others=names, port=port)


def _port(told: Mapping[str, object], host: HostName) -> int:
    port = told.get("port")
    if not isinstance(port, int) or not 0 < port < 65536:
        raise ProtocolError(host=host, why="answer")
    return port


def _own_addresses(told: Mapping[str, object]) -> dict[str, str | None]:
    """Address -> interface, in the host's order; what is no address is left out."""
    listed = told.get("addresses")
    ones = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    found: dict[str, str | None] = {}
    for one in ones[:MAX_ADDRESSES]:
        try:
            found[str(ip_address(str(one.get("address"))))] = _interface(one)
        except ValueError:
            continue
    return found


def _candidates(first: HostSpec, own: Mapping[str, str | None]) -> list[str]:
    """Its own addresses, loopback last, with the one that we reach it by before that."""
    outer = [address for address in own if not ip_address(address).is_loopback]
    loops = [address for address in own if ip_address(address).is_loopback]
    ours = [first.host] if first.host is not None and first.host not in own else []
    return [*outer, *ours, *loops]


def _way(one: Mapping[str, object]) -> Way:
    try:
        own = str(ip_address(str(one.get("from"))))
    except ValueError:
        own = None
    return Way(_interface(one), own)


def _interface(one: Mapping[str, object]) -> str | None:
    name = one.get("interface")
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_CHARS:
        return None
    return name if all(char.isalnum() or char in "._-" for char in name) else None
