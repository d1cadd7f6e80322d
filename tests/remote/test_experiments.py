"""The sixteen experiments that the way runs are supervised rests on: where each of them is a test, and those
that are told nowhere else. Every Python that a host may have, dash and bash, root and another user."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import RestartPolicy
from cockpit.engine.agent import Data, End
from cockpit.engine.agent_care import adopt, events_of
from tests.agents import SUPERVISOR, PipeTransport
from tests.remote.supervised import (
    Runs,
    alive,
    assert_nothing_left,
    bystander,
    poke,
    shell,
    spec,
    until,
)

RUN = RunId("a-1")
PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))

EXPERIMENTS = {
    "E1 no signal is ignored": (
        "remote.test_supervisor:test_a_job_inherits_no_ignored_signal_and_no_input",
        "remote.test_supervisor_stop:test_an_interrupt_ends_a_job_that_listens",
    ),
    "E2 a hang-up reaches no job": (
        "engine.test_agent_shipped:test_a_run_outlives_every_connection_and_its_log_loses_no_byte",
        "remote.test_supervisor:test_hang_up_and_terminate_do_not_move_a_supervisor",
    ),
    "E3 the channel closes while the job runs on": (
        "remote.test_experiments:test_the_channel_closes_while_the_job_runs_on",
        "remote.test_supervisor:test_a_job_outlives_its_agent",
    ),
    "E4 the code is kept without the supervisor": (
        "remote.test_supervisor:test_the_code_is_kept_when_the_supervisor_is_killed",
        "remote.test_supervisor_adopt:test_an_adopted_run_is_not_degraded_and_its_code_is_kept",
    ),
    "E5 a stop reaches what is deaf, escaped and wiped": (
        "remote.test_supervisor_stop:test_deaf_processes_in_other_sessions_with_wiped_environment_are_killed",
        "remote.test_supervisor_stop:test_a_run_without_supervisor_is_stopped_too",
        "remote.test_supervisor_adopt:test_deaf_escaped_and_wiped_processes_are_found_by_the_new_supervisor_too",
    ),
    "E6 a full disk": (
        "remote.test_supervisor_disk:test_a_disk_that_fills_is_told_before_it_is_full_and_no_code_is_lost",
        "remote.test_supervisor_host:test_a_full_disk_loses_no_exit_code",
    ),
    "E7 the middle of a log is given back": (
        "remote.test_supervisor_tail:test_the_middle_of_a_long_log_is_given_back",
        "remote.test_supervisor_disk:test_the_start_of_a_long_log_is_kept_with_its_end",
    ),
    "E8 a tail over cut links": (
        "remote.test_supervisor_tail:test_no_byte_is_lost_or_repeated_over_cut_links",
    ),
    "E9 a relaunch after a lost reply": (
        "remote.test_supervisor:test_a_second_start_finds_the_first",
        "remote.test_supervisor_restart:test_of_two_who_start_a_lost_run_again_one_does",
        "engine.test_runs:test_a_lost_reply_starts_nothing_twice",
    ),
    "E10 secrets on stdin": (
        "remote.test_supervisor:test_secrets_are_in_the_jobs_environment_and_nowhere_else",
        "remote.test_supervisor_restart:test_secrets_are_there_in_every_attempt_and_in_no_file",
    ),
    "E11 a container restart": (
        "remote.test_supervisor_host:test_a_restart_of_the_container_ends_its_runs",
    ),
    "E12 the noise of a login": (
        "engine.test_agent_shipped:test_a_run_outlives_every_connection_and_its_log_loses_no_byte",
    ),
    "E13 zombies": (
        "remote.test_supervisor_stop:test_a_zombie_is_not_alive",
        "remote.test_supervisor_stop:test_a_zombie_does_not_hold_up_a_stop",
    ),
    "E14 names say nothing": (
        "remote.test_experiments:test_processes_that_rename_themselves_are_found_and_namesakes_are_not",
    ),
    "E15 six who race for two cards": (
        "remote.test_supervisor_cards:test_six_who_race_for_two_cards",
    ),
    "E16 every Python": (
        "remote.test_supervisor:test_every_python_that_a_host_may_have",
        "remote.test_experiments:test_the_whole_life_of_a_run_on_every_python",
    ),
}


@pytest.mark.parametrize("experiment", list(EXPERIMENTS))
def test_each_experiment_is_a_test(experiment: str) -> None:
    for place in EXPERIMENTS[experiment]:
        module, _colon, name = place.partition(":")
        assert callable(getattr(importlib.import_module(f"tests.{module}"), name))


async def test_the_channel_closes_while_the_job_runs_on(runs: Runs) -> None:
    """A job that held the channel's pipes would hold up an ssh until its end."""
    await runs.agent.start(shell(RUN, "echo $$ > $HOME/job; exec sleep 600"))
    job = await runs.pid_of("job")
    await runs.agent.close()  # waits for the end of its output
    assert alive(job) and runs.transport.channels[-1].process.returncode == 0
    await runs.new_agent()
    await runs.agent.stop(RUN)


RENAMED = """
import ctypes, os, signal, sys, time
home = os.environ["HOME"]
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(15, b"VLLM::EngineCor", 0, 0, 0)
    with open(home + "/engine", "w") as f:
        f.write("%d\\n" % os.getpid())
    os.execvp("sh", ["VLLM::EngineCore", "-c", "trap '' INT TERM HUP; while :; do sleep 600; done"])
with open(home + "/server", "w") as f:
    f.write("%d\\n" % os.getpid())
time.sleep(600)
"""


