"""Hooks on the host: before the job, whose failure is the run's end, and after it, whose failure is not."""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import Card, GpuRequest, RestartPolicy
from cockpit.engine.agent_care import adopt, events_of
from tests.remote.supervised import Runs, alive, poke, shell, until

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


# -- a supervisor that dies while a hook runs ---------------------------------------------------

HOOK = "exec 5<> $HOME/go; echo $$ > $HOME/hook; read x <&5; "


async def bereaved(runs: Runs, script: str, **hooks: object) -> int:
    """A run whose hook waits for a word, without its supervisor; the pid of the hook."""
    os.mkfifo(runs.home / "go")
    await runs.agent.start(shell(RUN, script, **hooks))
    hook = await runs.pid_of("hook")
    await kill_supervisor(runs)
    return hook


async def kill_supervisor(runs: Runs) -> None:
    supervisor = runs.supervisor_pid(RUN)
    os.kill(supervisor, signal.SIGKILL)
    await until(lambda: not alive(supervisor))


async def test_a_hook_without_its_supervisor_is_no_running_job(runs: Runs) -> None:
    hook = await bereaved(runs, "echo job", before=HOOK + "echo hook")
    record = await runs.agent.status(RUN)
    assert (record.state, record.degraded, record.started_s) == (
        "starting", "supervisor_died", None,
    )  # fmt: skip
    poke(runs.home / "go")
    await until(lambda: not alive(hook))
    record = await runs.ended(RUN)
    assert (record.state, record.reason, record.started_s) == ("lost", "hook_cut_off", None)
    assert text_of(runs) == "hook\n"


@pytest.mark.parametrize("code", [0, 9], ids=["succeeds", "fails"])
async def test_an_adopted_hook_is_followed_by_its_job_if_it_succeeds(runs: Runs, code: int) -> None:
    script = "echo job ${#TOKEN} $PLAIN; exit 4"
    given = {"secrets": {"TOKEN": "hunter2"}, "env": {"PLAIN": "x"}}
    await bereaved(runs, script, before=f"{HOOK} exit {code}", after="echo after", **given)
    record = await adopt(runs.agent, RUN)
    assert (record.state, record.degraded) == ("starting", None)
    poke(runs.home / "go")
    record = await runs.ended(RUN)
    if code:
        assert (record.code, record.reason, text_of(runs)) == (9, "hook_failed", "")
    else:
        assert (record.code, record.reason, record.by) == (4, "exited", "job")
        assert text_of(runs) == "job 7 x\nafter\n" and record.started_s is not None


async def test_an_adopted_hook_that_is_killed_whole_starts_no_job(runs: Runs) -> None:
    hook = await bereaved(runs, "echo job", before=HOOK)
    await adopt(runs.agent, RUN)
    os.killpg(os.getpgid(hook), signal.SIGKILL)
    record = await runs.ended(RUN)
    assert (record.reason, record.code, record.started_s) == ("hook_failed", None, None)
    assert text_of(runs) == ""


@pytest.mark.parametrize("by", ["supervisor", "agent"])
async def test_a_stop_of_a_hook_without_its_supervisor_cancels_the_run(runs: Runs, by: str) -> None:
    hook = await bereaved(runs, "echo job", before=HOOK)
    if by == "supervisor":
        await adopt(runs.agent, RUN)
    outcome = await runs.agent.stop(RUN)
    assert outcome.left == () and not alive(hook)
    record = outcome.record
    assert (record.state, record.reason, record.by) == ("exited", "cancelled", "cockpit")


async def test_the_job_of_an_adopted_hook_has_the_cards(runs: Runs) -> None:
    card = Card(3, f"GPU-{uuid.uuid4()}")
    request = GpuRequest((card,), 1)
    script = "echo $CUDA_VISIBLE_DEVICES; flock -n $LOCK true || echo held"
    lock = Path(f"/dev/shm/cockpit-{os.geteuid()}/gpu-{card.uuid}.lock")
    try:
        await bereaved(runs, script, before=HOOK, gpus=request, env={"LOCK": str(lock)})
        await adopt(runs.agent, RUN)
        poke(runs.home / "go")
        assert (await runs.ended(RUN)).code == 0
        assert text_of(runs) == "3\nheld\n"
    finally:
        lock.unlink(missing_ok=True)


@pytest.mark.parametrize("is_adopted", [True, False], ids=["adopted", "left"])
async def test_the_end_of_a_job_is_known_though_nobody_waits_for_the_hook_after_it(
    runs: Runs, is_adopted: bool
) -> None:
    """Its sh was killed with it, so that the supervisor alone had its signal."""
    hook = await bereaved(runs, "kill -9 $PPID $$", after=HOOK + "echo after $COCKPIT_EXIT_CODE")
    record = await runs.agent.status(RUN)
    assert (record.state, record.degraded) == ("stopping", "supervisor_died")
    assert record.started_s is not None
    if is_adopted:
        record = await adopt(runs.agent, RUN)
        assert (record.state, record.degraded) == ("stopping", None)
    poke(runs.home / "go")
    await until(lambda: not alive(hook))
    record = await runs.ended(RUN)
    assert (record.state, record.signal, record.by) == ("exited", 9, "job")
    assert record.started_s is not None and text_of(runs) == "after 137\n"


async def test_a_run_that_was_never_let_go_was_never_started(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "echo job", hold_s=60.0))
    await kill_supervisor(runs)
    record = await runs.ended(RUN)
    assert (record.state, record.reason) == ("lost", "never_started")
