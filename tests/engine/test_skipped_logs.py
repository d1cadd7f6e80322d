"""A screen keeps up with a flood by skipping; what was skipped is loaded later, and its failures are found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.config.paths import Home
from cockpit.domain.incidents import Finding
from cockpit.domain.lines import Line
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import Progress
from cockpit.engine.clock import SystemClock
from cockpit.engine.follow import RunFollower
from cockpit.engine.followers import Followers, FollowParts
from cockpit.engine.mirror import mirror_path
from cockpit.errors import CockpitError
from tests.agents import PipeTransport
from tests.remote.supervised import Runs, assert_nothing_left, shell, until

HOST, RUN = HostName("box"), RunId("flood-1")
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."
FLOOD = f"head -c 6000000 /dev/zero | tr '\\0' x; echo; echo '{OOM}'; seq 1 400000; echo end"
"""8.7 MB."""
KEEP_UP = 200_000


class Told:
    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.gaps: list[tuple[int, int, str]] = []

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None: ...
    def log_lines(self, lines: list[Line]) -> None: ...
    def log_gap(self, start: int, end: int, why: str) -> None:
        self.gaps.append((start, end, why))

    def log_restarts(self) -> None: ...
    def finding(self, finding: Finding) -> None:
        self.findings.append(finding)

    def progress(self, progress: Progress) -> None: ...
    def failed(self, error: CockpitError) -> None:
        raise error


@pytest.fixture
async def runs(tmp_path: Path) -> AsyncIterator[Runs]:
    transport = PipeTransport(tmp_path)
    agent = transport.agent()
    await agent.open()
    bench = Runs(transport, agent)
    yield bench
    await bench.agent.close()
    await assert_nothing_left(bench)


def followers(
    home: Path, told: Told, room: int | None = None, keep_up: int | None = KEEP_UP
) -> Followers:
    ended: list[RunRecord] = []

    async def find_masker(host: HostName, run: RunId) -> Masker:
        return Masker()

    parts = FollowParts(
        Home(home),
        SystemClock(),
        lambda _host, _follower: told,
        find_masker,
        lambda _host, record: ended.append(record),
        room,
        keep_up,
    )
    return Followers(HOST, parts)


async def settled(follower: RunFollower) -> None:
    await until(follower.ended.is_set, "the log's end")


async def test_what_was_skipped_is_loaded_when_all_is_quiet(runs: Runs, tmp_path: Path) -> None:
    await runs.agent.start(shell(RUN, FLOOD))
    await runs.ended(RUN)
    expected = (runs.folder(RUN) / "log").read_bytes()
    told = Told()
    of_host = followers(tmp_path / "laptop", told)
    try:
        of_host.use(runs.agent)
        follower = of_host.watch(RUN)
        await settled(follower)
        assert told.gaps == [(0, len(expected) - KEEP_UP // 2, "skipped")]
        shown = [follower.window.line(place).text for place in range(len(follower.window))]
        assert "skipped to keep up" in shown[0] and shown[-1] == "end"
        of_host.unwatch(follower)
        await until(lambda: not len(of_host), "nobody looks, and the copy is whole")
    finally:
        await of_host.close()
    path = mirror_path(Home(tmp_path / "laptop"), HOST, RUN)
    assert path.read_bytes() == expected
    (finding,) = told.findings
    assert (finding.family, finding.offset, finding.line) == ("gpu_oom", 6_000_001, None)


async def test_a_copy_without_room_stays_with_its_gap(runs: Runs, tmp_path: Path) -> None:
    await runs.agent.start(shell(RUN, FLOOD))
    await runs.ended(RUN)
    told = Told()
    of_host = followers(tmp_path / "laptop", told, 400_000)
    try:
        of_host.use(runs.agent)
        follower = of_host.watch(RUN)
        await settled(follower)
        assert follower.mirror.gaps and follower.mirror.full is None
        of_host.unwatch(follower)
        assert len(of_host) == 0
    finally:
        await of_host.close()


async def test_who_waits_for_every_byte_skips_none(runs: Runs, tmp_path: Path) -> None:
    await runs.agent.start(shell(RUN, FLOOD))
    await runs.ended(RUN)
    told = Told()
    of_host = followers(tmp_path / "laptop", told, keep_up=None)
    try:
        of_host.use(runs.agent)
        follower = of_host.watch(RUN)
        await settled(follower)
        assert told.gaps == [] and follower.mirror.gaps == ()
        assert follower.mirror.size == (runs.folder(RUN) / "log").stat().st_size
    finally:
        await of_host.close()
