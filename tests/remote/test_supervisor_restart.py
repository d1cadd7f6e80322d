"""Restarts by the host: who asks for them, how often, from which end on, and what every attempt shares."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_events import RunEvent
from cockpit.domain.run_spec import RestartPolicy
from cockpit.engine.agent import Data, End
from cockpit.engine.agent_care import events_of, restart
from cockpit.errors import LaunchFailed
from tests.remote.supervised import (
    Runs,
    alive,
    killed,
    shell,
    spec,
    until,
    write_record,
)

RUN = RunId("a-1")
AT_ONCE: dict[str, Any] = {"backoff_s": 0.0}


def again(on: str = "on-failure", max: int = 2, **more: Any) -> RestartPolicy:
    return RestartPolicy(on=on, max=max, **{**AT_ONCE, **more})  # type: ignore[arg-type]


async def told(runs: Runs, run: RunId = RUN) -> list[RunEvent]:
    return list(await events_of(runs.agent, run))


async def names(runs: Runs) -> list[str]:
    return [event.name for event in await told(runs)]


async def test_a_failure_is_tried_again_until_it_is_enough(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "echo try $COCKPIT_ATTEMPT; exit 7", restart=again()))
    record = await runs.ended(RUN)
    assert (record.code, record.by, record.attempt, record.restarts) == (7, "job", 3, 2)
    folder = runs.folder(RUN)
    assert (folder / "log").read_bytes() == b"try 1\ntry 2\ntry 3\n"
    assert sorted(path.name for path in (folder / "attempts").iterdir()) == ["1", "2", "3"]


async def test_each_start_is_an_event_with_the_logs_offset(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "echo try $COCKPIT_ATTEMPT; exit 7", restart=again(max=1)))
    await runs.ended(RUN)
    events = await told(runs)
    assert [event.name for event in events] == [
        "started", "ended", "restart_due", "started", "ended",
    ]  # fmt: skip
    started = [event.facts for event in events if event.name == "started"]
    assert started == [{"attempt": 1, "offset": 0}, {"attempt": 2, "offset": 6}]
    assert events[1].facts["code"] == 7 and events[4].facts["attempt"] == 2
    assert [event.number for event in events] == [1, 2, 3, 4, 5]
    assert [event.number for event in await events_of(runs.agent, RUN, 3)] == [4, 5]
    assert (await runs.agent.status(RUN)).events == 5


async def test_a_success_after_a_failure_ends_it(runs: Runs) -> None:
    job = shell(RUN, "exit $((COCKPIT_ATTEMPT == 1))", restart=again(max=9))
    await runs.agent.start(job)
    record = await runs.ended(RUN)
    assert (record.code, record.attempt) == (0, 2)


async def test_always_means_a_success_too(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "exit 0", restart=again("always", 1)))
    record = await runs.ended(RUN)
    assert (record.code, record.attempt) == (0, 2)


@pytest.mark.parametrize("on", ["never", "on-lost"])
async def test_a_policy_that_is_not_the_hosts_restarts_nothing(runs: Runs, on: str) -> None:
    await runs.agent.start(shell(RUN, "exit 7", restart=again(on)))
    record = await runs.ended(RUN)
    assert (record.code, record.attempt) == (7, 1)


async def test_a_server_that_ends_unasked_has_failed_whatever_its_code(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "exit 0", expect="server", restart=again(max=1)))
    record = await runs.ended(RUN)
    assert (record.code, record.reason, record.attempt) == (0, "server_ended", 2)


async def test_resume_arguments_come_with_the_second_attempt(runs: Runs) -> None:
    policy = again(max=1, resume_args=("--resume", "it's auto"))
    await runs.agent.start(spec(RUN, "sh", "-c", 'echo "$#: $*"; exit 1', "job", restart=policy))
    await runs.ended(RUN)
    assert (runs.folder(RUN) / "log").read_bytes() == b"0: \n2: --resume it's auto\n"


async def test_secrets_are_there_in_every_attempt_and_in_no_file(runs: Runs) -> None:
    job = shell(RUN, "echo ${#TOKEN}; exit 1", secrets={"TOKEN": "hunter2"}, restart=again(max=1))
    await runs.agent.start(job)
    await runs.ended(RUN)
    assert (runs.folder(RUN) / "log").read_bytes() == b"7\n7\n"
    files = [path.read_bytes() for path in runs.home.rglob("*") if path.is_file()]
    assert not [text for text in files if b"hunter2" in text]


async def test_a_pause_is_told_and_doubles(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "exit 1", restart=again(max=3, backoff_s=0.4)))
    record = await runs.reaches(RUN, "starting")
    assert record.next_s is not None and record.restart_in_s is not None
    assert 0.0 <= record.restart_in_s <= 0.4
    await runs.ended(RUN)
    pauses = [e.facts["in_s"] for e in await told(runs) if e.name == "restart_due"]
    assert pauses == [0.4, 0.8, 1.6]
    assert (await runs.agent.status(RUN)).next_s is None


async def test_a_stop_ends_the_pause_and_all_restarts(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "exit 5", restart=again(backoff_s=600.0)))
    await runs.reaches(RUN, "starting")
    await until(lambda: b"restart_due" in (runs.folder(RUN) / "events.jsonl").read_bytes())
    outcome = await runs.agent.stop(RUN)
    assert (outcome.left, outcome.record.state, outcome.record.code) == ((), "exited", 5)
    assert outcome.record.attempt == 1


async def test_a_job_that_is_stopped_is_not_started_again(runs: Runs) -> None:
    await runs.agent.start(
        shell(RUN, "echo $$ > $HOME/job; exec sleep 600", restart=again("always"))
    )
    await runs.pid_of("job")
    outcome = await runs.agent.stop(RUN)
    assert (outcome.record.state, outcome.record.by, outcome.record.attempt) == (
        "exited", "cockpit", 1,
    )  # fmt: skip


async def test_what_is_left_of_an_attempt_is_gone_before_the_next(runs: Runs) -> None:
    """A worker that outlives its parent holds the card and the port that the next attempt needs."""
    script = (
        "[ $COCKPIT_ATTEMPT = 2 ] && exit 0;"
        "(trap '' INT HUP; exec setsid sleep 600) & echo $! > $HOME/rest; exit 1"
    )
    await runs.agent.start(shell(RUN, script, restart=again(max=1)))
    rest = await runs.pid_of("rest")
    record = await runs.ended(RUN)
    assert (record.code, record.attempt, alive(rest)) == (0, 2, False)


async def test_one_tail_sees_every_attempt(runs: Runs) -> None:
    await runs.agent.start(
        shell(RUN, "echo try $COCKPIT_ATTEMPT; exit 7", restart=again(backoff_s=0.2))
    )
    frames = [frame async for frame in runs.agent.tail(RUN)]
    assert b"".join(f.data for f in frames if isinstance(f, Data)) == b"try 1\ntry 2\ntry 3\n"
    assert isinstance(frames[-1], End) and frames[-1].record.attempt == 3


async def test_the_record_of_an_earlier_attempt_is_none_of_a_later_one(runs: Runs) -> None:
    """The supervisor dies in the second attempt: the first one's code must not be taken for its."""
    script = "[ $COCKPIT_ATTEMPT = 1 ] && exit 3; echo $$ > $HOME/job; exec sleep 600"
    await runs.agent.start(shell(RUN, script, restart=again()))
    job = await runs.pid_of("job")
    os.kill(runs.supervisor_pid(RUN), signal.SIGKILL)
    await until(lambda: not alive(runs.supervisor_pid(RUN)))
    record = await runs.agent.status(RUN)
    assert (record.state, record.degraded, record.attempt) == ("running", "supervisor_died", 2)
    os.kill(job, signal.SIGKILL)
    assert (await runs.ended(RUN)).signal == signal.SIGKILL


