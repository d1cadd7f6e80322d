"""A run whose supervisor died gets another: the code, the stop, the trims, the restarts are there again."""

from __future__ import annotations

import json
import os
import signal
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import Card, GpuRequest, RestartPolicy
from cockpit.engine.agent import End
from cockpit.engine.agent_care import adopt, events_of
from cockpit.errors import NotNow, RunError
from tests.agents import PipeTransport
from tests.remote.supervised import (
    Runs,
    alive,
    assert_nothing_left,
    environment_of,
    of_home,
    patched,
    poke,
    shell,
    spec,
    until,
)
from tests.remote.test_supervisor_stop import STUBBORN

RUN = RunId("a-1")
WAITS = "exec 5<> $HOME/go; echo $$ > $HOME/job; [ $COCKPIT_ATTEMPT = 2 ] || read x <&5; "


async def orphaned(runs: Runs, script: str, **more: Any) -> int:
    """A run that waits for a word on a fifo, without its supervisor; the pid of its job."""
    os.mkfifo(runs.home / "go")
    await runs.agent.start(shell(RUN, WAITS + script, **more))
    job = await runs.pid_of("job")
    await bereave(runs)
    return job


async def bereave(runs: Runs) -> None:
    supervisor = runs.supervisor_pid(RUN)
    os.kill(supervisor, signal.SIGKILL)
    await until(lambda: not alive(supervisor))


async def adopted(runs: Runs, script: str, **more: Any) -> RunRecord:
    await orphaned(runs, script, **more)
    assert (await runs.agent.status(RUN)).degraded == "supervisor_died"
    return await adopt(runs.agent, RUN)


async def test_an_adopted_run_is_not_degraded_and_its_code_is_kept(runs: Runs) -> None:
    before = await adopted(runs, "exit 42")
    assert (before.state, before.degraded) == ("running", None)
    record = await runs.agent.status(RUN)
    assert record.job_pid == before.job_pid and record.started_s == before.started_s
    poke(runs.home / "go")
    record = await runs.ended(RUN)
    assert (record.code, record.reason, record.by) == (42, "exited", "job")
    assert json.loads((runs.folder(RUN) / "exit").read_text())["code"] == 42
    assert [event.name for event in await events_of(runs.agent, RUN)] == [
        "started", "adopted", "ended",
    ]  # fmt: skip


async def test_of_many_who_adopt_one_does(runs: Runs) -> None:
    await orphaned(runs, "exit 3")
    records = [await adopt(runs.agent, RUN) for _again in range(3)]
    assert {record.degraded for record in records} == {None}
    names = [event.name for event in await events_of(runs.agent, RUN)]
    assert names.count("adopted") == 1
    poke(runs.home / "go")
    assert (await runs.ended(RUN)).code == 3


async def test_a_run_that_needs_no_supervisor_gets_none(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "exit 3"))
    await runs.ended(RUN)
    assert (await adopt(runs.agent, RUN)).code == 3
    await until(lambda: not of_run(runs.home))


def of_run(home: Path) -> list[int]:
    return [pid for pid in of_home(home) if b"COCKPIT_RUN=a-1" in environment_of(pid)]


