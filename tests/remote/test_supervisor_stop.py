"""The stop ladder: it reaches everything of a run, nothing else, with and without a supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.errors import RunUnknown
from tests.agents import PipeTransport
from tests.remote.supervised import (
    Runs,
    alive,
    assert_nothing_left,
    bystander,
    grow_old,
    shell,
    spec,
    start_of,
    until,
)

RUN = RunId("a-1")

STUBBORN = """
import os, signal, sys, time

def deaf(name, wiped):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if wiped:  # as a daemon that cleans its environment does
        code = "import signal, time\\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\\n"
        code += "print(%r, flush=True)\\ntime.sleep(600)" % name
        os.execve(sys.executable, [sys.executable, "-c", code], {})
    print(name, flush=True)
    time.sleep(600)

home = os.environ["HOME"]

def note(name):
    with open(os.path.join(home, name), "w") as f:
        f.write("%d\\n" % os.getpid())

if os.fork() == 0:
    os.setsid()
    note("grandchild")
    deaf("grandchild", False)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    note("daemon")
    deaf("daemon", True)
note("main")
deaf("main", False)
"""


async def start_stubborn(runs: Runs, *names: str) -> list[int]:
    await runs.agent.start(spec(RUN, sys.executable, "-c", STUBBORN))
    pids = [await runs.pid_of(name) for name in ("main", "grandchild", "daemon")]
    log = runs.folder(RUN) / "log"
    await until(lambda: log.read_bytes().count(b"\n") == 3, "all of them are deaf")
    return pids


async def test_an_interrupt_ends_a_job_that_listens(runs: Runs) -> None:
    script = "trap 'echo saved; exit 9' INT; echo up; while :; do sleep 0.01; done"
    await runs.agent.start(shell(RUN, script))
    log = runs.folder(RUN) / "log"
    await until(lambda: log.read_bytes() == b"up\n")
    outcome = await runs.agent.stop(RUN)
    assert (outcome.signals, outcome.left) == (("INT",), ())
    record = outcome.record
    assert (record.state, record.code, record.reason, record.by) == (
        "exited",
        9,
        "exited",
        "cockpit",
    )
    assert log.read_bytes() == b"up\nsaved\n"


async def test_deaf_processes_in_other_sessions_with_wiped_environment_are_killed(
    runs: Runs,
) -> None:
    pids = await start_stubborn(runs)
    with bystander() as other:
        outcome = await runs.agent.stop(RUN, int_s=0.1, term_s=0.1)
        assert outcome.signals == ("INT", "TERM", "KILL") and outcome.left == ()
        assert not [pid for pid in pids if alive(pid)]
        assert other.poll() is None
    assert (outcome.record.signal, outcome.record.by) == (signal.SIGKILL, "cockpit")
    assert outcome.record.reason == "signal"


async def test_a_run_without_supervisor_is_stopped_too(runs: Runs) -> None:
    """The daemon that wiped its environment was noted while its supervisor lived. One that is so
    within two seconds of that end is known to nobody: the documented limit."""
    pids = await start_stubborn(runs)
    heartbeat = runs.folder(RUN) / "hb"
    await until(lambda: f"[{pids[2]},".encode() in heartbeat.read_bytes(), "the daemon is noted")
    os.kill(runs.supervisor_pid(RUN), signal.SIGKILL)
    await until(lambda: not alive(runs.supervisor_pid(RUN)))
    outcome = await runs.agent.stop(RUN, int_s=0.1, term_s=0.1)
    assert outcome.signals == ("INT", "TERM", "KILL")
    assert (outcome.record.state, outcome.record.by) == ("exited", "cockpit")
    assert not [pid for pid in pids if alive(pid)]


async def test_a_supervisor_that_does_not_move_is_gone_around(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "echo $$ > $HOME/job; exec sleep 600"))
    job = await runs.pid_of("job")
    os.kill(runs.supervisor_pid(RUN), signal.SIGSTOP)
    grow_old(runs.folder(RUN) / "hb", 31.0)
    outcome = await runs.agent.stop(RUN)
    assert outcome.signals == ("INT",) and not alive(job)
    os.kill(runs.supervisor_pid(RUN), signal.SIGCONT)
    record = await runs.ended(RUN)
    assert (record.signal, record.by) == (signal.SIGINT, "cockpit")


async def test_a_job_that_was_stopped_by_a_hand_still_hears(runs: Runs) -> None:
    script = "trap 'exit 9' INT; echo $$ > $HOME/job; while :; do sleep 0.01; done"
    await runs.agent.start(shell(RUN, script))
    job = await runs.pid_of("job")
    os.kill(job, signal.SIGSTOP)
    assert (await runs.agent.stop(RUN)).record.code == 9


async def test_what_a_job_leaves_over_is_told_and_can_be_stopped(runs: Runs) -> None:
    script = "(trap '' INT; echo $$; exec sleep 600) & echo $! > $HOME/rest; exit 0"
    await runs.agent.start(shell(RUN, script))
    rest = await runs.pid_of("rest")
    record = await runs.ended(RUN)
    assert (record.code, record.by) == (0, "job")
    assert [process.pid for process in record.leftovers] == [rest]
    assert record.leftovers[0].command == "sleep 600"
    assert record.leftovers[0].started_ticks == start_of(rest)
    outcome = await runs.agent.stop(RUN)
    assert outcome.left == () and "TERM" in outcome.signals and not alive(rest)
    assert (outcome.record.code, outcome.record.by) == (0, "job")


async def test_leftovers_are_stopped_when_their_supervisor_died(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "setsid sleep 600 & echo $! > $HOME/rest; exit 0"))
    rest = await runs.pid_of("rest")
    await runs.ended(RUN)
    os.kill(runs.supervisor_pid(RUN), signal.SIGKILL)
    await until(lambda: not alive(runs.supervisor_pid(RUN)))
    outcome = await runs.agent.stop(RUN)
    assert outcome.left == () and not alive(rest)


async def test_a_stop_goes_on_without_its_client(runs: Runs) -> None:
    await runs.agent.start(spec(RUN, sys.executable, "-c", STUBBORN))
    pids = [await runs.pid_of(name) for name in ("main", "grandchild", "daemon")]
    waiting = asyncio.ensure_future(runs.agent.stop(RUN, int_s=0.5, term_s=0.5))
    await until(lambda: (runs.folder(RUN) / "stop.json").read_bytes()[:1] == b"{")
    runs.transport.kill()
    with pytest.raises(Exception, match="link_lost"):
        await waiting
    await runs.new_agent()
    record = await runs.ended(RUN)
    assert record.by == "cockpit" and not [pid for pid in pids if alive(pid)]


async def test_a_second_stop_hurries_the_first(runs: Runs) -> None:
    await start_stubborn(runs)
    first = asyncio.ensure_future(runs.agent.stop(RUN, int_s=600, term_s=600))
    await runs.reaches(RUN, "stopping")
    second = await runs.agent.stop(RUN, int_s=0, term_s=0)
    assert second.left == () and second.signals == ("INT", "TERM", "KILL")
    assert (await first).left == ()


async def test_processes_that_flee_into_new_ones_are_caught(runs: Runs) -> None:
    """Three that are another pid and session every few milliseconds; never more than three."""
    program = """
