from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.errors import HostUnreachable, LinkLost
from cockpit.transport.base import HostTransport
from cockpit.transport.connector import make_transport
from cockpit.transport.local import LocalChannel
from tests.servers import free_port, tcp_server, until


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[HostTransport]:
    transport = make_transport(HostSpec(HostName("here"), local=True), Home(tmp_path))
    await transport.connect()
    yield transport
    await transport.close()


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


async def test_the_same_scripts_run_here(here: HostTransport) -> None:
    data = os.urandom(200_000)
    done = await here.run(b"echo err >&2; cat; exit 7", stdin=data)
    assert (done.exit_code, done.stdout, done.stderr) == (7, data, b"err\n")
    killed = await here.run(b"kill -TERM $$")
    assert (killed.exit_code, killed.signal) == (None, "TERM")


async def test_stdin_for_a_command_that_reads_none_is_dropped(here: HostTransport) -> None:
    assert (await here.run(b"exit 3", stdin=b"x" * 5_000_000)).exit_code == 3


async def test_an_endless_answer_is_cut_and_ended(here: HostTransport) -> None:
    done = await here.run(b"echo $$; exec cat /dev/zero", limit=100_000)
    assert (len(done.stdout), done.truncated, done.exit_code) == (100_000, True, None)
    assert not alive(int(done.stdout.split(b"\n")[0]))


async def test_a_command_that_takes_too_long_is_ended(here: HostTransport) -> None:
    with pytest.raises(LinkLost) as caught:
        await here.run(b"sleep 60", timeout_s=0.2)
    assert (caught.value.facts["why"], caught.value.facts["host"]) == ("timeout", "here")


async def test_close_ends_what_ignores_its_streams(here: HostTransport) -> None:
    channel = await here.open(b"trap '' HUP TERM PIPE; echo $$; while :; do sleep 0.1; done")
    pid = int(await channel.read())
    await asyncio.wait_for(channel.close(), 5)
    await until(lambda: not alive(pid))


async def test_close_lets_a_command_finish_when_its_input_ends(
    here: HostTransport, tmp_path: Path
) -> None:
    channel = await here.open(b"cat >%s; echo done >>%s" % ((bytes(tmp_path / "out"),) * 2))
    await channel.write(b"all of it\n")
    await channel.close()
    assert (tmp_path / "out").read_bytes() == b"all of it\ndone\n"


async def test_three_channels_at_once(here: HostTransport) -> None:
    held = [await here.open(b"cat") for _ in range(3)]
    fourth = asyncio.ensure_future(here.open(b"echo fourth"))
    done, _ = await asyncio.wait({fourth}, timeout=0.1)
    assert not done
    await held[0].close()
    assert await (await fourth).read() == b"fourth\n"


async def test_closing_ends_everything(here: HostTransport) -> None:
    channel = await here.open(b"echo $$; exec sleep 100")
    pid = int(await channel.read())
    waiting = asyncio.ensure_future(here.wait_closed())
    await here.close()
    assert await waiting == "closed"
    assert not here.connected
    await until(lambda: not alive(pid))
    with pytest.raises(LinkLost):
        await here.open(b"true")


async def test_ports_are_at_hand(here: HostTransport) -> None:
    async with tcp_server(greeting=b"hello") as web:
        stream = await here.open_tcp(web.port)
        assert await stream.read() == b"hello"
        await stream.close()
        assert await here.forward(0, web.port) == web.port
    with pytest.raises(HostUnreachable) as caught:
        await here.open_tcp(free_port())
    assert caught.value.facts["why"] == "refused"


def test_a_script_that_was_quicker_than_its_opening_gives_its_channel_back() -> None:
    channel = LocalChannel()
    gone: list[bool] = []
    channel.process_exited()
    channel.when_gone(lambda: gone.append(True))
    assert gone == [True]
