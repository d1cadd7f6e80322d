"""Channels, ports and losses of one connection, against a real sshd."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.errors import HostUnreachable, LinkLost, ProtocolError, TransportError
from cockpit.transport.attempt import Limits
from cockpit.transport.base import HostTransport
from cockpit.transport.channel import CommandChannel
from tests.servers import Laptop, OpenSshServer, openssh, tcp_server, until

pytestmark = pytest.mark.sshd


@pytest.fixture
async def sshd(tmp_path: Path, laptop: Laptop) -> AsyncIterator[OpenSshServer]:
    async with openssh(tmp_path / "sshd", authorized=[laptop.identity]) as server:
        laptop.trust(server)
        yield server


@pytest.fixture
async def box(laptop: Laptop, sshd: OpenSshServer, closing: list[HostTransport]) -> HostTransport:
    """A connected transport to the sshd."""
    transport = laptop.transport(sshd)
    closing.append(transport)
    await transport.connect()
    return transport


async def test_connecting_tells_what_was_learnt(box: HostTransport, sshd: OpenSshServer) -> None:
    facts = await box.connect()
    assert (facts.address, facts.port, facts.user) == ("127.0.0.1", sshd.port, sshd.user)
    assert (facts.fingerprint, facts.key_type) == (sshd.fingerprint, "ED25519")
    assert facts.server_version.startswith("SSH-2.0-OpenSSH")
    assert box.connected


async def test_every_byte_passes_both_ways(box: HostTransport) -> None:
    """Text mode would close the whole connection at the first byte that is not UTF-8."""
    data = os.urandom(300_000) + bytes(range(256))
    done = await box.run(b"cat", stdin=data, limit=1 << 20)
    assert done.stdout == data
    assert (await box.run(b"echo still here")).stdout == b"still here\n"


async def test_exit_codes_and_signals_are_told_apart(box: HostTransport) -> None:
    assert (await box.run(b"exit 42")).exit_code == 42
    killed = await box.run(b"kill -KILL $$")
    assert (killed.exit_code, killed.signal) == (None, "KILL")
    assert (await box.run(b"no-such-command-here")).exit_code == 127


async def test_stdin_for_a_command_that_reads_none_is_dropped(box: HostTransport) -> None:
    assert (await box.run(b"exit 3", stdin=b"x" * 5_000_000)).exit_code == 3


async def test_stderr_is_kept_to_its_tail(box: HostTransport) -> None:
    done = await box.run(b"head -c 300000 /dev/zero | tr '\\0' x >&2; printf END >&2")
    assert len(done.stderr) == 64 * 1024
    assert done.stderr.endswith(b"xEND")


async def test_a_command_that_floods_stderr_is_ended(
    box: HostTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cockpit.transport.channel.STDERR_LIMIT", 1 << 20)
    channel = await box.open(b"echo $$; exec cat /dev/zero >&2")
    pid = int(await channel.read())
    with pytest.raises(ProtocolError):
        await channel.read()
    await until(lambda: not Path(f"/proc/{pid}/cmdline").exists())
    assert (await box.run(b"echo ok")).stdout == b"ok\n"


async def test_an_endless_answer_is_cut_and_ended(box: HostTransport) -> None:
    done = await box.run(b"cat /dev/zero", limit=100_000)
    assert (len(done.stdout), done.truncated, done.exit_code) == (100_000, True, None)
    assert (await box.run(b"echo ok")).stdout == b"ok\n"


async def test_a_host_that_floods_is_held_back(box: HostTransport) -> None:
    """Nothing is read: what is kept here stays within the window, and the writer on the host stands still."""
    channel = await box.open(b"echo $$; exec cat /dev/zero")
    pid = int((await channel.read()).split(b"\n")[0])
    written = 0
    while (now := _written(pid)) != written or now == 0:
        written = now
        await asyncio.sleep(0.2)
    assert written < 16 << 20
    await channel.close()


def _written(pid: int) -> int:
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    return 0


async def test_a_command_that_takes_too_long_is_left(box: HostTransport) -> None:
    with pytest.raises(LinkLost) as caught:
        await box.run(b"sleep 60", timeout_s=0.5)
    assert caught.value.facts["why"] == "timeout"
    assert box.connected


async def test_three_channels_at_once_and_a_fourth_waits(box: HostTransport) -> None:
    held = [await box.open(b"cat") for _ in range(3)]
    fourth = asyncio.ensure_future(box.open(b"echo fourth"))
    done, _ = await asyncio.wait({fourth}, timeout=0.3)
    assert not done
    await held[0].close()
    assert await (await fourth).read() == b"fourth\n"
    await asyncio.gather(*(channel.close() for channel in held[1:]))
    outs = await asyncio.gather(*(box.run(b"echo %d" % n) for n in range(30)))
    assert [out.stdout for out in outs] == [b"%d\n" % n for n in range(30)]


async def test_a_cancelled_command_gives_its_channel_back(box: HostTransport) -> None:
    for _ in range(5):
        task = asyncio.ensure_future(box.run(b"exec sleep 0.3", stdin=b"x" * 9_000_000))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await box.run(b"echo ok", timeout_s=10)).stdout == b"ok\n"


async def test_close_returns_though_the_command_goes_on(box: HostTransport) -> None:
    channel = await box.open(b"trap '' HUP TERM PIPE; echo $$; while :; do sleep 0.2; done")
    pid = int(await channel.read())
    await asyncio.wait_for(channel.close(), 5)
    assert (await box.run(b"echo ok")).stdout == b"ok\n"
    os.kill(pid, signal.SIGKILL)


async def test_close_does_not_wait_for_a_command_that_reads_nothing(box: HostTransport) -> None:
    channel = await box.open(b"echo $$; exec sleep 1000")
    pid = int(await channel.read())
    writing = asyncio.ensure_future(channel.write(b"x" * 8_000_000))
    await asyncio.sleep(0.1)
    assert not writing.done()
    await asyncio.wait_for(channel.close(), 5)
    await asyncio.wait_for(writing, 5)
    os.kill(pid, signal.SIGKILL)


async def test_what_was_written_before_close_arrives(box: HostTransport, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    channel = await box.open(b"cat > %s; mv %s %s.done" % ((bytes(tmp_path / "got"),) * 3))
    await channel.write(data)
    await channel.close()
    await until((tmp_path / "got.done").exists)
    assert (tmp_path / "got.done").read_bytes() == data


async def test_the_reader_may_be_cancelled_and_go_on(box: HostTransport) -> None:
    channel = await box.open(b"read x; echo $x")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(channel.read(), 0.05)
    await channel.write(b"late\n")
    assert await channel.read() == b"late\n"
    assert (await channel.read(), await channel.wait()) == (b"", 0)
    await channel.close()


async def test_a_killed_sshd_is_a_lost_link(box: HostTransport, sshd: OpenSshServer) -> None:
    channel = await box.open(b"echo up; cat")
    assert await channel.read() == b"up\n"
    reading = asyncio.ensure_future(channel.read())
    sshd.kill_connections()
    reason = await asyncio.wait_for(box.wait_closed(), 5)
    with pytest.raises(LinkLost) as caught:
        await reading
    assert caught.value.facts["host"] == "box"
    assert reason
    assert not box.connected
    assert await channel.wait() is None
    for call in (channel.write(b"x"), box.open(b"true"), box.open_tcp(1), box.forward(0, 1)):
        with pytest.raises(LinkLost):
            await call
    await channel.close()


async def test_a_lost_transport_connects_again(box: HostTransport, sshd: OpenSshServer) -> None:
    sshd.kill_connections()
    await asyncio.wait_for(box.wait_closed(), 5)
    await box.connect()
    assert (await box.run(b"echo back")).stdout == b"back\n"


async def test_a_stopped_server_is_noticed(
    laptop: Laptop, sshd: OpenSshServer, closing: list[HostTransport]
) -> None:
    laptop.limits = replace(laptop.limits, keepalive_s=0.3)
    transport = laptop.transport(sshd)
    closing.append(transport)
    await transport.connect()
    sshd.kill_connections(signal.SIGSTOP)
    try:
        reason = await asyncio.wait_for(transport.wait_closed(), 10)
    finally:
        sshd.kill_connections(signal.SIGCONT)
    assert "keepalive" in reason


def test_a_vanished_host_is_lost_within_the_promised_time() -> None:
    """asyncssh gives up one interval after the last keepalive went unanswered."""
    limits = Limits()
    assert limits.keepalive_s * (limits.keepalive_count + 1) < 15


async def test_closing_a_transport_to_a_stopped_server_returns(
    laptop: Laptop, sshd: OpenSshServer
) -> None:
    transport = laptop.transport(sshd)
    await transport.connect()
    channel = await transport.open(b"cat")
    sshd.kill_connections(signal.SIGSTOP)
    try:
        await asyncio.wait_for(channel.close(), 8)
        await asyncio.wait_for(transport.close(), 8)
    finally:
        sshd.kill_connections(signal.SIGCONT)
    assert not transport.connected


async def test_a_long_stream_survives_new_session_keys(tmp_path: Path, laptop: Laptop) -> None:
    async with openssh(
        tmp_path / "rekeying", authorized=[laptop.identity], options=["RekeyLimit 1M"]
    ) as server:
        laptop.trust(server)
        transport = laptop.transport(server)
        await transport.connect()
        done = await transport.run(b"head -c 20000000 /dev/zero; cat | wc -c", limit=1 << 25)
        assert (len(done.stdout), done.stdout[-2:]) == (20_000_002, b"0\n")
        await transport.close()


async def test_too_many_sessions_are_told(tmp_path: Path, laptop: Laptop) -> None:
    async with openssh(
        tmp_path / "narrow", authorized=[laptop.identity], options=["MaxSessions 1"]
    ) as server:
        laptop.trust(server)
        transport = laptop.transport(server)
        await transport.connect()
        held = await transport.open(b"cat")
        with pytest.raises(LinkLost) as caught:
            await transport.open(b"true")
        assert caught.value.facts["why"] == "max_sessions"
        assert transport.connected
        await held.close()
        await transport.close()


async def test_commands_that_never_end_do_not_use_the_connection_up(
    tmp_path: Path, laptop: Laptop
) -> None:
    """sshd keeps a session for a command that goes on after its channel was closed."""
    async with openssh(
        tmp_path / "narrow", authorized=[laptop.identity], options=["MaxSessions 2"]
    ) as server:
        laptop.trust(server)
        transport = laptop.transport(server)
        await transport.connect()
        for _ in range(2):
            channel = await transport.open(b"echo up; exec sleep 1000")
            assert await channel.read() == b"up\n"
            await channel.close()
        with pytest.raises(LinkLost) as caught:
            await transport.open(b"true")
        assert caught.value.facts["why"] == "max_sessions"
        await asyncio.wait_for(transport.wait_closed(), 5)
        await transport.connect()
        assert (await transport.run(b"echo ok")).stdout == b"ok\n"
        await transport.close()


async def test_a_port_of_the_host_is_read_through_the_connection(box: HostTransport) -> None:
    async with tcp_server(reply=b"HTTP/1.0 200 OK\r\n\r\nmetrics", hang_up=True) as web:
        stream = await box.open_tcp(web.port)
        await stream.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        parts = []
        while data := await stream.read():
            parts.append(data)
        await stream.close()
    assert b"".join(parts).endswith(b"metrics")
    assert web.received.startswith(b"GET /metrics")


async def test_a_port_where_nothing_listens_is_refused(box: HostTransport) -> None:
    with pytest.raises(HostUnreachable) as caught:
        await box.open_tcp(1)
    assert (caught.value.facts["why"], caught.value.facts["port"]) == ("refused", 1)
    assert (await box.run(b"echo ok")).stdout == b"ok\n"


async def test_a_forwarded_port_lives_as_long_as_the_connection(
    box: HostTransport, sshd: OpenSshServer
) -> None:
    async with tcp_server(greeting=b"hello") as web:
        port = await box.forward(0, web.port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.readexactly(5) == b"hello"
        sshd.kill_connections()
        await asyncio.wait_for(box.wait_closed(), 5)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_a_local_port_in_use_is_named(box: HostTransport) -> None:
    async with tcp_server() as taken:
        with pytest.raises(TransportError) as caught:
            await box.forward(taken.port, 8000)
    assert (caught.value.code, caught.value.facts["port"]) == ("port_taken", taken.port)


async def test_a_port_that_was_given_up_can_be_forwarded_again(box: HostTransport) -> None:
    async with tcp_server(greeting=b"hi") as web:
        port = await box.forward(0, web.port)
        box.unforward(port)
        assert await box.forward(port, web.port) == port


async def test_the_agent_is_not_forwarded_and_no_terminal_is_asked_for(box: HostTransport) -> None:
    done = await box.run(b'echo "[${SSH_AUTH_SOCK-}][${SSH_TTY-}]"; tty')
    assert done.stdout.splitlines()[0] == b"[][]"


async def test_rc_files_that_hang_run_out_of_time(
    tmp_path: Path, laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cockpit.transport.ssh.OPEN_TIMEOUT_S", 0.5)
    rc = {".bashrc": "echo loading conda; sleep 30\n"}
    async with openssh(
        tmp_path / "slow", shell="/bin/bash", rc=rc, authorized=[laptop.identity]
    ) as server:
        laptop.trust(server)
        transport = laptop.transport(server)
        await transport.connect()
        with pytest.raises(TransportError) as caught:
            await transport.open(b"true")
        assert (caught.value.code, caught.value.facts["text"]) == ("protocol", "loading conda")
        await transport.close()


def test_a_command_channel_needs_a_loop() -> None:
    with pytest.raises(RuntimeError):
        CommandChannel(host="h", token=b"t")  # type: ignore[arg-type]