async def test_events_are_bounded_and_the_newest_are_kept(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "exit 1", restart=again(max=60)))
    await runs.ended(RUN)
    events = await told(runs)
    assert len(events) == 128 and events[-1].number == 2 * 61 + 60
    assert (runs.folder(RUN) / "events.jsonl").stat().st_size == 128 * 256


# a lost run is started again by whoever still has its profile


async def lost(runs: Runs, script: str = "echo $$ > $HOME/job; exec sleep 600") -> None:
    """A run whose host restarted while it ran."""
    folder = await killed(runs, RUN, script, restart=again("on-lost"))
    supervisor = json.loads((folder / "sup.json").read_text())
    supervisor["pid1_start"] += 1
    write_record(folder / "sup.json", supervisor)


async def test_a_lost_run_goes_on_in_the_same_folder_and_log(runs: Runs) -> None:
    await lost(runs, "echo up; echo $$ > $HOME/job; exec sleep 600")
    record = await runs.agent.status(RUN)
    assert (record.state, record.reason, record.restart_on) == ("lost", "host_restarted", "on-lost")
    policy = again("on-lost", resume_args=("--resume",))
    job = spec(RUN, "sh", "-c", 'echo "$0 $COCKPIT_ATTEMPT"; exit 4', restart=policy)
    reply = await restart(runs.agent, job, 2)
    assert not reply.existed
    record = await runs.ended(RUN)
    assert (record.state, record.code, record.attempt) == ("exited", 4, 2)
    assert (runs.folder(RUN) / "log").read_bytes() == b"up\n--resume 2\n"
    assert [r.attempt for r in await runs.agent.list()] == [2]


