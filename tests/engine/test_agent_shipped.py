"""The supervisor as it reaches a host: shipped over a transport, run, cut off, and found again."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_spec import RunSpec
from cockpit.engine.agent import Data, End, RunAgent
from cockpit.errors import LinkLost
from cockpit.transport.local import LocalTransport
from tests.remote.supervised import poke
from tests.servers import Laptop, OpenSshServer, openssh, until

RUN = RunId("a-1")
NOISE = "echo noise; printf '\\0\\033[2J'; case $- in *i*) ;; *) return ;; esac\n"


def job(script: str) -> RunSpec:
    return RunSpec(run=RUN, profile="p", kind="command", argv=("sh", "-c", script))


async def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    transport = LocalTransport(HostName("here"))
    await transport.connect()
    agent = RunAgent(transport)
    hello = await agent.open()
    assert hello.root is not None and hello.root.startswith(str(tmp_path))
    await agent.start(job("echo hello; exit 42"))
    frames = [frame async for frame in agent.tail(RUN)]
    assert frames[0] == Data(0, b"hello\n")
    assert isinstance(frames[-1], End) and frames[-1].record.code == 42
    await agent.close()
    await transport.close()


@pytest.fixture
async def sshd(tmp_path: Path) -> AsyncIterator[tuple[OpenSshServer, Laptop]]:
    laptop = Laptop(tmp_path / "laptop")
    server = openssh(
        tmp_path / "sshd",
        shell="/bin/bash",
        rc={".bashrc": NOISE},
        authorized=[laptop.identity],
    )
    async with server as running:
        laptop.trust(running)
        yield running, laptop


@pytest.mark.sshd
async def test_a_run_outlives_every_connection_and_its_log_loses_no_byte(
    sshd: tuple[OpenSshServer, Laptop],
) -> None:
    server, laptop = sshd
    home = server.folder / "home"
    script = (
        "trap 'echo hung up; exit 1' HUP; exec 5<> $HOME/go; echo $$ > $HOME/job;"
        " head -c 3000000 /dev/urandom; read x <&5; head -c 3000000 /dev/urandom; exit 42"
    )
    os.mkfifo(home / "go")
    mirror, cuts, ended = bytearray(), 0, None
    for _connection in range(30):
        if ended is not None:
            break
        transport = laptop.transport(server)
        try:
            await transport.connect()
            agent = RunAgent(transport)
            await agent.open()
            reply = await agent.start(job(script))
            assert reply.existed == (cuts > 0)
            async for frame in agent.tail(RUN, len(mirror)):
                if isinstance(frame, Data):
                    assert frame.offset == len(mirror)
                    mirror += frame.data
                elif isinstance(frame, End):
                    ended = frame.record
                if len(mirror) > 500_000 * (cuts + 1) and cuts < 4:
                    server.kill_connections(signal.SIGKILL)
                if len(mirror) == 3_000_000:
                    poke(home / "go")
        except LinkLost:
            cuts += 1
        await transport.close()
    assert 1 <= cuts <= 4 and ended is not None and ended.code == 42
    (log,) = home.glob("**/v1/*/a-1/log")
    assert len(mirror) == 6_000_000
    assert hashlib.sha256(mirror).digest() == hashlib.sha256(log.read_bytes()).digest()
    await until(lambda: not Path(f"/proc/{int((home / 'job').read_text())}").exists())