async def test_processes_that_rename_themselves_are_found_and_namesakes_are_not(runs: Runs) -> None:
    """vLLM's engine calls itself VLLM::EngineCore, so that `pkill -f "vllm serve"` misses it."""
    await runs.agent.start(spec(RUN, sys.executable, "-c", RENAMED))
    server, engine = await runs.pid_of("server"), await runs.pid_of("engine")
    namesake = subprocess.Popen(["sh", "-c", "exec sleep 600 # VLLM::EngineCore"])
    try:
        outcome = await runs.agent.stop(RUN, int_s=0.1, term_s=0.1)
        assert outcome.left == () and not alive(server) and not alive(engine)
        assert namesake.poll() is None
    finally:
        namesake.kill()
        namesake.wait()


async def test_workers_in_their_own_sessions_outlive_no_stop(runs: Runs) -> None:
    """As torchrun starts them: no group and no session of the job reaches them."""
    program = """
import os, subprocess, sys, time
workers = [
    subprocess.Popen(["sleep", "600"], start_new_session=True) for _rank in range(3)
]
with open(os.environ["HOME"] + "/ranks", "w") as f:
    f.write("".join("%d\\n" % worker.pid for worker in workers))
time.sleep(600)
"""
    await runs.agent.start(spec(RUN, sys.executable, "-c", program))
    path = runs.home / "ranks"
    await until(lambda: path.exists() and path.read_text().count("\n") == 3)
    ranks = [int(line) for line in path.read_text().split()]
    with bystander() as other:
        outcome = await runs.agent.stop(RUN)
        assert outcome.left == () and not [pid for pid in ranks if alive(pid)]
        assert other.poll() is None


async def whole_life(runs: Runs) -> None:
    """Everything that a supervisor does, once."""
    os.mkfifo(runs.home / "go", 0o666)
    (runs.home / "go").chmod(0o666)
    policy = RestartPolicy("on-failure", 1, 0.0, ("--résumé",))
    job = spec(
        RUN, "sh", "-c", 'echo "$0 $S"; exit 7', "first", restart=policy,
        before="echo before", after="echo after $COCKPIT_EXIT_CODE", secrets={"S": "ü"},
    )  # fmt: skip
    await runs.agent.start(job)
    frames = [frame async for frame in runs.agent.tail(RUN)]
    text = b"".join(frame.data for frame in frames if isinstance(frame, Data)).decode()
    assert text == "before\nfirst ü\nfirst ü\nafter 7\n"
    assert isinstance(frames[-1], End) and frames[-1].record.attempt == 2
    assert len(await events_of(runs.agent, RUN)) == 9
    waits = "exec 5<> $HOME/go; echo $$ > $HOME/job; read x <&5; exit 4"
    await runs.agent.start(shell("a-2", waits))
    await runs.pid_of("job")
    supervisor = runs.supervisor_pid("a-2")
    os.kill(supervisor, signal.SIGKILL)
    await until(lambda: not alive(supervisor))
    assert (await adopt(runs.agent, RunId("a-2"))).degraded is None
    poke(runs.home / "go")
    assert (await runs.ended("a-2")).code == 4
    await runs.agent.start(shell("a-3", "trap '' INT; echo $$ > $HOME/deaf; sleep 600 & wait"))
    deaf = await runs.pid_of("deaf")
    outcome = await runs.agent.stop(RunId("a-3"), int_s=0.1, term_s=5.0)
    assert (outcome.left, alive(deaf), outcome.record.by) == ((), False, "cockpit")


@asynccontextmanager
async def at(home: Path, python: str, **env: str) -> AsyncIterator[Runs]:
    transport = PipeTransport(home, python, env)
    runs = Runs(transport, transport.agent())
    await runs.agent.open()
    yield runs
    await runs.agent.close()
    await assert_nothing_left(runs)


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parts[-3])
async def test_the_whole_life_of_a_run_on_every_python(tmp_path: Path, python: Path) -> None:
    async with at(tmp_path, str(python), LC_ALL="C") as runs:
        await whole_life(runs)


async def test_the_whole_life_of_a_run_where_sh_is_bash(tmp_path: Path) -> None:
    python = tmp_path / "python"
    mount = "mount --bind $(readlink -f /bin/bash) $(readlink -f /bin/sh)"
    python.write_text(
        f'#!/bin/bash\nexec unshare -m /bin/bash -c \'{mount} && exec {sys.executable} "$@"\' - "$@"\n'
    )
    python.chmod(0o700)
    if subprocess.run([python, "-c", "pass"], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    async with at(tmp_path, str(python)) as runs:
        await whole_life(runs)


async def test_the_whole_life_of_a_run_of_another_user() -> None:
    """`nobody`, by a Python that everybody may run, in a home of its own."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if os.geteuid() != 0 or python is None or shutil.which("setpriv") is None:
        pytest.skip("needs root, setpriv and a Python of the system")
    home = Path(tempfile.mkdtemp(prefix="cockpit-nobody-"))
    try:
        shutil.copytree(SUPERVISOR.parent, home / "remote")
        wrapper = home / "python"
        wrapper.write_text(
            "#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups"
            f' {python} "$1" {home}/remote/supervisor.py "$3"\n'
        )
        wrapper.chmod(0o755)
        for path in (home, *home.rglob("*")):
            os.chown(path, 65534, 65534)
        async with at(home, str(wrapper)) as runs:
            await whole_life(runs)
            assert runs.folder(RUN).stat().st_uid == 65534
    finally:
        shutil.rmtree(home)
