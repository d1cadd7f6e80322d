"""Starting runs and reading their state from the files: every fact survives whoever wrote it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.errors import LaunchFailed, RunUnknown
from tests.agents import PipeTransport
from tests.remote.supervised import (
    Runs,
    alive,
    assert_nothing_left,
    bystander,
    environment_of,
    grow_old,
    killed,
    of_home,
    shell,
    spec,
    start_of,
    until,
    write_record,
)

PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
NAP = "sleep 600 & echo $! > $HOME/nap; wait"


async def test_a_job_runs_and_its_code_is_kept(runs: Runs) -> None:
    reply = await runs.agent.start(shell("a-1", "echo out; echo err >&2; exit 42"))
    assert not reply.existed
    record = await runs.ended("a-1")
    assert (record.code, record.signal, record.reason, record.by) == (42, None, "exited", "job")
    assert (runs.folder("a-1") / "log").read_bytes() == b"out\nerr\n"
    assert record.started_s is not None and record.ended_s is not None
    assert record.started_s <= record.ended_s <= record.now_s


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
async def test_a_signal_is_told_apart_from_a_code(runs: Runs, number: signal.Signals) -> None:
    await runs.agent.start(shell("a-1", f"kill -{int(number)} $$"))
    record = await runs.ended("a-1")
    assert (record.code, record.signal, record.reason) == (None, int(number), "signal")
    assert (runs.folder("a-1") / "log").read_bytes() == b""


async def test_a_missing_program_says_so_in_the_log(runs: Runs) -> None:
    await runs.agent.start(spec("a-1", "no-such-program", "x"))
    assert (await runs.ended("a-1")).code == 127
    assert b"no-such-program" in (runs.folder("a-1") / "log").read_bytes()


async def test_the_first_word_is_never_a_builtin_of_the_shell(runs: Runs) -> None:
    await runs.agent.start(spec("a-1", "exit", "3"))
    assert (await runs.ended("a-1")).code == 127


async def test_a_second_start_finds_the_first(runs: Runs) -> None:
    job = shell("a-1", "echo once")
    await runs.agent.start(job)
    await runs.ended("a-1")
    reply = await runs.agent.start(job)
    assert reply.existed and reply.record.state == "exited"
    assert (runs.folder("a-1") / "log").read_bytes() == b"once\n"


async def test_secrets_are_in_the_jobs_environment_and_nowhere_else(runs: Runs) -> None:
    secret = "hunter2-" + os.urandom(8).hex()
    job = shell("a-1", "echo ${#TOKEN}; " + NAP, secrets={"TOKEN": secret}, env={"PLAIN": "seen"})
    await runs.agent.start(job)
    nap = await runs.pid_of("nap")
    assert f"TOKEN={secret}".encode() in environment_of(nap)
    assert not [text for text in all_command_lines() if secret.encode() in text]
    files = [path.read_bytes() for path in runs.home.rglob("*") if path.is_file()]
    assert not [text for text in files if secret.encode() in text]
    kept = json.loads((runs.folder("a-1") / "spec.json").read_text())
    assert kept["secret_names"] == ["TOKEN"] and kept["env_names"] == ["PLAIN"]
    assert "seen" not in json.dumps(kept)
    await runs.agent.stop(RunId("a-1"))


def all_command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return found


async def test_the_environment_of_a_job(runs: Runs) -> None:
    script = 'env > "$HOME/env"; umask >> "$HOME/env"; pwd -P > "$HOME/pwd"'
    job = shell(
        "a-1", script, env={"PYTHONUNBUFFERED": "0", "NAME": "Grüße ☃"},
        env_defaults={"HOME": "/nowhere", "EXTRA": "1"}, path_first=("~/bin",), cwd="~/wörk",
    )  # fmt: skip
    (runs.home / "wörk").mkdir()
    old = os.umask(0o022)
    try:
        await runs.new_agent()
        await runs.agent.start(job)
    finally:
        os.umask(old)
    await runs.ended("a-1")
    lines = (runs.home / "env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    assert env["COCKPIT_RUN"] == "a-1" and env["COCKPIT_DIR"] == str(runs.folder("a-1"))
    assert env["PYTHONUNBUFFERED"] == "0" and env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert env["HOME"] == str(runs.home) and env["EXTRA"] == "1" and env["NAME"] == "Grüße ☃"
    assert env["PATH"].startswith(f"{runs.home}/bin:") and "CUDA_VISIBLE_DEVICES" not in env
    assert lines[-1] == "0022"
    assert (runs.home / "pwd").read_text().strip() == str(runs.home / "wörk")


async def test_a_long_script_travels_as_a_file(runs: Runs) -> None:
    script = "#" * 300_000 + "\nexit 7\n"
    await runs.agent.start(spec("a-1", "/bin/sh", script=script))
    assert (await runs.ended("a-1")).code == 7


async def test_a_job_inherits_no_ignored_signal_and_no_input(tmp_path: Path) -> None:
    """`job &` in a shell ignores SIGINT for good; an agent that was started so must not hand it on."""
    program = (
        "import signal, sys, os\n"
        "print(sorted(s.name for s in signal.Signals if s not in (9, 19)"
        " and signal.getsignal(s) is signal.SIG_IGN), sys.stdin.read() == '', os.getsid(0) > 1)\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
    )
    (tmp_path / "sh").write_text('#!/bin/sh\ntrap "" INT QUIT TERM HUP\nexec "$REAL" "$@"\n')
    (tmp_path / "sh").chmod(0o700)
    transport = PipeTransport(tmp_path, str(tmp_path / "sh"), {"REAL": sys.executable})
    runs = Runs(transport, transport.agent())
    await runs.agent.open()
    await runs.agent.start(spec("a-1", sys.executable, "-c", program))
    await runs.ended("a-1")
    seen = (runs.folder("a-1") / "log").read_text()
    await runs.agent.close()
    await assert_nothing_left(runs)
    assert seen == "['SIGPIPE', 'SIGXFSZ'] True True\nset()\n"  # those two are Python's own


async def test_everything_is_ours_alone(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", "true"))
    await runs.ended("a-1")
    folder = runs.folder("a-1")
    for path in (folder, folder.parent, folder.parent.parent):
        assert stat.S_IMODE(path.lstat().st_mode) == 0o700
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.lstat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((folder / "attempts").lstat().st_mode) == 0o700
    assert {(folder / name).stat().st_size for name in ("exit", "exit.shim", "stop.json")} == {512}


async def test_a_folder_behind_a_link_or_open_to_others_is_refused(runs: Runs) -> None:
    (runs.home / "elsewhere").mkdir(mode=0o700)
    root = runs.home / "root"
    root.mkdir(mode=0o700)
    (root / "v1").symlink_to(runs.home / "elsewhere")
    with pytest.raises(LaunchFailed) as refused:
        await runs.agent.start(shell("a-1", "true", run_root=str(root)))
    assert refused.value.facts["why"] == "run_root"
    (root / "v1").unlink()
    (root / "v1").mkdir()
    (root / "v1").chmod(0o755)
    with pytest.raises(LaunchFailed) as refused:
        await runs.agent.start(shell("a-1", "true", run_root=str(root)))
    assert refused.value.facts["why"] == "unsafe_folder"
    assert not list((runs.home / "elsewhere").iterdir())


async def test_a_linked_log_is_not_followed(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", "true"))
    await runs.ended("a-1")
    (runs.home / "private").write_text("private")
    log = runs.folder("a-1") / "log"
    log.unlink()
    log.symlink_to(runs.home / "private")
    with pytest.raises(Exception, match="io"):
        await runs.agent.read(RunId("a-1"), 0, 100)


async def test_an_agent_that_is_told_nothing_finds_a_run_in_a_root_of_its_own(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", "true", run_root=str(runs.home / "data")))
    await runs.agent.start(shell("a-2", "true"))
    await runs.ended("a-1")
    assert (runs.home / "data" / "v1").is_dir()
    other = await runs.new_agent()
    assert [record.run for record in await other.list()] == ["a-2", "a-1"]


async def test_a_list_is_sent_once_and_then_its_changes(runs: Runs) -> None:
    for number in range(3):
        await runs.agent.start(shell(f"a-{number}", "exit 3"))
        await runs.ended(f"a-{number}")
    assert [record.run for record in await runs.agent.list()] == ["a-2", "a-1", "a-0"]
    told = runs.transport.channels[-1].received
    assert len(await runs.agent.list()) == 3
    assert runs.transport.channels[-1].received - told < 200
    shutil.rmtree(runs.folder("a-1"))
    await runs.agent.start(shell("a-3", NAP))
    await runs.pid_of("nap")
    records = await runs.agent.list()
    assert [record.run for record in records] == ["a-3", "a-2", "a-0"]
    assert records[0].state == "running"
    await runs.agent.stop(RunId("a-3"))
    assert (await runs.agent.list())[0].state == "exited"


async def test_what_stands_in_the_way_of_a_start(runs: Runs) -> None:
    for job, why in (
        (shell("a-1", "true", cwd="~/missing"), "no_cwd"),
        (shell("a-1", "true", disk_free_mib=10**8), "disk_full"),
        (shell("a-1", "true", run_root="/proc/nothing"), "run_root"),
        (spec("a-1", ""), "bad_spec"),
        (spec("../a", "true"), "bad_spec"),
        (spec("a-1", "true", env={"A=B": "x"}), "bad_spec"),
        (spec("a-1", "true", secrets={"A": "x\0y"}), "bad_spec"),
        (spec("a-1", "x" * 200_000), "not_started"),
    ):
        with pytest.raises(LaunchFailed) as refused:
            await runs.agent.start(job)
        assert refused.value.facts["why"] == why
    assert await runs.agent.list() == []
    with pytest.raises(RunUnknown):
        await runs.agent.status(RunId("a-1"))


async def test_a_job_outlives_its_agent(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", NAP + "; exit 5"))
    nap = await runs.pid_of("nap")
    runs.transport.kill()
    await runs.new_agent()
    record = await runs.agent.status(RunId("a-1"))
    assert record.state == "running" and record.degraded is None and alive(nap)
    os.kill(nap, signal.SIGKILL)
    assert (await runs.ended("a-1")).code == 5


async def test_the_code_is_kept_when_the_supervisor_is_killed(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", NAP + "; exit 42"))
    nap = await runs.pid_of("nap")
    os.kill(runs.supervisor_pid("a-1"), signal.SIGKILL)
    record = await runs.reaches("a-1", "running")
    await until(lambda: not alive(runs.supervisor_pid("a-1")))
    record = await runs.reaches("a-1", "running")
    assert record.degraded == "supervisor_died"
    os.kill(nap, signal.SIGKILL)
    record = await runs.ended("a-1")
    assert (record.code, record.reason, record.by) == (42, "exited", "job")


async def test_the_code_is_kept_when_only_the_shell_between_is_killed(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", NAP + "; kill -TERM $$"))
    nap = await runs.pid_of("nap")
    record = await runs.agent.status(RunId("a-1"))
    assert record.job_pid is not None
    os.kill(record.job_pid, signal.SIGKILL)
    await until(lambda: not alive(record.job_pid or 0))
    assert (await runs.agent.status(RunId("a-1"))).state == "running"
    os.kill(nap, signal.SIGKILL)
    record = await runs.ended("a-1")
    assert record.signal == signal.SIGTERM


async def test_the_code_is_kept_when_the_job_ends_in_the_moment_in_which_its_shell_is_killed(
    runs: Runs,
) -> None:
    await runs.agent.start(shell("a-1", NAP + "; kill -TERM $$"))
    nap = await runs.pid_of("nap")
    record = await runs.agent.status(RunId("a-1"))
    supervisor = runs.supervisor_pid("a-1")
    assert record.job_pid is not None
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(record.job_pid, signal.SIGKILL)
    job = int(Path(f"/proc/{nap}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(nap, signal.SIGKILL)
    await until(lambda: not alive(record.job_pid or 0) and not alive(job))
    os.kill(supervisor, signal.SIGCONT)
    assert (await runs.ended("a-1")).signal == signal.SIGTERM


async def test_hang_up_and_terminate_do_not_move_a_supervisor(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", NAP + "; exit 6"))
    nap = await runs.pid_of("nap")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        os.kill(runs.supervisor_pid("a-1"), number)
    os.kill(nap, signal.SIGKILL)
    record = await runs.ended("a-1")
    assert (record.code, record.signals) == (6, ())


async def test_a_run_killed_whole_is_lost_and_no_success(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", NAP))
    await runs.pid_of("nap")
    supervisor = runs.supervisor_pid("a-1")
    os.kill(supervisor, signal.SIGKILL)
    for pid in of_home(runs.home):
        if b"COCKPIT_RUN=a-1" in environment_of(pid):
            os.kill(pid, signal.SIGKILL)
    record = await runs.ended("a-1")
    assert (record.state, record.reason, record.code) == ("lost", "killed_without_record", None)


async def test_a_stopped_supervisor_is_told(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", NAP))
    await runs.pid_of("nap")
    folder = runs.folder("a-1")
    os.kill(runs.supervisor_pid("a-1"), signal.SIGSTOP)
    grow_old(folder / "hb", 31.0)
    assert (await runs.agent.status(RunId("a-1"))).degraded == "supervisor_stalled"
    os.kill(runs.supervisor_pid("a-1"), signal.SIGCONT)
    await runs.agent.stop(RunId("a-1"))


async def test_a_restart_of_the_host_explains_a_lost_run(runs: Runs) -> None:
    folder = await killed(runs, "a-1")
    supervisor = json.loads((folder / "sup.json").read_text())
    supervisor["pid1_start"] += 1
    write_record(folder / "sup.json", supervisor)
    record = await runs.agent.status(RunId("a-1"))
    assert (record.state, record.reason) == ("lost", "host_restarted")
    assert record.ended_s is not None


async def test_a_reused_pid_is_not_the_job(runs: Runs) -> None:
    folder = await killed(runs, "a-1")
    with bystander() as other:
        supervisor = json.loads((folder / "sup.json").read_text())
        supervisor.update(job_pid=other.pid, pid=other.pid)
        write_record(folder / "sup.json", supervisor)
        assert (await runs.agent.status(RunId("a-1"))).state == "lost"
        assert (await runs.agent.stop(RunId("a-1"))).signals == ()
        assert other.poll() is None


async def test_a_run_of_another_host_in_a_shared_home_is_not_ours(runs: Runs) -> None:
    folder = await killed(runs, "a-1")
    moved = folder.parent.parent / "elsewhere-1" / "a-1"
    moved.parent.mkdir(mode=0o700)
    shutil.move(folder, moved)
    supervisor = json.loads((moved / "sup.json").read_text())
    supervisor["host_id"] = "elsewhere-1"
    write_record(moved / "sup.json", supervisor)
    assert (await runs.agent.status(RunId("a-1"))).state == "other_host"
    assert await runs.agent.list() == []


SPOILT = (
    b'{"code": [[[',
    b'{"left": 5, "cards": {"a": 1}, "argv": 7, "code": "x"}',
    b"[]",
    b"\xff",
)


@pytest.mark.parametrize("name", ["exit", "sup.json", "hb", "spec.json", "exit.shim", "stop.json"])
async def test_a_job_that_spoils_its_records_harms_no_list(runs: Runs, name: str) -> None:
    await runs.agent.start(shell("b-1", "exit 3"))
    await killed(runs, "a-1")
    for text in SPOILT:
        (runs.folder("a-1") / name).write_bytes(text)
        records = await runs.agent.list()
        assert [record.run for record in records] == ["a-1", "b-1"]
        assert records[1].code == 3
        await runs.agent.stop(RunId("a-1"))


async def test_a_process_is_signalled_by_pid_and_start(runs: Runs) -> None:
    with bystander() as other:
        start = start_of(other.pid)
        assert not await runs.agent.signal(other.pid, start + 1, "KILL")
        assert await runs.agent.signal(other.pid, start, "INT")
        assert other.wait() == -signal.SIGINT
        assert not await runs.agent.signal(other.pid, start, "INT")


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parts[-3])
async def test_every_python_that_a_host_may_have(tmp_path: Path, python: Path) -> None:
    transport = PipeTransport(tmp_path, str(python), {"LC_ALL": "C"})
    runs = Runs(transport, transport.agent())
    await runs.agent.open()
    await runs.agent.start(shell("a-1", "echo ☃; exit 42", secrets={"S": "ü"}, tags=("☃",)))
    record = await runs.ended("a-1")
    assert record.code == 42 and record.tags == ("☃",)
    assert (await runs.agent.read(RunId("a-1"), 0, 100)).data == "☃\n".encode()
    await runs.agent.start(shell("a-2", "echo $$ > $HOME/nap; exec sleep 600"))
    await runs.pid_of("nap")
    outcome = await runs.agent.stop(RunId("a-2"))
    assert (outcome.signals, outcome.left, outcome.record.by) == (("INT",), (), "cockpit")
    await runs.agent.close()
    await assert_nothing_left(runs)


async def test_bash_as_the_hosts_sh(tmp_path: Path) -> None:
    """The sh between supervisor and job under bash, whose rules for SIGINT are its own."""
    fake = tmp_path / "python"
    mount = "mount --bind $(readlink -f /bin/bash) $(readlink -f /bin/sh)"
    fake.write_text(
        f'#!/bin/bash\nexec unshare -m /bin/bash -c \'{mount} && exec {sys.executable} "$@"\' - "$@"\n'
    )
    fake.chmod(0o700)
    if not works(fake):
        pytest.skip("needs the right to mount")
    transport = PipeTransport(tmp_path, str(fake))
    runs = Runs(transport, transport.agent())
    await runs.agent.open()
    await runs.agent.start(shell("a-1", "echo $BASH_VERSION; exit 42"))
    assert (await runs.ended("a-1")).code == 42
    assert (runs.folder("a-1") / "log").read_bytes() != b"\n"
    await runs.agent.start(spec("a-2", sys.executable, "-c", INTERRUPTED))
    await until(lambda: (runs.folder("a-2") / "log").read_bytes())
    outcome = await runs.agent.stop(RunId("a-2"))
    assert (outcome.record.code, outcome.signals) == (9, ("INT",))
    await runs.agent.close()
    await assert_nothing_left(runs)


def works(python: Path) -> bool:
    return subprocess.run([python, "-c", "pass"], capture_output=True).returncode == 0


INTERRUPTED = """
import sys, time
try:
    print("up")
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit(9)
"""


def test_it_compiles_on_every_python() -> None:
    source = Path(__file__).parents[2] / "cockpit" / "remote" / "supervisor.py"
    for python in PYTHONS:
        program = "import sys; compile(open(sys.argv[1], encoding='utf-8').read(), 'x', 'exec')"
        subprocess.run([python, "-c", program, source], check=True)


HUGE = "x" * 600_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("notes", {"a": HUGE}),
        ("cwd", HUGE),
        ("claimed_s", HUGE),
        ("locks", "\ud800"),
        ("locks", "\0"),
    ],
    ids=["notes", "cwd", "claimed", "locks", "nul"],
)
async def test_a_record_that_a_job_has_spoilt_hides_no_other_run(
    runs: Runs, key: str, value: object
) -> None:
    for run in ("good-1", "bad-1"):
        await runs.agent.start(shell(run, "exit 3"))
        await runs.ended(run)
    spec = runs.folder("bad-1") / "spec.json"
    spec.write_text(json.dumps({**json.loads(spec.read_text()), key: value}))
    agent = await runs.new_agent()
    assert {record.run: record.code for record in await agent.list()} == {"good-1": 3, "bad-1": 3}
    assert (await agent.status(RunId("bad-1"))).code == 3


async def test_locks_elsewhere_than_in_a_folder_of_the_run_are_none_of_it(runs: Runs) -> None:
    """What is removed with an old run must be its own."""
    await runs.agent.start(shell("a-1", "exit 3"))
    await runs.ended("a-1")
    precious = runs.home / "precious"
    precious.mkdir(mode=0o700)
    spec = runs.folder("a-1") / "spec.json"
    spec.write_text(json.dumps({**json.loads(spec.read_text()), "locks": str(precious)}))
    record = await (await runs.new_agent()).status(RunId("a-1"))
    assert record.heard_s is not None