async def test_what_was_cut_out_of_a_log_stays_out_after_a_restart_of_the_host(runs: Runs) -> None:
    script = "yes 0123456789abcde | head -c 4000000; echo $$ > $HOME/job; exec sleep 600"
    await runs.agent.start(shell(RUN, script, log_max_mib=1, restart=again("on-lost")))
    job = await runs.pid_of("job")
    folder = runs.folder(RUN)
    await until(lambda: b"hole" in (folder / "hb").read_bytes(), "the middle is given back")
    before = await runs.agent.status(RUN)
    for pid in (runs.supervisor_pid(RUN), before.job_pid or 0, job):
        os.kill(pid, signal.SIGKILL)
    await runs.ended(RUN)
    supervisor = json.loads((folder / "sup.json").read_text())
    write_record(folder / "sup.json", {**supervisor, "pid1_start": supervisor["pid1_start"] + 1})
    await restart(runs.agent, shell(RUN, "exit 4", restart=again("on-lost")), 2)
    record = await runs.ended(RUN)
    assert record.log_hole is not None and record.log_hole == before.log_hole
    frames = [frame async for frame in runs.agent.tail(RUN)]
    assert b"\0" not in b"".join(f.data for f in frames if isinstance(f, Data))


async def test_of_two_who_start_a_lost_run_again_one_does(runs: Runs) -> None:
    await lost(runs)
    job = shell(RUN, "echo once; exit 4", restart=again("on-lost"))
    other = runs.transport.agent()
    await other.open()
    try:
        replies = await asyncio.gather(restart(runs.agent, job, 2), restart(other, job, 2))
    finally:
        await other.close()
    assert sorted(reply.existed for reply in replies) == [False, True]
    await runs.ended(RUN)
    assert (runs.folder(RUN) / "log").read_bytes() == b"once\n"
    assert (await restart(runs.agent, job, 3)).existed  # it is not lost any more
    assert (await restart(runs.agent, job, 2)).existed


async def test_a_restart_that_cannot_be_leaves_the_lost_run_as_it_was(runs: Runs) -> None:
    await lost(runs)
    with pytest.raises(LaunchFailed) as refused:
        await restart(runs.agent, shell(RUN, "true", cwd="~/missing"), 2)
    assert refused.value.facts["why"] == "no_cwd"
    assert (await runs.agent.status(RUN)).state == "lost"
    with pytest.raises(LaunchFailed) as refused:
        await restart(runs.agent, spec(RUN, "x" * 200_000), 2)
    assert refused.value.facts["why"] == "not_started"
    assert runs.folder(RUN).is_dir()


async def test_a_list_hears_of_a_lost_run_that_somebody_else_started_again(runs: Runs) -> None:
    await lost(runs)
    assert [record.state for record in await runs.agent.list()] == ["lost"]
    other = runs.transport.agent()
    await other.open()
    try:
        await restart(other, shell(RUN, "exit 4", restart=again("on-lost")), 2)
    finally:
        await other.close()
    await runs.ended(RUN)
    assert [record.state for record in await runs.agent.list()] == ["exited"]
