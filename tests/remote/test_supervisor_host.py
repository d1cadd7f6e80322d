"""What a host may do to a run: a full disk, a restart, the kernel's OOM killer. Needs root."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import Card, GpuRequest
from cockpit.engine.agent_care import adopt
from cockpit.errors import LaunchFailed
from tests.agents import PipeTransport
from tests.remote.supervised import (
    Runs,
    alive,
    assert_nothing_left,
    patched,
    poke,
    shell,
    spec,
    until,
)

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
    python = patched(tmp_path, "supervisor_host", "NETWORK_FS = (", 'NETWORK_FS = ("", ')
    runs = await opened(tmp_path, python)
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


async def test_two_hosts_on_one_home_do_not_judge_each_other(tmp_path: Path) -> None:
    """Another hostname is another host, though the folder, and here even the kernel, is the same."""
    runs = await opened(tmp_path, sys.executable)
    await runs.agent.start(shell(RUN, "echo $$ > $HOME/job; exec sleep 600"))
    job = await runs.pid_of("job")
    script = "exec unshare --uts /bin/sh -c 'hostname other-host && exec \"$@\"' -"
    other = await opened(tmp_path, wrapper(tmp_path, script))
    await other.agent.start(shell("b-1", "exit 3"))
    assert (await other.ended("b-1")).code == 3
    assert [record.run for record in await other.agent.list()] == ["b-1"]
    assert [record.run for record in await runs.agent.list()] == [RUN]
    assert (await other.agent.status(RUN)).state == "other_host"
    assert (await adopt(other.agent, RUN)).state == "other_host"
    outcome = await other.agent.stop(RUN)
    assert (outcome.signals, outcome.record.state) == ((), "other_host") and alive(job)
    os.kill(runs.supervisor_pid(RUN), signal.SIGKILL)
    assert (await other.agent.status(RUN)).state == "other_host"
    assert (await adopt(other.agent, RUN)).state == "other_host"
    assert (await runs.agent.stop(RUN)).left == () and not alive(job)
    await other.agent.close()
    await closed(runs)


@pytest.fixture
def freezer() -> Iterator[Path]:
    """A cgroup that holds its processes in the kernel, as a driver that hangs does."""
    group = Path("/sys/fs/cgroup/freezer") / f"cockpit-test-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("needs a freezer cgroup (version 1)")
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        for _try in range(1000):
            try:
                group.rmdir()
                break
            except OSError:
                os.sched_yield()


async def test_what_hangs_in_the_kernel_is_told_and_not_fought_for_ever(
    tmp_path: Path, freezer: Path
) -> None:
    runs = await opened(
        tmp_path, patched(tmp_path, "supervisor_ladder", "KILL_S = 10.0", "KILL_S = 0.5")
    )
    await runs.agent.start(shell(RUN, "echo $$ > $HOME/job; sleep 600 & wait"))
    job = await runs.pid_of("job")
    (freezer / "cgroup.procs").write_text(str(job))
    (freezer / "freezer.state").write_text("FROZEN")
    await until(lambda: state_of(job) == "D", "it hangs")
    outcome = await runs.agent.stop(RUN, int_s=0.1, term_s=0.1)
    assert outcome.signals == ("INT", "TERM", "KILL")
    assert [(process.pid, process.state) for process in outcome.left] == [(job, "D")]
    record = await runs.agent.status(RUN)
    assert record.state == "stopping"  # nothing is made up: it has not ended
    (freezer / "freezer.state").write_text("THAWED")
    record = await runs.ended(RUN)
    assert (record.signal, record.by, record.leftovers) == (9, "cockpit", ())
    await closed(runs)


def state_of(pid: int) -> str:
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2]


async def test_memory_that_a_stop_does_not_give_back_is_told(tmp_path: Path) -> None:
    """The driver still counts 3.2 GiB on one of two cards when nothing of the run is left."""
    python = patched(tmp_path, "supervisor_held", "PATIENCE_S = 5.0", "PATIENCE_S = 0.3")
    runs = await opened(tmp_path, python)
    cards = tuple(Card(index, f"GPU-{uuid.uuid4()}") for index in (0, 1))
    (tmp_path / "free").write_text(f"{cards[0].uuid}, 24000\n{cards[1].uuid}, 24000\n")
    smi = tmp_path / "nvidia-smi"
    smi.write_text('#!/bin/sh\ncat "$HOME/free"\n')
    smi.chmod(0o700)
    runs.transport.env["PATH"] = f"{tmp_path}:{runs.transport.env['PATH']}"
    await runs.new_agent()
    try:
        for run, share in ((RUN, False), ("a-2", True)):
            request = GpuRequest(cards, 2, share=share)
            await runs.agent.start(
                shell(run, f"echo $$ > $HOME/{run}; exec sleep 600", gpus=request)
            )
            await runs.pid_of(run)
            (tmp_path / "free").write_text(f"{cards[0].uuid}, 23900\n{cards[1].uuid}, 20723\n")
            outcome = await runs.agent.stop(RunId(run))
            assert outcome.left == () and outcome.held_mib == (() if share else ((1, 3277),))
            (tmp_path / "free").write_text(f"{cards[0].uuid}, 24000\n{cards[1].uuid}, 24000\n")
    finally:
        for card in cards:
            Path(f"/dev/shm/cockpit-{os.geteuid()}/gpu-{card.uuid}.lock").unlink(missing_ok=True)
    await closed(runs)


async def test_memory_that_comes_back_late_is_not_held(tmp_path: Path) -> None:
    runs = await opened(tmp_path, sys.executable)
    card = Card(0, f"GPU-{uuid.uuid4()}")
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        f"#!/bin/sh\n[ -e $HOME/asked ] && free=24000 || free=20000\n"
        f'[ -e $HOME/job ] && : > $HOME/asked || free=24000\necho "{card.uuid}, $free"\n'
    )
    smi.chmod(0o700)
    runs.transport.env["PATH"] = f"{tmp_path}:{runs.transport.env['PATH']}"
    await runs.new_agent()
    try:
        job = shell(RUN, "echo $$ > $HOME/job; exec sleep 600", gpus=GpuRequest((card,), 1))
        await runs.agent.start(job)
        await runs.pid_of("job")
        assert (await runs.agent.stop(RUN)).held_mib == ()
        assert (tmp_path / "asked").exists()
    finally:
        Path(f"/dev/shm/cockpit-{os.geteuid()}/gpu-{card.uuid}.lock").unlink(missing_ok=True)
    await closed(runs)
