"""Incidents: the list by urgency, the card, and what one can do about one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.screens.host import HostScreen
from cockpit.screens.incidents import IncidentsScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.run_lines import trouble_lines
from cockpit.widgets.log_view import LogView
from tests.screens.fake_engine import FakeEngine, leak_incident, oom_incident
from tests.screens.run_scenes import busy_engine, cockpit, plan_of, workers_done

OOM_KEY = "r-7f3a:gpu_oom"


async def test_the_card_tells_the_whole_story() -> None:
    async with cockpit(busy_engine(), "3") as (app, _pilot):
        for words in (
            "Out of GPU memory", "qwen-lora vast-a:0", "22:12:47, 33 s ago",
            "What happened", "vast-a goes on costing 0.42 USD/h.",
            "Why we think so", "log 405", "tried 1.75 GiB",
            "What to do", "a applies it", '+ accelerate.args = ["--batch", "4"]',
            "What became of it", "22:12:47", "opened",
        ):  # fmt: skip
            assert words in app.text


async def test_a_newer_incident_of_the_same_profile_names_the_earlier_one() -> None:
    engine = busy_engine()
    engine.incidents.put(oom_incident("r-old:gpu_oom", opened_s=1_699_990_000.0, state="closed"))
    async with cockpit(engine, "3") as (app, _pilot):
        assert "before  " in app.text
        assert "H: 1 settled" in app.text


async def test_a_stale_host_is_said_not_to_be_ok() -> None:
    async with cockpit(busy_engine(), "3", "down") as (app, _pilot):
        assert "no data is not ok" in app.text


async def test_seen_stays_in_the_list_and_is_undone() -> None:
    engine = busy_engine()
    async with cockpit(engine, "3", "o") as (app, pilot):
        found = engine.incidents.get(OOM_KEY)
        assert found is not None and found.state == "seen"
        assert "seen" in app.text
        await pilot.press("u")
        found = engine.incidents.get(OOM_KEY)
        assert found is not None and found.state == "open"


async def test_closing_takes_a_reason_and_h_shows_it_again() -> None:
    engine = busy_engine()
    async with cockpit(engine, "3", "x", "f") as (app, pilot):
        await pilot.pause()
        found = engine.incidents.get(OOM_KEY)
        assert found is not None and (found.state, found.state_why) == ("closed", "fixed")
        assert "Out of GPU memory" not in app.rows[2]
        await pilot.press("H")
        await pilot.pause()
        assert "closed" in app.text


async def test_escape_from_the_reasons_closes_nothing() -> None:
    engine = busy_engine()
    async with cockpit(engine, "3", "x", "escape"):
        found = engine.incidents.get(OOM_KEY)
        assert found is not None and found.state == "open"


async def test_enter_goes_to_the_evidence_in_the_log() -> None:
    async with cockpit(busy_engine(), "3", "enter") as (app, pilot):
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)
        state = app.screen.query_one(LogView).state
        assert state is not None
        assert (state.window.cursor, state.window.follow) == (405, False)


async def test_enter_on_an_incident_without_a_run_goes_to_the_host() -> None:
    engine = busy_engine()
    engine.incidents.put(replace(leak_incident("a100:leak"), run=None, opened_s=1_700_000_000.0))
    async with cockpit(engine, "3") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, IncidentsScreen)
        screen.select("a100:leak")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, HostScreen)


async def test_the_card_is_copied_as_text() -> None:
    async with cockpit(busy_engine(), "3", "y") as (app, _pilot):
        assert app.copied.startswith("✗ Out of GPU memory")
        assert "What became of it" in app.copied


async def test_apply_from_here_asks_with_the_diff() -> None:
    engine = busy_engine()
    engine.plans["qwen-lora"] = plan_of(engine.profile_entries[0])
    async with cockpit(engine, "3", "a") as (app, pilot):
        await pilot.pause()
        assert "Relaunch qwen-lora with this change?" in app.text
        await pilot.press("enter", "enter")
        assert engine.asked("launch") == []


async def test_apply_without_a_patch_says_so() -> None:
    engine = busy_engine()
    async with cockpit(engine, "3", "down", "a") as (app, _pilot):
        await workers_done(app)
        assert "No remedy" in app.said[-1]


async def test_an_empty_list_says_what_is_watched() -> None:
    engine = FakeEngine().with_host("vast-a", "live")
    async with cockpit(engine, "3") as (app, _pilot):
        assert "All quiet for" in app.text
        assert "1 hosts" in app.text or "1 host" in app.text


async def test_an_empty_list_is_honest_about_hosts_that_do_not_answer() -> None:
    engine = FakeEngine().with_host("a100", "unreachable", "link_lost")
    async with cockpit(engine, "3") as (app, _pilot):
        assert "Nothing open on what we can see; a100" in app.text


async def test_a_new_incident_shows_at_once_and_moves_no_cursor() -> None:
    engine = busy_engine()
    async with cockpit(engine, "3", "down") as (app, pilot):
        engine.put_incident(oom_incident("r-9:gpu_oom", run=RunId("r-9"), host=HostName("h100")))
        await pilot.pause()
        assert "h100:0" in app.text
        screen = app.screen
        assert isinstance(screen, IncidentsScreen)
        assert screen.chosen is not None and screen.chosen.key == "r-11c0:leak"


async def test_selecting_a_settled_one_shows_the_settled() -> None:
    engine = busy_engine()
    engine.incidents.put(oom_incident("r-old:gpu_oom", state="recovered"))
    async with cockpit(engine, "3") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, IncidentsScreen)
        screen.select("r-old:gpu_oom")
        await pilot.pause()
        assert screen.chosen is not None and screen.chosen.state == "recovered"


def test_a_line_bears_the_worst_of_its_incidents() -> None:
    fatal = oom_incident()
    warning = replace(fatal, key="w", finding=replace(fatal.finding, severity="warning"))
    assert trouble_lines([warning, fatal]) == {12_391: "fatal"}


@pytest.mark.parametrize(
    "key", ["a", "o", "x", "y", "u", "H", "n", "enter", "m", "e", "w", "z", "s", "slash"]
)
async def test_no_key_minds_an_empty_list(key: str) -> None:
    engine = FakeEngine().with_host("vast-a")
    async with cockpit(engine, "3", key) as (app, _pilot):
        assert app.is_running
