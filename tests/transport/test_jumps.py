"""Jump hosts: opened hop by hop, each with its own key, user and error; and the person's own ProxyCommand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.errors import (
    AuthenticationFailed,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LinkLost,
    UsageError,
)
from cockpit.transport.base import HostTransport
from cockpit.transport.trust import Truster
from tests.servers import Identity, Laptop, OpenSshServer, free_port, openssh, until

pytestmark = pytest.mark.sshd


@pytest.fixture
async def chain(tmp_path: Path, laptop: Laptop) -> AsyncIterator[list[OpenSshServer]]:
    """Three sshds on one address: outer and inner jump host, and the target. None is trusted yet."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(openssh(tmp_path / name, authorized=[laptop.identity]))
            for name in ("outer", "inner", "target")
        ]


def through(laptop: Laptop, chain: list[OpenSshServer], **changes: Any) -> HostSpec:
    outer, inner, target = chain
    hops = (laptop.spec(outer, "outer"), laptop.spec(inner, "inner"))
    return laptop.spec(target, hops=hops, **changes)


def truster(laptop: Laptop, spec: HostSpec) -> Truster:
    return Truster(spec, laptop.home, ssh_config=laptop.ssh_config, limits=laptop.limits)


async def test_two_hops_lead_to_the_host(
    laptop: Laptop, chain: list[OpenSshServer], closing: list[HostTransport]
) -> None:
    laptop.trust(*chain)
    transport = laptop.to(through(laptop, chain))
    closing.append(transport)
    facts = await transport.connect()
    assert facts.via == ("outer", "inner")
    assert facts.fingerprint == chain[2].fingerprint
    done = await transport.run(b"echo $SSH_CONNECTION", stdin=b"")
    assert done.stdout.split()[3] == str(chain[2].port).encode()
    assert [len(server.children()) for server in chain] == [1, 1, 1]


async def test_jumps_of_ssh_config_nest(
    laptop: Laptop, chain: list[OpenSshServer], closing: list[HostTransport]
) -> None:
    outer, inner, target = chain
    laptop.trust(*chain)
    common = f" User {target.user}\n IdentityFile {laptop.identity.file}\n"
    laptop.write_config(
        f"Host gpu\n HostName 127.0.0.1\n Port {target.port}\n ProxyJump in\n{common}"
        f"Host in\n HostName 127.0.0.1\n Port {inner.port}\n ProxyJump out\n{common}"
        f"Host out\n HostName 127.0.0.1\n Port {outer.port}\n{common}"
    )
    transport = laptop.to(HostSpec(HostName("box"), host="gpu"))
    closing.append(transport)
    facts = await transport.connect()
    assert (facts.via, facts.port) == (("out", "in"), target.port)


async def test_each_hop_is_checked_and_named(laptop: Laptop, chain: list[OpenSshServer]) -> None:
    spec = through(laptop, chain)
    for number, server in enumerate(chain, start=1):
        with pytest.raises(HostKeyUnknown) as caught:
            await laptop.to(spec).connect()
        facts = caught.value.facts
        assert facts["host"] == "box"
        assert facts["fingerprint"] == server.fingerprint
        if number < 3:
            assert (facts["hop"], facts["hop_name"]) == (number, ("outer", "inner")[number - 1])
        else:
            assert "hop" not in facts
        laptop.trust(server)
    transport = laptop.to(spec)
    await transport.connect()
    await transport.close()


async def test_trust_reaches_each_hop_by_its_number(
    laptop: Laptop, chain: list[OpenSshServer]
) -> None:
    spec = through(laptop, chain)
    outer, inner, target = chain
    with pytest.raises(HostKeyUnknown) as caught:
        await truster(laptop, spec).look(hop=2)
    assert caught.value.facts["hop"] == 1
    for server, hop in ((outer, 1), (inner, 2), (target, None)):
        offer = await truster(laptop, spec).trust(server.fingerprint, hop)
        assert (offer.hop, offer.port) == (hop, server.port)
    transport = laptop.to(spec)
    await transport.connect()
    await transport.close()
    for hop in (0, 3, 99):
        with pytest.raises(UsageError):
            await truster(laptop, spec).look(hop)


async def test_trust_without_a_number_finds_the_hop_that_shows_the_key(
    laptop: Laptop, chain: list[OpenSshServer]
) -> None:
    spec = through(laptop, chain)
    hops = [(await truster(laptop, spec).trust(server.fingerprint)).hop for server in chain]
    assert hops == [1, 2, None]


async def test_trust_of_the_host_does_not_pass_over_an_unknown_hop(
    laptop: Laptop, chain: list[OpenSshServer]
) -> None:
    with pytest.raises(HostKeyUnknown) as caught:
        await truster(laptop, through(laptop, chain)).trust(chain[2].fingerprint)
    assert caught.value.facts["hop"] == 1
    assert not laptop.home.known_hosts.exists()