import os, signal, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
for hare in range(3):
    if os.fork() == 0:
        while True:
            time.sleep(0.02)
            if os.fork():
                os._exit(0)
            os.setsid()
print("up", flush=True)
time.sleep(600)
"""
    await runs.agent.start(spec(RUN, sys.executable, "-c", program))
    await until(lambda: (runs.folder(RUN) / "log").read_bytes())
    outcome = await runs.agent.stop(RUN, int_s=0.1, term_s=0.1)
    assert outcome.left == ()


async def test_a_stop_of_what_has_ended_sends_nothing(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "exit 3"))
    await runs.ended(RUN)
    outcome = await runs.agent.stop(RUN)
    assert (outcome.signals, outcome.left, outcome.record.code) == ((), (), 3)
    assert outcome.record.by == "job"
    with pytest.raises(RunUnknown):
        await runs.agent.stop(RunId("a-2"))


async def test_a_zombie_is_not_alive(runs: Runs) -> None:
    with bystander() as other:
        start = start_of(other.pid)
        other.kill()
        await until(lambda: not alive(other.pid))
        assert not await runs.agent.signal(other.pid, start, "TERM")


async def test_a_zombie_does_not_hold_up_a_stop(runs: Runs) -> None:
    program = """
import os, signal, sys, time
if os.fork() == 0:
    os._exit(0)
print("up", flush=True)
time.sleep(600)
"""
    await runs.agent.start(spec(RUN, sys.executable, "-c", program))
    await until(lambda: (runs.folder(RUN) / "log").read_bytes())
    assert (await runs.agent.stop(RUN)).signals == ("INT",)


async def test_a_run_of_the_same_name_in_another_home_is_left_alone(
    runs: Runs, tmp_path: Path
) -> None:
    """Ids are unique by chance alone: a process belongs to the run whose folder it names."""
    (tmp_path / "two").mkdir()
    transport = PipeTransport(tmp_path / "two")
    other = Runs(transport, transport.agent())
    await other.agent.open()
    pids = []
    for one in (runs, other):
        await one.agent.start(shell(RUN, "echo $$ > $HOME/job; exec sleep 600"))
        pids.append(await one.pid_of("job"))
    assert (await runs.agent.stop(RUN)).left == ()
    assert not alive(pids[0]) and alive(pids[1])
    assert (await other.agent.stop(RUN)).left == () and not alive(pids[1])
    await other.agent.close()
    await assert_nothing_left(other)
