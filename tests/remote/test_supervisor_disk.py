"""Disks of a run: told before the job meets a full one, and nothing that we keep is lost on it. Needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import RestartPolicy
from cockpit.engine.agent_care import events_of
from tests.remote.probing import REMOTE
from tests.remote.supervised import Runs, poke, shell, until

RUN = RunId("a-1")
MIB = 1 << 20


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(REMOTE))
    names = ("supervisor_disk", "supervisor_trim", "supervisor_host")
    yield {name: __import__(name) for name in names}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An ext4 of 400 MiB in a sparse file: what is only reserved on it costs nothing."""
    image, mount = tmp_path / "image", tmp_path / "disk"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(400 * MIB)
    made = ["mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", str(image)]
    for command in (made, ["mount", "-o", "loop", str(image), str(mount)]):
        try:
            if subprocess.run(command, capture_output=True).returncode:
                pytest.skip("needs the right to mount a loop device")
        except FileNotFoundError:
            pytest.skip("needs mkfs.ext4")
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


def reserve(path: Path, mib: int) -> None:
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, mib * MIB)


def fill(folder: Path) -> None:
    """To the last block."""
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize // MIB
    reserve(folder / "most", max(1, free - 2))
    with (folder / "rest").open("wb", buffering=0) as file:
        for piece in (4096, 1024, 512):
            with suppress(OSError):
                while True:
                    file.write(b"\0" * piece)
    assert os.statvfs(folder).f_bavail == 0


async def names(runs: Runs) -> list[str]:
    return [event.name for event in await events_of(runs.agent, RUN)]


SLOW = "exec 5<> $HOME/go; echo $$ > $HOME/job; while read x <&5; do [ $x = end ] && exit 42; done"


async def test_a_disk_that_fills_is_told_before_it_is_full_and_no_code_is_lost(
    runs: Runs, disk: Path
) -> None:
    os.mkfifo(runs.home / "go")
    await runs.agent.start(shell(RUN, SLOW, run_root=str(disk)))
    await runs.pid_of("job")
    record = await runs.agent.status(RUN)
    assert not record.disk_low and await names(runs) == ["started"]
    reserve(disk / "checkpoint", 250)
    record = await runs.reaches(RUN, "running")
    await until(lambda: b"disk_low" in (runs.folder(RUN) / "events.jsonl").read_bytes())
    low = (await events_of(runs.agent, RUN))[-1]
    assert low.facts["path"] == str(runs.folder(RUN))[-100:]
    free = low.facts["free_mib"]
    assert isinstance(free, int) and 50 < free < 200
    fill(disk)
    poke(runs.home / "go", "end\n")
    record = await runs.ended(RUN)
    assert (record.code, record.reason) == (42, "exited")
    assert await names(runs) == ["started", "disk_low", "ended"]
    with pytest.raises(OSError, match="No space"):
        (disk / "more").write_bytes(b"x" * 4096)


async def test_room_that_comes_back_is_told(runs: Runs, disk: Path) -> None:
    os.mkfifo(runs.home / "go")
    await runs.agent.start(shell(RUN, SLOW, cwd=str(disk)))
    await runs.pid_of("job")
    reserve(disk / "checkpoint", 300)
    events = runs.folder(RUN) / "events.jsonl"
    await until(lambda: b"disk_low" in events.read_bytes())
    (disk / "checkpoint").unlink()
    await until(lambda: b"disk_ok" in events.read_bytes())
    poke(runs.home / "go", "end\n")
    record = await runs.ended(RUN)
    assert record.code == 42 and not record.disk_low


async def test_a_run_is_started_again_and_stopped_on_a_full_disk(runs: Runs, disk: Path) -> None:
    os.mkfifo(runs.home / "go")
    script = "exec 5<> $HOME/go; echo $$ > $HOME/job$COCKPIT_ATTEMPT; read x <&5; exit 7"
    policy = RestartPolicy("on-failure", 3, 0.0)
    await runs.agent.start(shell(RUN, script, run_root=str(disk), restart=policy))
    await runs.pid_of("job1")
    fill(disk)
    poke(runs.home / "go")
    await runs.pid_of("job2")
    outcome = await runs.agent.stop(RUN)
    assert (outcome.left, outcome.record.attempt, outcome.record.by) == ((), 2, "cockpit")


