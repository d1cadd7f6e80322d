"""Hooks: facts by the environment alone, no secret in it, limits on time, number and rate."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from cockpit.engine.hooks import AT_ONCE, PER_MINUTE, Hooks, hook_environ
from tests.desk import until

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/", "HF_TOKEN": "hf_secret", "LC_ALL": "C"}


def hooks() -> Hooks:
    return Hooks(lambda: 0.0, ENVIRON)


async def test_facts_reach_the_hook_by_its_environment_as_harmless_lines(tmp_path: Path) -> None:
    evil = "$(touch /tmp/x); `id`\n\x1b[31mred"
    out = tmp_path / "out"
    script = f'printf "%s|%s|%s|%s" "$COCKPIT_RUN" "$COCKPIT_SUMMARY" "$COCKPIT_EXIT_CODE" "$HF_TOKEN" > {out}'
    ended = await hooks().run(script, {"run": "r-1", "summary": evil, "exit_code": None})
    assert ended.is_good
    run, summary, code, secret = out.read_text().split("|")
    assert (run, code, secret) == ("r-1", "", "")
    assert "\n" not in summary and "\x1b" not in summary and "$(touch /tmp/x)" in summary


def test_nothing_of_our_environment_but_the_ordinary_goes_along() -> None:
    environ = hook_environ({"run": "r"}, ENVIRON)
    assert environ == {
        "PATH": ENVIRON["PATH"], "HOME": "/", "LC_ALL": "C", "COCKPIT_RUN": "r", "COCKPIT_RUN_ID": "r",
    }  # fmt: skip


async def test_beside_its_run_on_one_computer_a_hook_is_not_taken_for_the_run(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    script = f'printf "%s " "$COCKPIT_RUN" > {out}; tr "\\0" "\\n" < /proc/$$/environ >> {out}'
    ended = await hooks().run(script, {"run": "r-1"}, on_its_host=True)
    assert ended.is_good
    told = out.read_text()
    assert told.startswith("r-1 ") and "COCKPIT_RUN=" not in told and "COCKPIT_RUN_ID=r-1" in told


async def test_a_failure_says_how_and_what_was_said_last() -> None:
    ended = await hooks().run("echo first; echo no room >&2; exit 3", {})
    assert (ended.why, ended.number, ended.said) == ("exit", 3, "no room")
    signalled = await hooks().run("kill -9 $$", {})
    assert (signalled.why, signalled.number) == ("signal", 9)


async def test_a_hook_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"trap '' TERM; sleep 600 & echo $! > {pid}; wait"
    ended = await hooks().run(script, {}, limit_s=0.3)
    assert ended.why == "timeout"
    child = int(pid.read_text())
    await until(lambda: not _is_alive(child), "its child is gone", 10.0)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def test_few_run_at_once_and_not_too_many_a_minute(tmp_path: Path) -> None:
    made = hooks()
    script = f"d={tmp_path}; echo >> $d/begun; while [ ! -e $d/go ]; do sleep 0.02; done"
    works = [asyncio.ensure_future(made.run(script, {})) for _ in range(PER_MINUTE + 3)]
    begun = tmp_path / "begun"
    await until(lambda: begun.exists() and len(begun.read_bytes()) >= AT_ONCE, "some run")
    refused = [work for work in works if work.done()]
    assert [work.result().why for work in refused] == ["too_many"] * 3
    assert len(begun.read_bytes()) == AT_ONCE
    (tmp_path / "go").touch()
    ends = await asyncio.gather(*works)
    assert sum(one.is_good for one in ends) == PER_MINUTE
