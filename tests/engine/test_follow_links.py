"""A follower over a real sshd whose connections are cut again and again: the mirror is the host's file."""

from __future__ import annotations

import hashlib
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.config.paths import Home
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import RunSpec
from cockpit.engine.agent import RunAgent
from cockpit.engine.clock import SystemClock
from cockpit.engine.follow import RunFollower
from cockpit.engine.mirror import Mirror, mirror_path
from cockpit.errors import CockpitError, HostUnreachable, LinkLost
from tests.servers import Laptop, OpenSshServer, openssh

pytestmark = pytest.mark.sshd

RUN = RunId("flood-1")
CUTS = 10
FLOOD = """
import os, random
source = random.Random(7)
STATE = "\\r\\x1b[32m%3d%%|%s| %d/800 [00:%02d<00:10]\\x1b[0m"
BARS = "".join(STATE % (n / 8, "#" * (n // 20), n, n % 60) for n in range(800)).encode()
CHINESE = ("显存不足：试图分配 1.75 GiB。" * 20000 + "\\n").encode()
for turn in range(10):
    for piece in (BARS * 8, CHINESE, b"L" * 2_000_000 + b"\\n", source.randbytes(200_000)):
        while piece:
            piece = piece[os.write(1, piece):]
os.write(1, b"done")
"""
"""Bars without a newline, colours, Chinese, lines of 2 MB, random bytes, and an end without a newline."""


class Cutter:
    """Kills whatever serves the connections whenever so many more bytes have come."""

    def __init__(self, sshd: OpenSshServer, every: int) -> None:
        self.cuts = 0
        self._sshd = sshd
        self._every = every

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None:
        if self.cuts < CUTS and offset + len(data) > (self.cuts + 1) * self._every:
            self.cuts += 1
            self._sshd.kill_connections(signal.SIGKILL)

    def log_lines(self, lines: object) -> None: ...
    def log_gap(self, start: int, end: int, why: str) -> None:
        raise AssertionError(f"bytes {start} to {end} are {why}")

    def log_restarts(self) -> None:
        raise AssertionError("the log did not begin anew")

    def finding(self, finding: object) -> None: ...
    def progress(self, progress: object) -> None: ...
    def failed(self, error: CockpitError) -> None: ...


@asynccontextmanager
async def agent_on(laptop: Laptop, sshd: OpenSshServer) -> AsyncIterator[RunAgent]:
    transport = laptop.transport(sshd)
    await transport.connect()
    agent = RunAgent(transport)
    try:
        await agent.open()
        yield agent
    finally:
        await agent.close()
        await transport.close()


async def followed(laptop: Laptop, sshd: OpenSshServer, follower: RunFollower) -> RunRecord:
    """To the run's end, by one connection after the other."""
    for _ in range(3 * CUTS):
        try:
            async with agent_on(laptop, sshd) as agent:
                return await follower.follow(agent)
        except (LinkLost, HostUnreachable):
            continue
    raise AssertionError("it never came to an end")


async def test_ten_cuts_in_a_flood_of_everything_lose_and_repeat_no_byte(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path / "laptop")
    async with openssh(tmp_path / "sshd", authorized=[laptop.identity]) as sshd:
        laptop.trust(sshd)
        spec = RunSpec(RUN, "flood", "command", (sys.executable, "-c", FLOOD))
        async with agent_on(laptop, sshd) as agent:
            await agent.start(spec)
        mirror = Mirror(mirror_path(Home(tmp_path / "home"), HostName("box"), RUN))
        follower = RunFollower(RUN, mirror, SystemClock())
        cutter = Cutter(sshd, 3_000_000)
        follower.listen(cutter)
        record = await followed(laptop, sshd, follower)
        await follower.close()
        (on_host,) = (sshd.folder / "home").glob(f"**/v1/*/{RUN}/log")
        expected = on_host.read_bytes()
        assert (record.code, cutter.cuts) == (0, CUTS)
        assert len(expected) > 32_000_000
        assert (
            hashlib.sha256(mirror.path.read_bytes()).digest() == hashlib.sha256(expected).digest()
        )
        assert mirror.gaps == ()
