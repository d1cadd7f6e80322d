"""Code and results on the screen: counted before Go, asked about when there is much, told when it is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.code_files import SENT_NOTE, CodeFile, CodePlan, GitState
from cockpit.domain.models import HostName, RunId
from cockpit.engine.api import LaunchPlan
from cockpit.engine.code_planning import code_checks
from cockpit.engine.events import LaunchStep
from cockpit.screens.launch_words import go_dialog
from cockpit.screens.navigation import open_run
from cockpit.screens.plan_words import code_words, plan_paras
from cockpit.screens.run_facts import step_paras
from cockpit.widgets.look import Look
from tests.screens.fake_engine import FakeLog, run_view
from tests.screens.run_scenes import busy_engine, cockpit, plan_of

FILES = (CodeFile(b"train.py", 1200, 0o644), CodeFile("模型.bin".encode(), 5 << 20, 0o644))


def code(**changes: object) -> CodePlan:
    made = CodePlan(
        "/home/me/qwen", "~/qwen", "abc", FILES, True, GitState("0123456789abcdef", "main", True),
        max_bytes=1 << 30, max_files=100,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def plan(made: CodePlan) -> LaunchPlan:
    entry = busy_engine().profile_entries[0]
    return replace(plan_of(entry), code=made, checks=tuple(code_checks(made)))


def test_the_plan_says_what_goes_where_and_from_which_commit() -> None:
    assert code_words(code()) == (
        "2 files, 5.0 MiB, of /home/me/qwen go to ~/qwen (0123456789 main, with changes)"
    )
    assert code_words(code(git=None)).endswith("go to ~/qwen")
    text = "\n".join(
        "".join(piece[0] for piece in para.pieces) for para in plan_paras(plan(code()), [])
    )
    assert "code     2 files, 5.0 MiB" in text


def test_much_is_asked_about_with_what_makes_it_much() -> None:
    dialog = go_dialog(plan(code(max_files=1)), "qwen")
    told = "\n".join(dialog._follows)
    assert "more than is sent without asking" in told and "模型.bin 5.0 MiB" in told
    assert dialog._danger and dialog._confirm == "Send all of it, and start"
    calm = go_dialog(plan(code()), "qwen")
    assert not calm._danger and "2 files, 5.0 MiB" in "\n".join(calm._follows)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("fetched", "Fetched: 2 files, in /x."),
        ("fetched_nothing", "Nothing to fetch: no file there matches 2 files, in /x."),
        ("fetch_failed", "Results were not fetched. 2 files, in /x"),
    ],
)
async def test_what_was_fetched_is_said(step: str, words: str) -> None:
    engine = busy_engine()
    async with cockpit(engine) as (app, pilot):
        engine.publish(LaunchStep(RunId("r-1"), HostName("h100"), "fetching", 1.0, "1 of 2"))
        engine.publish(LaunchStep(RunId("r-1"), HostName("h100"), step, 1.0, "2 files, in /x"))
        await pilot.pause()
        assert app.said == [words]


async def test_results_are_fetched_when_somebody_asks() -> None:
    engine = busy_engine()
    engine.fetches.add(RunId("r-7"))
    engine.runs.put(run_view("r-7", profile="qwen", host=HostName("h100")))
    engine.logs[RunId("r-7")] = FakeLog(["hello"])
    async with cockpit(engine) as (app, pilot):
        open_run(app, RunId("r-7"))
        await pilot.pause()
        await pilot.press("F")
        await pilot.pause()
        assert engine.asked("fetch") == [(RunId("r-7"),)]
        assert app.said == ["Fetching the results of qwen ..."]
        engine.fetches.clear()
        await pilot.press("F")
        await pilot.pause()
        assert app.said[-1].startswith("qwen asks for no results")


def test_sending_is_a_step_of_the_run() -> None:
    engine = busy_engine()
    view = run_view("r-8", profile="qwen", host=HostName("h100"))
    view = replace(view, notes=((SENT_NOTE, "3 s, 2 of 41 files"),))
    paras = step_paras(engine, view, Look())
    text = "".join(piece[0] for piece in paras[0].pieces)
    assert text.endswith("code sent  3 s, 2 of 41 files")