async def test_few_inodes_are_told_too(runs: Runs, tmp_path: Path) -> None:
    mount = tmp_path / "many"
    mount.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=4g,nr_inodes=1000", "none", str(mount)]
    if subprocess.run(made, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        os.mkfifo(runs.home / "go")
        await runs.agent.start(shell(RUN, SLOW, cwd=str(mount)))
        await runs.pid_of("job")
        for number in range(985):
            (mount / str(number)).touch()
        await until(lambda: b"disk_low" in (runs.folder(RUN) / "events.jsonl").read_bytes())
        (low,) = [e for e in await events_of(runs.agent, RUN) if e.name == "disk_low"]
        inodes = low.facts["inodes_free_pct"]
        assert isinstance(inodes, float) and inodes < 2.0
        await runs.agent.stop(RUN)
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.parametrize(
    ("free_mib", "total_mib", "inodes_pct", "low"),
    [
        (199, 1000, 50.0, True),
        (201, 1000, 50.0, False),
        (1000, 100_000, None, True),
        (2100, 100_000, None, False),
        (19_000, 10_000_000, None, True),
        (150_000, 10_000_000, None, False),
        (0, 0, None, False),
        (5000, 10_000, 1.9, True),
        (5000, 10_000, 2.1, False),
    ],
)
def test_what_counts_as_hardly_any_room(
    modules: dict[str, ModuleType],
    free_mib: int,
    total_mib: int,
    inodes_pct: float | None,
    low: bool,
) -> None:
    """A fiftieth of ten terabytes is room enough for any checkpoint."""
    room = {"free_mib": free_mib, "total_mib": total_mib, "inodes_free_pct": inodes_pct}
    assert (modules["supervisor_disk"].lowness(room, 1.0) > 1.0) is low


def test_one_look_serves_two_folders_of_one_disk(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    paths = [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "missing"), "/proc"]
    assert modules["supervisor_disk"].one_a_disk(paths) == [str(tmp_path), "/proc"]


@pytest.mark.parametrize(
    ("spec", "free_mib", "limit_mib"),
    [
        ({"log_max_mib": 512, "log_share_pct": 5.0}, 100_000, 512),
        ({"log_max_mib": 512, "log_share_pct": 5.0}, 2000, 100),
        ({"log_max_mib": 512, "log_share_pct": 5.0}, 100, 16),
        ({"log_max_mib": 8, "log_share_pct": 5.0}, 100, 8),
        ({"log_max_mib": 512, "log_share_pct": None}, 100, 512),
        ({"log_max_mib": None, "log_share_pct": 5.0}, 100, 0),
    ],
)
def test_a_log_takes_its_share_of_the_disk_at_most(
    modules: dict[str, ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    spec: dict[str, Any],
    free_mib: int,
    limit_mib: int,
) -> None:
    trim = modules["supervisor_trim"]
    monkeypatch.setattr(trim, "disk_space", lambda _path: {"free_mib": free_mib})
    assert trim.limit_bytes("/", spec) == limit_mib * MIB


async def test_a_log_that_cannot_be_trimmed_is_told_once_and_left_whole(
    runs: Runs, tmp_path: Path
) -> None:
    """A file system without holes, such as an old NFS; here a ramfs."""
    mount = tmp_path / "ram"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "ramfs", "none", mount], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        os.mkfifo(runs.home / "go")
        script = "exec 5<> $HOME/go; yes 0123456789abcde | head -c 900000; read x <&5; " * 3
        await runs.agent.start(shell(RUN, script, run_root=str(mount), log_max_mib=1))
        events = runs.folder_in(mount, RUN) / "events.jsonl"
        await until(lambda: b"log_not_trimmed" in events.read_bytes())
        for _more in range(3):
            poke(runs.home / "go")
        record = await runs.ended(RUN)
        assert (record.log_hole, record.log_bytes) == (None, 2_700_000)
        assert (await names(runs)).count("log_not_trimmed") == 1
        assert b"\0" not in (events.parent / "log").read_bytes()
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


async def test_the_start_of_a_long_log_is_kept_with_its_end(runs: Runs) -> None:
    """The first 4 MiB hold versions and configuration; what is kept in all is the limit."""
    os.mkfifo(runs.home / "go")
    script = "exec 5<> $HOME/go; seq 10000000 15999999; read x <&5"
    await runs.agent.start(shell(RUN, script, log_max_mib=20))
    log = runs.folder(RUN) / "log"
    await until(lambda: log.stat().st_size == 9 * 6_000_000)
    await until(lambda: log.stat().st_blocks * 512 < 22 * MIB, "the middle is given back")
    poke(runs.home / "go")
    record = await runs.ended(RUN)
    assert record.log_hole is not None and record.log_hole[0] == 4 * MIB
    data = log.read_bytes()
    assert (
        data[: 4 * MIB] == b"".join(b"%d\n" % n for n in range(10_000_000, 10_466_034))[: 4 * MIB]
    )
    assert data[-9 * 1000 :] == b"".join(b"%d\n" % n for n in range(15_999_000, 16_000_000))
    assert data[record.log_hole[1] :].count(b"\0") == 0
