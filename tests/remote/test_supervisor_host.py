"""What a host may do to a run: a full disk, a restart, the kernel's OOM killer. Needs root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.errors import LaunchFailed
from tests.agents import SUPERVISOR, PipeTransport
from tests.remote.supervised import Runs, assert_nothing_left, poke, shell, spec, until

RUN = RunId("a-1")


def wrapper(folder: Path, script: str) -> str:
    """A Python that does something first; skips the test where that is not allowed."""
    path = folder / "python"
    path.write_text(f'#!/bin/bash\nset -e\n{script} {sys.executable} "$@"\n')
    path.chmod(0o700)
    if subprocess.run([path, "-c", "pass"], capture_output=True).returncode:
        pytest.skip("not allowed here")
    return str(path)


async def opened(home: Path, python: str) -> Runs:
    transport = PipeTransport(home, python)
    runs = Runs(transport, transport.agent())
    await runs.agent.open()
    return runs


async def closed(runs: Runs) -> None:
    await runs.agent.close()
    await assert_nothing_left(runs)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", disk]).returncode:
        pytest.skip("needs the right to mount")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


async def test_a_full_disk_loses_no_exit_code(runs: Runs, small_disk: Path) -> None:
    script = "exec 5<> $HOME/go; cat /dev/zero > fill; echo $$ > $HOME/full; read x <&5; exit 42"
    os.mkfifo(runs.home / "go")
    await runs.agent.start(shell(RUN, script, run_root=str(small_disk), cwd=str(small_disk)))
    await runs.pid_of("full")
    assert os.statvfs(small_disk).f_bavail == 0
    poke(runs.home / "go")
    record = await runs.ended(RUN)
    assert (record.code, record.reason) == (42, "exited")


async def test_a_stop_works_on_a_full_disk(runs: Runs, small_disk: Path) -> None:
    script = "cat /dev/zero > fill; echo $$ > $HOME/full; exec sleep 600"
    await runs.agent.start(shell(RUN, script, run_root=str(small_disk), cwd=str(small_disk)))
    await runs.pid_of("full")
    outcome = await runs.agent.stop(RUN)
    assert outcome.signals == ("INT",) and outcome.record.by == "cockpit"


async def test_a_start_on_a_full_disk_says_what_is_missing(runs: Runs, small_disk: Path) -> None:
    (small_disk / "fill").write_bytes(b"x" * (20 << 20))
    with pytest.raises(LaunchFailed) as refused:
        await runs.agent.start(shell(RUN, "true", run_root=str(small_disk)))
    facts = refused.value.facts
    assert facts["why"] == "disk_full" and facts["needed_mib"] == 16
    assert isinstance(facts["free_mib"], int) and facts["free_mib"] < 5
    assert not list(small_disk.rglob("a-1"))


async def test_a_root_without_room_is_passed_over(runs: Runs, small_disk: Path) -> None:
    """256 MiB must be free for the host's own choice."""
    await runs.agent.close()
    runs.transport.env["XDG_STATE_HOME"] = str(small_disk)
    await runs.new_agent()
    await runs.agent.start(shell(RUN, "true"))
    await runs.ended(RUN)
    assert str(runs.folder(RUN)).startswith(str(runs.home / ".local" / "state" / "cockpit" / "v1"))


async def test_a_restart_of_the_container_ends_its_runs(tmp_path: Path) -> None:
    """Boot id and hostname stay the same; the start of the first process does not."""
    python = wrapper(tmp_path, "exec unshare --pid --fork --kill-child --mount-proc")
    runs = await opened(tmp_path, python)
    await runs.agent.start(shell(RUN, "echo up; exec sleep 600"))
    await until(lambda: (runs.folder(RUN) / "log").read_bytes() == b"up\n")
    assert (await runs.agent.status(RUN)).state == "running"
    runs.transport.kill()
    await runs.new_agent()
    record = await runs.ended(RUN)
    assert (record.state, record.reason) == ("lost", "host_restarted")
    assert record.ended_s is not None and record.ended_s <= record.now_s
    (listed,) = await runs.agent.list()
    assert listed.state == "lost"
    outcome = await runs.agent.stop(RUN)
    assert (outcome.signals, outcome.left) == ((), ())
    await closed(runs)


async def test_locks_of_a_run_on_the_network_are_kept_on_this_kernel(tmp_path: Path) -> None:
    """Every file system here counts as a network's: flock there would not tell hosts apart."""
    remote = tmp_path / "remote"
    shutil.copytree(SUPERVISOR.parent, remote)
    host = remote / "supervisor_host.py"
    host.write_text(re.sub(r"NETWORK_FS = \(", 'NETWORK_FS = ("", ', host.read_text()))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$1" {remote}/supervisor.py "$3"\n')
    python.chmod(0o700)
    runs = await opened(tmp_path, str(python))
    await runs.agent.start(shell(RUN, "echo up; exec sleep 600"))
    kept = json.loads((runs.folder(RUN) / "spec.json").read_text())["locks"]
    try:
        assert kept.startswith(f"/dev/shm/cockpit-{os.geteuid()}/runs/")
        assert not (runs.folder(RUN) / "lock").exists()
        assert (await runs.agent.status(RUN)).state == "running"
        assert (await runs.agent.stop(RUN)).signals == ("INT",)
    finally:
        shutil.rmtree(kept)  # as a restart does
    assert (await runs.agent.status(RUN)).signal == 2
    await closed(runs)


@pytest.fixture
def small_memory(tmp_path: Path) -> Iterator[Path]:
    """A memory cgroup of 96 MiB, of either version."""
    name = f"cockpit-test-{uuid.uuid4().hex[:8]}"
    for top, limit, procs in (
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "cgroup.procs"),
        ("/sys/fs/cgroup", "memory.max", "cgroup.procs"),
    ):
        group = Path(top) / name
        try:
            group.mkdir()
            (group / limit).write_text(str(96 << 20))
        except OSError:
            continue
        try:
            yield group / procs
        finally:
            for _try in range(100):
                try:
                    group.rmdir()
                    break
                except OSError:
                    os.sched_yield()
        return
    pytest.skip("no memory cgroup can be made here")


async def test_the_oom_killer_is_named(tmp_path: Path, small_memory: Path) -> None:
    python = wrapper(tmp_path, f"echo $$ > {small_memory}\nexec")
    runs = await opened(tmp_path, python)
    hungry = (
        "import mmap\nm = mmap.mmap(-1, 400 << 20)\nfor n in range(0, len(m), 4096): m[n] = 1\n"
    )
    await runs.agent.start(spec(RUN, sys.executable, "-c", hungry))
    record = await runs.ended(RUN)
    assert (record.signal, record.reason, record.by) == (9, "oom_killed", "job")
    assert record.oom_kills is not None and record.oom_kills >= 1
    await runs.agent.start(shell("a-2", "kill -9 $$"))
    record = await runs.ended("a-2")
    assert (record.signal, record.reason, record.oom_kills) == (9, "signal", 0)
    await closed(runs)