async def test_a_changed_key_of_a_hop_is_named(laptop: Laptop, chain: list[OpenSshServer]) -> None:
    outer, inner, _ = chain
    laptop.trust(outer)
    wrong = f"[127.0.0.1]:{inner.port} {outer.public_key}\n"
    with laptop.home.known_hosts.open("a") as file:
        file.write(wrong)
    with pytest.raises(HostKeyChanged) as caught:
        await laptop.to(through(laptop, chain)).connect()
    assert (caught.value.facts["hop"], caught.value.facts["known"]) == (2, outer.fingerprint)


async def test_a_hop_that_does_not_let_us_in_is_named(
    laptop: Laptop, chain: list[OpenSshServer]
) -> None:
    laptop.trust(*chain)
    stranger = Identity.make(laptop.ssh / "stranger")
    outer, inner, target = chain
    hops = (laptop.spec(outer, "outer"), laptop.spec(inner, "inner", identity=str(stranger.file)))
    with pytest.raises(AuthenticationFailed) as caught:
        await laptop.to(laptop.spec(target, hops=hops)).connect()
    assert (caught.value.facts["hop"], caught.value.facts["files"]) == (2, (str(stranger.file),))


async def test_a_host_that_is_down_behind_a_jump(
    laptop: Laptop, chain: list[OpenSshServer]
) -> None:
    laptop.trust(*chain)
    spec = through(laptop, chain, port=free_port())
    with pytest.raises(HostUnreachable) as caught:
        await laptop.to(spec).connect()
    assert (caught.value.facts["why"], caught.value.facts.get("hop")) == ("refused", None)
    await nobody_on(*chain[:2])


async def nobody_on(*servers: OpenSshServer) -> None:
    """No connection is left open."""
    await until(lambda: not any(server.children() for server in servers))


async def test_a_jump_that_forwards_nothing(tmp_path: Path, laptop: Laptop) -> None:
    options = ["AllowTcpForwarding no"]
    async with openssh(tmp_path / "s", authorized=[laptop.identity], options=options) as closed:
        laptop.trust(closed)
        spec = laptop.spec(closed, hops=(laptop.spec(closed, "gate"),), port=free_port())
        with pytest.raises(HostUnreachable) as caught:
            await laptop.to(spec).connect()
    assert caught.value.facts["why"] == "jump_refused"
    assert (caught.value.facts["hop"], caught.value.facts["hop_name"]) == (1, "gate")


async def test_a_lost_jump_is_a_lost_link(
    laptop: Laptop, chain: list[OpenSshServer], closing: list[HostTransport]
) -> None:
    laptop.trust(*chain)
    transport = laptop.to(through(laptop, chain))
    closing.append(transport)
    await transport.connect()
    channel = await transport.open(b"cat")
    chain[0].kill_connections()
    await asyncio.wait_for(transport.wait_closed(), 5)
    with pytest.raises(LinkLost):
        await channel.read()
    assert not transport.connected


async def test_closing_closes_every_hop(laptop: Laptop, chain: list[OpenSshServer]) -> None:
    laptop.trust(*chain)
    transport = laptop.to(through(laptop, chain))
    await transport.connect()
    await transport.close()
    await nobody_on(*chain)


RELAY = """
import socket, sys, threading, os
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("relaying", file=sys.stderr)
def up():
    while data := os.read(0, 65536):
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := link.recv(65536):
    os.write(1, data)
"""


async def test_the_persons_own_proxy_command_is_used(
    tmp_path: Path, laptop: Laptop, chain: list[OpenSshServer], closing: list[HostTransport]
) -> None:
    (tmp_path / "relay.py").write_text(RELAY)
    server = chain[0]
    laptop.trust(server)
    laptop.write_config(f"Host *\n ProxyCommand {sys.executable} {tmp_path}/relay.py %h %p\n")
    transport = laptop.transport(server)
    closing.append(transport)
    await transport.connect()
    assert (await transport.run(b"cat", stdin=b"through")).stdout == b"through"
    await transport.close()
    await nobody_on(server)


async def test_a_proxy_command_that_fails_says_its_words(laptop: Laptop) -> None:
    laptop.write_config("Host *\n ProxyCommand sh -c 'echo no way to %%h >&2; exit 1' \n")
    with pytest.raises(HostUnreachable) as caught:
        await laptop.to(HostSpec(HostName("box"), host="203.0.113.5")).connect()
    assert (caught.value.facts["why"], caught.value.facts["text"]) == (
        "proxy_command",
        "no way to %h",
    )
