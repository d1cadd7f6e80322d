"""`cockpit run` of what is started again, has hooks on its host, or loses its supervisor on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.desk import Desk, until

AGAIN = "[restart]\non = 'on-failure'\nmax = 1\nbackoff = '1s'\nresume_args = ['--resume']\n"


async def test_every_attempt_is_printed_and_the_last_code_is_ours(desk: Desk) -> None:
    path = desk.profile("again", 'echo "try $COCKPIT_ATTEMPT $*"; exit 7', AGAIN)
    done = await desk.call("run", path)
    assert (done.code, done.out) == (7, b"try 1 \ntry 2 --resume\n")
    assert "Restart 1 of 1 in 1.0 s. The last attempt ended with code 7." in done.err, done.err
    assert "Attempt 2 has begun." in done.err
    assert done.err.splitlines()[-1] == "again on here ended with code 7."
    listed = await desk.call("ps", "--json")
    (run,) = [json.loads(line) for line in listed.out.splitlines()]
    assert (run["state"], run["code"], run["attempt"], run["restarts"]) == ("exited", 7, 2, 1)


async def test_machines_hear_of_an_attempt_as_of_a_start(desk: Desk) -> None:
    path = desk.profile("again", "exit 7", AGAIN)
    done = await desk.call("run", path, "--json")
    assert done.code == 7
    starts = [event for event in done.events if event["event"] in ("run.starting", "run.started")]
    assert [event["event"] for event in starts[-2:]] == ["run.starting", "run.started"]
    due, begun = starts[-2:]
    assert (due["attempt"], due["restarts"], due["in_s"]) == (2, 1, 1.0)
    assert begun["attempt"] == 2
    assert done.names[-1] == "run.exited"


async def test_a_hook_that_fails_says_that_the_job_was_not_started(desk: Desk) -> None:
    path = desk.profile("hook", "echo job", "[hooks]\nbefore = 'echo no; exit 9'\n")
    done = await desk.call("run", path)
    assert (done.code, done.out) == (9, b"no\n")
    assert "Started" not in done.err
    assert "Its hook `before` ended with code 9; the job was not started." in done.err, done.err


async def test_a_failing_hook_after_the_job_is_told_and_changes_no_code(desk: Desk) -> None:
    path = desk.profile(
        "hook", "exit 4", "[hooks]\nafter = 'echo after $COCKPIT_EXIT_CODE; exit 2'\n"
    )
    done = await desk.call("run", path)
    assert (done.code, done.out) == (4, b"after 4\n")


async def test_a_hook_after_the_job_is_not_told_as_a_stop(desk: Desk) -> None:
    done = await desk.call(
        "run", desk.profile("hook", ":", "[hooks]\nafter = 'sleep 1'\n"), "--json"
    )
    assert done.code == 0 and "run.stopping" not in done.names, done.names


async def test_a_stop_of_the_hook_after_the_job_is_told_to_every_follower_once(desk: Desk) -> None:
    after = "touch hook; while :; do sleep 0.05; done"
    path = desk.profile("hook", "echo x; exit 4", f"[hooks]\nafter = '{after}'\n")
    first = await desk.start("run", path, "--json")
    await until(lambda: (desk.user / "hook").exists(), "the hook runs")
    (run,) = desk.runs("hook")
    second = await desk.start("attach", run, "--json")
    assert second.stdout is not None
    begun = await second.stdout.readline()
    assert b'"run.started"' in begun
    assert (await desk.call("stop", run)).code == 0
    for follower in (first, second):
        done = await desk.end_of(follower)
        assert done.code == 4
        assert done.names.count("run.stopping") == 1, done.names
        assert done.names[-2:] == ["run.stopping", "run.exited"], done.names
        assert (done.events[-1]["code"], done.events[-1]["by"]) == (4, "job")


async def test_a_supervisor_that_dies_is_replaced_while_we_follow(desk: Desk) -> None:
    script = f"echo up; while [ ! -e {desk.folder}/go ]; do sleep 0.05; done; exit 42"
    process = await desk.start("run", desk.profile("care", script))
    await until(lambda: desk.runs("care"), "it is on disk")
    (run,) = desk.runs("care")
    await until(lambda: log_of(desk, run) == b"up\n", "it runs")
    first = desk.supervisor_pid(run)
    os.kill(first, signal.SIGKILL)
    await until(lambda: desk.supervisor_pid(run) != first, "another supervisor")
    (desk.folder / "go").touch()
    done = await desk.end_of(process)
    assert (done.code, done.out) == (42, b"up\n")
    assert "Its supervisor had died; it has a new one." in done.err, done.err


def log_of(desk: Desk, run: str) -> bytes:
    path = desk.run_folder(run) / "log"
    return path.read_bytes() if path.exists() else b""


async def test_a_container_that_restarts_under_a_run_costs_an_attempt_and_not_the_run(
    desk: Desk,
) -> None:
    """The host's Python runs in a container of its own: when it ends, everything of it ends."""
    python = desk.folder / "python"
    python.write_text(
        f"#!/bin/sh\necho $$ >> {desk.folder}/containers\n"
        f'exec unshare --pid --fork --kill-child --mount-proc {sys.executable} "$@"\n'
    )
    python.chmod(0o700)
    if subprocess.run([python, "-c", "pass"], capture_output=True).returncode:
        pytest.skip("needs the right to unshare")
    desk.this_machine(python=str(python))
    script = (
        f"echo try $COCKPIT_ATTEMPT; while [ ! -e {desk.folder}/go ]; do sleep 0.05; done; exit 42"
    )
    again = "[restart]\non = 'on-lost'\n"
    process = await desk.start("run", desk.profile("back", script, again))
    await until(lambda: desk.runs("back"), "it is on disk")
    (run,) = desk.runs("back")
    await until(lambda: log_of(desk, run) == b"try 1\n", "it runs")
    for pid in (desk.folder / "containers").read_text().split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    await until(lambda: log_of(desk, run) == b"try 1\ntry 2\n", "it runs again")
    (desk.folder / "go").touch()
    done = await desk.end_of(process)
    assert (done.code, done.out) == (42, b"try 1\ntry 2\n"), done.err
    assert f"here had restarted; attempt 2 of {run} was started there." in done.err, done.err