async def test_an_adopted_run_that_is_killed_whole_is_lost(runs: Runs) -> None:
    record = await adopted(runs, "exit 3")
    pids = [pid for pid in of_home(runs.home) if b"COCKPIT_RUN=a-1" in environment_of(pid)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    record = await runs.ended(RUN)
    assert (record.state, record.reason, record.code) == ("lost", "killed_without_record", None)


async def test_an_adopted_run_is_stopped_by_the_ladder(runs: Runs) -> None:
    await adopted(runs, "exit 3")
    outcome = await runs.agent.stop(RUN)
    assert (outcome.signals, outcome.left) == (("INT",), ())
    assert (outcome.record.signal, outcome.record.by) == (signal.SIGINT, "cockpit")


async def test_deaf_escaped_and_wiped_processes_are_found_by_the_new_supervisor_too(
    runs: Runs,
) -> None:
    """The dead one had noted the daemon that left its session, its parents and its environment."""
    await runs.agent.start(spec(RUN, sys.executable, "-c", STUBBORN))
    pids = [await runs.pid_of(name) for name in ("main", "grandchild", "daemon")]
    heartbeat = runs.folder(RUN) / "hb"
    await until(lambda: pids[2] in [pid for pid, _start in life(heartbeat).get("strays", [])])
    await bereave(runs)
    await adopt(runs.agent, RUN)
    outcome = await runs.agent.stop(RUN, int_s=0.1, term_s=0.1)
    assert (outcome.signals, outcome.left) == (("INT", "TERM", "KILL"), ())
    assert not [pid for pid in pids if alive(pid)]
    assert (outcome.record.state, outcome.record.by) == ("exited", "cockpit")
    assert outcome.record.signal == signal.SIGKILL


def life(heartbeat: Any) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(heartbeat.read_text())
    except ValueError:
        return {}
    return value


async def test_a_stop_that_was_under_way_goes_on(runs: Runs) -> None:
    script = "trap '' INT; echo $$ > $HOME/deaf; while :; do sleep 0.05; done"
    await runs.agent.start(shell(RUN, script))
    deaf = await runs.pid_of("deaf")
    (runs.folder(RUN) / "stop.json").write_bytes(
        b'{"number":1,"int_s":0,"term_s":5}'.ljust(511) + b"\n"
    )
    await bereave(runs)
    await adopt(runs.agent, RUN)
    record = await runs.ended(RUN)
    assert record.by == "cockpit" and not alive(deaf)


async def test_an_adopted_run_is_started_again_with_its_environment(runs: Runs) -> None:
    """Its secrets are in no file: they come from the job that it adopts."""
    policy = RestartPolicy("on-failure", 1, 0.0, ("--resume",))
    script = 'echo "${#TOKEN} $PLAIN $0 $COCKPIT_ATTEMPT"; exit 7'
    await adopted(runs, script, restart=policy, secrets={"TOKEN": "hunter2"}, env={"PLAIN": "seen"})
    poke(runs.home / "go")
    record = await runs.ended(RUN)
    assert (record.code, record.attempt) == (7, 2)
    log = (runs.folder(RUN) / "log").read_text()
    assert log == "7 seen sh 1\n7 seen --resume 2\n"


async def test_the_hook_after_an_adopted_job_runs(runs: Runs) -> None:
    await adopted(runs, "exit 9", after="echo after $COCKPIT_EXIT_CODE $PLAIN", env={"PLAIN": "x"})
    poke(runs.home / "go")
    assert (await runs.ended(RUN)).code == 9
    assert (runs.folder(RUN) / "log").read_text() == "after 9 x\n"


async def test_a_long_log_is_trimmed_again(runs: Runs) -> None:
    await adopted(runs, "yes 0123456789abcde | head -c 12000000; read y <&5", log_max_mib=1)
    poke(runs.home / "go")
    log = runs.folder(RUN) / "log"
    await until(lambda: log.stat().st_size == 12_000_000)
    await until(lambda: log.stat().st_blocks * 512 < 2 << 20, "the middle is given back")
    poke(runs.home / "go")
    assert (await runs.ended(RUN)).log_hole is not None


async def test_a_tail_goes_on_over_an_adoption(runs: Runs) -> None:
    await adopted(runs, "echo last; exit 4")
    frames = runs.agent.tail(RUN)
    poke(runs.home / "go")
    told = [frame async for frame in frames]
    assert isinstance(told[-1], End) and told[-1].record.code == 4


async def test_a_new_supervisor_can_die_too(runs: Runs) -> None:
    await adopted(runs, "exit 5")
    await bereave(runs)
    assert (await runs.agent.status(RUN)).degraded == "supervisor_died"
    assert (await adopt(runs.agent, RUN)).degraded is None
    poke(runs.home / "go")
    assert (await runs.ended(RUN)).code == 5


async def test_an_end_in_the_moment_of_the_adoption_is_an_end(runs: Runs) -> None:
    await orphaned(runs, "exit 6")
    poke(runs.home / "go")
    try:
        await adopt(runs.agent, RUN)
    except RunError as error:
        assert error.facts["why"] == "not_alive"
    assert (await runs.ended(RUN)).code == 6


@pytest.mark.parametrize("job", ["shell", "job"])
async def test_the_sh_or_the_job_alone_killed_under_a_new_supervisor(runs: Runs, job: str) -> None:
    """Without the sh there is nobody to tell the code: it is not made up."""
    pid = await orphaned(runs, "exit 6")
    record = await adopt(runs.agent, RUN)
    os.kill(pid if job == "job" else record.job_pid or 0, signal.SIGKILL)
    if job == "shell":
        await until(lambda: not alive(record.job_pid or 0))
        assert (await runs.agent.status(RUN)).state == "running"
        poke(runs.home / "go")
    record = await runs.ended(RUN)
    known = (record.state, record.signal) if job == "job" else (record.state, record.reason)
    assert known == (
        ("exited", signal.SIGKILL) if job == "job" else ("lost", "killed_without_record")
    )


async def test_an_adopted_run_locks_its_cards_again_for_its_next_attempt(runs: Runs) -> None:
    """The job held them, and they went with it."""
    card = Card(3, f"GPU-{uuid.uuid4()}")
    request = GpuRequest((card,), 1)
    script = (
        "echo $CUDA_VISIBLE_DEVICES; [ $COCKPIT_ATTEMPT = 1 ] && exit 7;"
        " echo $$ > $HOME/second; exec sleep 600"
    )
    try:
        await adopted(runs, script, restart=RestartPolicy("on-failure", 1, 0.0), gpus=request)
        poke(runs.home / "go")
        await runs.pid_of("second")
        with pytest.raises(NotNow):
            await runs.agent.start(shell("a-2", "true", gpus=request))
        assert (await runs.agent.status(RUN)).gpus == (3,)
        assert (await runs.agent.stop(RUN)).left == ()
        assert (runs.folder(RUN) / "log").read_text() == "3\n3\n"
        await runs.agent.start(shell("a-2", "true", gpus=request))
        assert (await runs.ended("a-2")).code == 0
    finally:
        Path(f"/dev/shm/cockpit-{os.geteuid()}/gpu-{card.uuid}.lock").unlink(missing_ok=True)


async def test_a_supervisor_that_dies_before_its_reply_takes_no_run_with_it(tmp_path: Path) -> None:
    """Its records are on the disk and its job runs: the start is no failure, and its folder stays."""
    answer = "        self.answer({"
    dying = f"        os.kill(os.getpid(), 9)\n{answer}"
    python = patched(tmp_path, "supervisor_records", answer, dying)
    transport = PipeTransport(tmp_path, python)
    runs = Runs(transport, transport.agent())
    await runs.agent.open()
    os.mkfifo(runs.home / "go")
    reply = await runs.agent.start(
        shell(RUN, "exec 5<> $HOME/go; echo $$ > $HOME/job; read x <&5; exit 6")
    )
    assert not reply.existed
    await runs.pid_of("job")
    record = await runs.agent.status(RUN)
    assert (record.state, record.degraded) == ("running", "supervisor_died")
    poke(runs.home / "go")
    assert (await runs.ended(RUN)).code == 6
    await runs.agent.close()
    await assert_nothing_left(runs)
