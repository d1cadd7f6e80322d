"""Each way not to reach a host has its own error, code and reason; none of them hangs."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from dataclasses import replace

import asyncssh
import pytest

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.errors import HostUnreachable, LinkLost, ProtocolError, TransportError
from cockpit.transport.endpoints import Endpoint
from cockpit.transport.failures import Place, dial_failed, link_lost, no_sentinel
from tests.servers import Laptop, Rules, Server, free_port, misbehaving_server, tcp_server, until

KEY = asyncssh.generate_private_key("ssh-ed25519")
PLACE = Place(HostName("box"), Endpoint(name="gate", address="g.example", port=2, user="u"), hop=1)


async def why(laptop: Laptop, port: int) -> str:
    """What connecting to a port of this machine comes to."""
    with pytest.raises(TransportError) as caught:
        await asyncio.wait_for(laptop.transport(Server(port, "root", KEY)).connect(), 15)
    assert caught.value.facts["host"] == "box"
    assert caught.value.facts["port"] == port
    return f"{caught.value.code} {caught.value.facts['why']}"


async def test_nobody_listens(laptop: Laptop) -> None:
    assert await why(laptop, free_port()) == "unreachable refused"


async def test_a_server_that_says_nothing(laptop: Laptop) -> None:
    laptop.limits = replace(laptop.limits, greeting_s=0.3)
    async with tcp_server() as silent:
        assert await why(laptop, silent.port) == "unreachable no_banner"


async def test_a_server_that_greets_and_falls_silent(laptop: Laptop) -> None:
    laptop.limits = replace(laptop.limits, connect_s=0.5, login_s=0.7)
    async with tcp_server(b"SSH-2.0-OpenSSH_9.2p1\r\n") as silent:
        assert await why(laptop, silent.port) == "unreachable login_timeout"


async def test_a_login_that_takes_for_ever(laptop: Laptop) -> None:
    laptop.limits = replace(laptop.limits, connect_s=0.5, login_s=0.7)
    rules = Rules(authorized=[asyncssh.import_public_key(laptop.identity.public)])
    rules.gate.clear()
    async with misbehaving_server(rules) as server:
        laptop.trust(server)
        assert await why(laptop, server.port) == "unreachable login_timeout"
        rules.gate.set()


async def test_a_web_server(laptop: Laptop) -> None:
    answer = b"HTTP/1.1 400 Bad \x1b[2JRequest\r\n\r\n"
    async with tcp_server(reply=answer, hang_up=True) as web:
        assert await why(laptop, web.port) == "unreachable not_ssh"


async def test_a_mail_server_that_talks_first(laptop: Laptop) -> None:
    async with tcp_server(b"220 mail.example ESMTP\r\n", hang_up=True) as mail:
        assert await why(laptop, mail.port) == "unreachable not_ssh"


async def test_an_sshd_that_is_too_busy(laptop: Laptop) -> None:
    laptop.limits = replace(laptop.limits, retries=2, retry_s=0.01)
    async with tcp_server(b"Exceeded MaxStartups\r\n", hang_up=True) as busy:
        assert await why(laptop, busy.port) == "unreachable busy"
        assert busy.connections == 1 + 2 + 1, "once, two retries, and a look at the greeting"


async def test_a_very_old_ssh(laptop: Laptop) -> None:
    async with tcp_server(b"SSH-1.5-OpenSSH_2.9\r\n") as old:
        assert await why(laptop, old.port) == "unreachable not_ssh"


async def test_an_endless_banner(laptop: Laptop) -> None:
    laptop.limits = replace(laptop.limits, greeting_s=3.0)
    async with tcp_server(b"spam " * 1_000_000) as flood:
        assert (await why(laptop, flood.port)).startswith(("protocol", "unreachable"))


async def test_no_algorithm_in_common(laptop: Laptop) -> None:
    rules = Rules(open_door=True)
    async with misbehaving_server(rules, encryption_algs=["3des-cbc"]) as server:
        laptop.trust(server)
        assert await why(laptop, server.port) == "protocol no_common_algorithm"


async def test_a_name_that_nobody_knows(laptop: Laptop) -> None:
    with pytest.raises(HostUnreachable) as caught:
        await laptop.to(HostSpec(HostName("box"), host="no-such-host.invalid")).connect()
    assert caught.value.facts["why"] == "no_such_name"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EHOSTUNREACH, "No route to host"), "no_route"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "no_route"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "refused"),
        (TimeoutError(errno.ETIMEDOUT, "timed out"), "timeout"),
        (TimeoutError(), "timeout"),
        (socket.gaierror(-2, "Name or service not known"), "no_such_name"),
        (asyncssh.ChannelOpenError(2, "Connection refused"), "refused"),
        (asyncssh.ChannelOpenError(2, "Connection timed out"), "timeout"),
        (asyncssh.ChannelOpenError(2, "Name or service not known"), "no_such_name"),
        (asyncssh.ChannelOpenError(2, "No route to host"), "no_route"),
        (asyncssh.ChannelOpenError(1, "open failed"), "jump_refused"),
    ],
)
def test_a_failed_dial_is_named(error: Exception, expected: str) -> None:
    failure = dial_failed(error, PLACE)
    assert failure.facts["why"] == expected
    assert (failure.facts["hop"], failure.facts["hop_name"]) == (1, "gate")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, "closed"),
        (ConnectionResetError("reset"), "reset"),
        (asyncssh.ConnectionLost("Server not responding to keepalive"), "keepalive"),
        (asyncssh.ConnectionLost("Connection lost"), "reset"),
        (asyncssh.DisconnectError(11, "bye \x1b[31m now"), "ended_by_host"),
    ],
)
def test_a_loss_is_named(error: Exception | None, expected: str) -> None:
    loss = link_lost(error, HostName("box"))
    assert isinstance(loss, LinkLost)
    assert loss.facts["why"] == expected
    assert "\x1b" not in str(loss.facts["text"])


def test_the_words_of_a_shell_are_bounded_and_clean() -> None:
    error = no_sentinel(HostName("box"), "no_sentinel", b"\x1b]0;x\x07" + b"y" * 60_000 + b"\xff")
    assert isinstance(error, ProtocolError)
    assert len(str(error.facts["text"])) <= 200


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_a_cancelled_connect_leaves_nothing(laptop: Laptop) -> None:
    async with tcp_server() as silent:
        tasks, files = len(asyncio.all_tasks()), _open_files()
        several = [
            asyncio.ensure_future(laptop.transport(Server(silent.port, "root", KEY)).connect())
            for _ in range(8)
        ]
        await until(lambda: silent.connections == 8)
        for task in several:
            task.cancel()
        outcomes = await asyncio.gather(*several, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        await until(lambda: (len(asyncio.all_tasks()), _open_files()) == (tasks, files))


async def test_one_hanging_host_delays_no_other(laptop: Laptop) -> None:
    """The silent ones hold their own places only."""
    rules = Rules(authorized=[asyncssh.import_public_key(laptop.identity.public)])
    async with tcp_server() as silent, misbehaving_server(rules) as good:
        laptop.trust(good)
        hanging = [
            asyncio.ensure_future(laptop.transport(Server(silent.port, "root", KEY)).connect())
            for _ in range(20)
        ]
        transport = laptop.transport(good)
        await asyncio.wait_for(transport.connect(), 5)
        assert not any(task.done() for task in hanging)
        await transport.close()
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
