"""What becomes of a run when its person, its terminal, its reader or its client goes."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

import pytest

from tests.desk import Desk, until

PATIENT = (
    "trap '' INT TERM; echo begun; while [ ! -e {go} ]; do sleep 0.05; done; echo gone on; exit 5"
)


async def line_of(process: Process) -> bytes:
    assert process.stdout is not None
    return await asyncio.wait_for(process.stdout.readline(), 60)


def patient(desk: Desk, name: str) -> str:
    """A profile whose job ignores INT and TERM and ends with 5 once `go` exists."""
    script = PATIENT.format(go=desk.folder / "go")
    return desk.profile(name, script, '[stop]\nint = "60s"\nterm = "60s"\n')


def let_go(desk: Desk) -> None:
    (desk.folder / "go").touch()


async def test_ctrl_c_runs_the_ladder_and_the_jobs_own_code_is_ours(desk: Desk) -> None:
    script = "trap 'echo saving; exit 9' INT; echo begun; while :; do sleep 0.05; done"
    process = await desk.start("run", desk.profile("polite", script), "--json")
    while b'"begun"' not in await line_of(process):
        pass
    process.send_signal(signal.SIGINT)
    done = await desk.end_of(process)
    assert done.code == 9
    names = done.names
    assert names[0] == "run.stopping" and names[-1] == "run.exited"
    assert (done.events[-1]["code"], done.events[-1]["by"]) == (9, "cockpit")
    assert [event["text"] for event in done.named("log")] == ["saving"]


async def test_a_job_that_ignores_everything_is_killed_with_its_children(desk: Desk) -> None:
    script = "trap '' INT TERM; setsid sh -c 'trap \"\" INT TERM; echo child; sleep 600' & sleep 600; sleep 600"
    stop = '[stop]\nint = "0.2s"\nterm = "0.2s"\n'
    process = await desk.start("run", desk.profile("deaf", script, stop))
    await line_of(process)
    process.send_signal(signal.SIGINT)
    done = await desk.end_of(process)
    assert done.code == 137
    (run,) = desk.runs("deaf")
    assert desk.of_run(run) == []


async def test_a_second_ctrl_c_leaves_the_run_to_its_end(desk: Desk) -> None:
    process = await desk.start("run", patient(desk, "slow"))
    await line_of(process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while b"Stopping" not in (await asyncio.wait_for(process.stderr.readline(), 60)):
        pass
    process.send_signal(signal.SIGINT)
    done = await desk.end_of(process)
    (run,) = desk.runs("slow")
    assert done.code == 75 and f"cockpit attach {run}" in done.err
    assert f"{run} was told to stop" in done.err and "goes on" not in done.err
    assert desk.of_run(run)
    let_go(desk)
    assert (await desk.call("wait", run)).code == 5


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
async def test_whatever_else_ends_the_client_leaves_the_run(
    desk: Desk, number: signal.Signals
) -> None:
    process = await desk.start("run", patient(desk, "kept"))
    await line_of(process)
    process.send_signal(number)
    done = await desk.end_of(process)
    assert done.code == (-9 if number == signal.SIGKILL else 75)
    (run,) = desk.runs("kept")
    assert desk.of_run(run)
    attached = await desk.start("attach", run)
    let_go(desk)
    again = await desk.end_of(attached)
    assert (again.code, again.out) == (5, b"begun\ngone on\n")


async def test_a_reader_that_goes_leaves_the_run(desk: Desk) -> None:
    go = desk.folder / "go"
    script = f"echo begun; while [ ! -e {go} ]; do echo more; sleep 0.05; done; exit 5"
    process = await desk.start("run", desk.profile("piped", script), stdout=PIPE)
    await line_of(process)
    assert process.stdout is not None
    process.stdout._transport.close()  # type: ignore[attr-defined]
    assert await asyncio.wait_for(process.wait(), 60) == 75
    (run,) = desk.runs("piped")
    assert desk.of_run(run)
    let_go(desk)
    assert (await desk.call("wait", run)).code == 5


async def test_a_full_disk_behind_our_output_is_74_and_leaves_the_run(desk: Desk) -> None:
    with open("/dev/full", "wb") as full:
        process = await desk.start("run", patient(desk, "full"), stdout=full)
    done = await desk.end_of(process)
    (run,) = desk.runs("full")
    assert done.code == 74 and f"cockpit attach {run}" in done.err
    assert desk.of_run(run)
    let_go(desk)
    assert (await desk.call("wait", run)).code == 5


async def test_ctrl_c_on_attach_leaves_the_run_alone(desk: Desk) -> None:
    run = await desk.detached(patient(desk, "seen"))
    process = await desk.start("attach", run)
    await line_of(process)
    process.send_signal(signal.SIGINT)
    assert (await desk.end_of(process)).code == 75
    assert desk.of_run(run)
    let_go(desk)
    assert (await desk.call("wait", run)).code == 5


async def test_a_run_whose_supervisor_is_killed_still_has_its_code(desk: Desk) -> None:
    process = await desk.start("run", patient(desk, "orphan"), "--json")
    while b'"begun"' not in await line_of(process):
        pass
    (run,) = desk.runs("orphan")
    os.kill(desk.supervisor_pid(run), signal.SIGKILL)
    listed = await desk.call("ps", "--json")
    (row,) = listed.events
    assert (row["state"], row["degraded"]) == ("running", "supervisor_died")
    let_go(desk)
    done = await desk.end_of(process)
    assert done.code == 5 and done.events[-1]["code"] == 5


async def test_a_run_whose_supervisor_is_killed_can_still_be_stopped(desk: Desk) -> None:
    run = await desk.detached(desk.profile("sleeper", "sleep 600"))
    os.kill(desk.supervisor_pid(run), signal.SIGKILL)
    done = await desk.call("stop", run, "--json")
    (report,) = done.events
    assert done.code == 0 and report["left"] == [] and report["signals"][0] == "INT"
    assert desk.of_run(run) == []


def read_all(terminal: int) -> bytes:
    data = b""
    with suppress(OSError):
        while piece := os.read(terminal, 65536):
            data += piece
    return data


async def test_on_a_terminal_nothing_of_the_job_reaches_the_terminals_parser(desk: Desk) -> None:
    hostile = (
        r"printf '\033]0;title\007\033[2J\033[31mred\033[0m\302\233\n';"
        r" printf '10%%\r20%%\r30%%\n'; printf '\007'"
    )
    controller, terminal = pty.openpty()
    process = await desk.start("run", desk.profile("tty", hostile), stdout=terminal, stderr=PIPE)
    os.close(terminal)
    reading = asyncio.ensure_future(asyncio.to_thread(read_all, controller))
    await desk.end_of(process)
    shown = (await asyncio.wait_for(reading, 60)).decode()
    os.close(controller)
    assert "red" in shown and "30%" in shown and "title" not in shown
    assert "\x1b]" not in shown and "\x1b[2J" not in shown and "\x07" not in shown
    assert "\x9b" not in shown


async def test_a_terminal_that_vanishes_leaves_the_run(desk: Desk) -> None:
    controller, terminal = pty.openpty()
    go = desk.folder / "go"
    script = f"echo begun; while [ ! -e {go} ]; do echo more; sleep 0.05; done; exit 5"
    process = await desk.start(
        "run", desk.profile("gone", script), stdout=terminal, stderr=terminal, stdin=terminal
    )
    os.close(terminal)
    await until(lambda: desk.runs("gone"), "it runs")
    seen = await asyncio.to_thread(os.read, controller, 100)
    assert seen
    os.close(controller)
    assert await asyncio.wait_for(process.wait(), 60) == 75
    (run,) = desk.runs("gone")
    assert desk.of_run(run)
    let_go(desk)
    assert (await desk.call("wait", run)).code == 5
