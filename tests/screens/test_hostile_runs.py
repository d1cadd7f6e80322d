"""A host's own words on the screens about runs: nothing that a terminal would obey gets through."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.incidents import Evidence
from cockpit.domain.models import HostName, RunId
from cockpit.engine.api import Check, LogLine, StopReport
from cockpit.errors import LaunchFailed, Problem, ProfileError
from tests.screens.fake_engine import FakeEngine, FakeLog, oom_incident, run_view
from tests.screens.fleets import HOSTILE
from tests.screens.run_scenes import busy_engine, cockpit, plan_of, workers_done
from tests.screens.test_hostile import harmful

EVIL = HOSTILE


def evil_engine() -> FakeEngine:
    engine = busy_engine()
    engine.runs._views.clear()
    engine.incidents._incidents.clear()
    view = run_view(
        profile="p" + EVIL, reason="r" + EVIL, state="exited", code=1, kind="k" + EVIL,
        command=("c" + EVIL,), tags=("t" + EVIL,), degraded="d" + EVIL, leftover_pids=(1,),
    )  # fmt: skip
    engine.runs.put(view)
    log = FakeLog([LogLine(1, 0, "l" + EVIL, ((0, 3, "bold"),), None), "ok"], ended=True)
    log.open_text = "o" + EVIL
    engine.logs[view.run] = log
    incident = oom_incident(profile="p" + EVIL, state_why="w" + EVIL)
    finding = replace(incident.finding, text="f" + EVIL, facts={"path": "x" + EVIL}, line=1)
    evidence = (Evidence(None, "s" + EVIL, "e" + EVIL, line=1),)
    engine.incidents.put(replace(incident, finding=finding, evidence=evidence))
    engine.stop_reports[view.run] = StopReport(view.run, ("INT",), (1,), ("cmd" + EVIL,))
    entry = replace(
        engine.profile_entries[0], name="n" + EVIL, kind="k" + EVIL, description="d" + EVIL
    )
    engine.profile_entries = [entry]
    plan = plan_of(busy_engine().profile_entries[0])
    engine.plans[str(entry.path)] = replace(
        plan,
        argv=("a" + EVIL,), cwd="c" + EVIL, script="s" + EVIL, env_set={"E": "v" + EVIL},
        cards=tuple(replace(card, name="g" + EVIL, holder="h" + EVIL) for card in plan.cards),
        candidates=tuple(replace(card, name="g" + EVIL, holder="h" + EVIL) for card in plan.candidates),
        checks=(Check("disk_low", "warning", {"path": "x" + EVIL}),),
    )  # fmt: skip
    return engine


@pytest.mark.parametrize(
    "keys",
    [
        ("2",), ("2", "enter"), ("2", "enter", "t"), ("2", "enter", "W"), ("2", "x"), ("3",),
        ("3", "x"), ("3", "enter"), ("4",), ("4", "V"), ("4", "ctrl+g"),
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
async def test_no_screen_sends_what_a_terminal_would_obey(
    keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    async with cockpit(evil_engine(), keys[0], size=size) as (app, pilot):
        await workers_done(app)
        if keys[0] == "4":
            app.screen.action_plan_again()  # type: ignore[attr-defined]
            await workers_done(app)
        for key in keys[1:]:
            await pilot.press(key)
            await pilot.pause()
        sent = app.take()
        assert "PWNED" in sent, "the attack did not reach the screen, so nothing was tested"
        assert harmful(sent) == {}


async def test_messages_about_failures_are_as_harmless() -> None:
    engine = evil_engine()
    engine.failures["launch"] = LaunchFailed(host=HostName("h100"), why="w" + EVIL)
    problem = Problem("unknown_key", file="f" + EVIL, line=1, key="k" + EVIL, given="g" + EVIL)
    for key in engine.plans:
        engine.plans[key] = ProfileError(problems=(problem,), file="f" + EVIL)
    async with cockpit(engine, "4") as (app, pilot):
        app.screen.action_plan_again()  # type: ignore[attr-defined]
        await workers_done(app)
        await pilot.pause()
        assert harmful(app.take()) == {}


async def test_what_a_stop_left_is_as_harmless() -> None:
    engine = evil_engine()
    run = RunId("r-7f3a")
    engine.runs.put(replace(run_view(), profile="p" + EVIL))
    async with cockpit(engine, "2", "x", "tab", "enter") as (app, _pilot):
        await workers_done(app)
        assert "cmd" in app.text
        assert harmful(app.take()) == {}
        assert engine.asked("stop") == [(run,)]
