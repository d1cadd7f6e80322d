"""Hooks on the host: before the job, whose failure is the run's end, and after it, whose failure is not."""

from __future__ import annotations

import os

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import RestartPolicy
from cockpit.engine.agent_care import events_of
from tests.remote.supervised import Runs, alive, poke, shell

RUN = RunId("a-1")


def text_of(runs: Runs) -> str:
    return (runs.folder(RUN) / "log").read_text()


async def test_a_hook_runs_first_with_the_jobs_environment_and_into_its_log(runs: Runs) -> None:
    (runs.home / "work").mkdir()
    before = "echo $PLAIN ${#TOKEN} $COCKPIT_RUN $(basename $PWD); echo err >&2"
    await runs.agent.start(
        shell(
            RUN, "echo job", before=before, cwd="~/work",
            env={"PLAIN": "it's"}, secrets={"TOKEN": "hunter2"},
        )
    )  # fmt: skip
    record = await runs.ended(RUN)
    assert (record.state, record.code) == ("exited", 0)
    assert text_of(runs) == "it's 7 a-1 work\nerr\njob\n"


async def test_a_hook_that_fails_ends_the_run_before_its_job(runs: Runs) -> None:
    policy = RestartPolicy("always", 3, 0.0)
    job = shell(RUN, "echo job", before="echo no; exit 9", after="echo after", restart=policy)
    await runs.agent.start(job)
    record = await runs.ended(RUN)
    assert (record.code, record.reason, record.started_s) == (9, "hook_failed", None)
    assert (record.attempt, text_of(runs)) == (1, "no\n")


async def test_a_hook_that_is_no_shell_text_says_so_in_the_log(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "echo job", before="if then ("))
    record = await runs.ended(RUN)
    assert record.reason == "hook_failed" and record.code not in (None, 0)
    assert "yntax error" in text_of(runs)


async def test_a_hook_that_a_signal_ends_has_failed(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "echo job", before="kill -9 $$"))
    record = await runs.ended(RUN)
    assert (record.code, record.reason) == (137, "hook_failed")


async def test_a_start_is_confirmed_while_its_hook_still_runs(runs: Runs) -> None:
    os.mkfifo(runs.home / "go")
    before = "exec 5<> $HOME/go; echo $$ > $HOME/hook; read x <&5"
    reply = await runs.agent.start(shell(RUN, "exit 3", before=before))
    assert reply.record.state == "starting"
    await runs.pid_of("hook")
    poke(runs.home / "go")
    assert (await runs.ended(RUN)).code == 3


async def test_a_stop_during_the_hook_cancels_the_run(runs: Runs) -> None:
    await runs.agent.start(
        shell(RUN, "echo job", before="echo $$ > $HOME/hook; exec sleep 600", after="echo after")
    )
    hook = await runs.pid_of("hook")
    outcome = await runs.agent.stop(RUN)
    assert outcome.left == () and not alive(hook)
    assert (outcome.record.state, outcome.record.reason) == ("exited", "cancelled")
    assert text_of(runs) == ""


async def test_the_hook_after_knows_the_code_and_changes_nothing(runs: Runs) -> None:
    await runs.agent.start(
        shell(RUN, "echo job; exit 7", after="echo after $COCKPIT_EXIT_CODE; exit 3")
    )
    record = await runs.ended(RUN)
    assert (record.code, record.reason, record.by) == (7, "exited", "job")
    assert text_of(runs) == "job\nafter 7\n"
    (ended,) = [e for e in await events_of(runs.agent, RUN) if e.name == "hook_ended"]
    assert (ended.facts["hook"], ended.facts["code"]) == ("after", 3)


async def test_the_hook_after_runs_once_after_the_last_attempt(runs: Runs) -> None:
    policy = RestartPolicy("on-failure", 2, 0.0)
    job = shell(RUN, "exit 7", before="echo before", after="echo after", restart=policy)
    await runs.agent.start(job)
    assert (await runs.ended(RUN)).attempt == 3
    assert text_of(runs) == "before\nafter\n"


async def test_the_hook_after_hears_of_a_signal_as_a_shell_does(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "kill -9 $$", after="echo $COCKPIT_EXIT_CODE"))
    record = await runs.ended(RUN)
    assert (record.signal, text_of(runs)) == (9, "137\n")


async def test_a_stop_is_over_when_the_hook_after_is(runs: Runs) -> None:
    await runs.agent.start(
        shell(RUN, "echo $$ > $HOME/job; exec sleep 600", after="echo after; exit 1")
    )
    await runs.pid_of("job")
    outcome = await runs.agent.stop(RUN)
    assert outcome.signals == ("INT",) and outcome.record.by == "cockpit"
    assert text_of(runs) == "after\n"


async def test_a_hook_after_that_hangs_is_ended_by_the_next_stop(runs: Runs) -> None:
    after = "trap '' INT TERM; echo $$ > $HOME/hook; sleep 600"
    await runs.agent.start(shell(RUN, "exit 7", after=after))
    hook = await runs.pid_of("hook")
    record = await runs.agent.status(RUN)
    assert (record.state, record.by) == ("stopping", None)  # nobody asked for it
    outcome = await runs.agent.stop(RUN, int_s=0.1, term_s=0.1)
    assert outcome.left == () and not alive(hook)
    assert (outcome.record.code, outcome.record.by) == (7, "job")


async def test_the_log_ends_after_what_the_hook_says(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "echo job", after="sleep 0.3; echo after"))
    frames = [frame async for frame in runs.agent.tail(RUN)]
    assert b"".join(getattr(frame, "data", b"") for frame in frames) == b"job\nafter\n"
