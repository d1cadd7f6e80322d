"""Launch: the plan is seen before anything is sent, and Go asks once more."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from cockpit.domain.models import HostName, RunId
from cockpit.engine.api import Check, ProfileEntry
from cockpit.errors import LaunchFailed, NotNow, Problem, ProfileError
from cockpit.screens import launch
from cockpit.screens.launch import LaunchScreen
from cockpit.screens.run import RunScreen
from cockpit.widgets.options import UiOptions
from cockpit.widgets.row_list import RowList
from tests.screens.fake_engine import FakeEngine, FakeLog, run_view
from tests.screens.run_scenes import WatchedApp, busy_engine, cockpit, plan_of, workers_done


@pytest.fixture(autouse=True)
def _a_cursor_that_never_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """No timer plans by itself: a test says when."""
    monkeypatch.setattr(launch, "PLAN_AFTER_S", 3_600.0)


def ready_engine() -> FakeEngine:
    """Every shipped profile has a plan."""
    engine = busy_engine()
    for entry in engine.profile_entries:
        engine.plans[str(entry.path)] = plan_of(entry)
    engine.runs.put(run_view("r-new", profile="vllm", host=HostName("h100")))
    engine.logs[RunId("r-new")] = FakeLog(["hello"])
    return engine


def broken_engine(error: Exception) -> FakeEngine:
    engine = ready_engine()
    for key in engine.plans:
        engine.plans[key] = error  # type: ignore[assignment]
    return engine


async def planned(app: WatchedApp, pilot: Pilot[str], profile: str = "vllm") -> None:
    """Choose a profile and see its plan, without waiting for the cursor to rest."""
    screen = app.screen
    assert isinstance(screen, LaunchScreen)
    entry = next(one for one in app.engine.profiles() if one.name == profile)
    screen.query_one("#profiles", RowList).select(str(entry.path))
    await pilot.pause()
    screen.action_plan_again()
    await workers_done(app)
    await pilot.pause()


async def test_where_with_what_and_at_what_price() -> None:
    async with cockpit(ready_engine(), "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.pause()
        for words in (
            "h100, GPU 4 (H100 80GB)", "8.90 USD/h", "vllm serve Qwen/Qwen2.5-7B-Instruct",
            "HF_TOKEN (secret)", "localhost:8000 -> 8000", "gpu_memory_utilization = 0.9",
            "[✓] h100:4", "llama-sft", "Go: h100, GPU 4 (H100 80GB), 8.90 USD/h",
        ):  # fmt: skip
            assert words in app.text
        assert app.engine.asked("launch") == []  # type: ignore[attr-defined]


async def test_checks_show_as_words() -> None:
    async with cockpit(ready_engine(), "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.pause()
        assert "│ ok  " in app.text
        assert "│ !   " in app.text


async def test_scrolling_through_the_list_asks_for_no_plan() -> None:
    engine = ready_engine()
    async with cockpit(engine, "4") as (_app, pilot):
        await pilot.press("down", "down", "down", "down")
        assert engine.asked("plan") == []


async def test_enter_moves_on_to_go_and_held_it_starts_nothing() -> None:
    engine = ready_engine()
    async with cockpit(engine, "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("enter")
        assert app.focused is app.screen.query_one("#cards")
        await pilot.press("enter")
        assert app.focused is app.screen.query_one("#go")
        for _ in range(9):
            await pilot.press("enter")
            await pilot.pause()
        assert engine.asked("launch") == []


async def test_go_asks_names_the_price_and_then_shows_the_run() -> None:
    engine = ready_engine()
    async with cockpit(engine, "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("ctrl+g")
        await pilot.pause()
        assert "Start vllm?" in app.text
        assert "Price: 8.90 USD/h." in app.text
        assert "closing cockpit" in app.text
        await pilot.press("tab", "enter")
        await workers_done(app)
        await pilot.pause()
        assert len(engine.asked("launch")) == 1
        assert isinstance(app.screen, RunScreen)


async def test_a_launch_that_fails_says_why_and_stays() -> None:
    engine = ready_engine()
    engine.failures["launch"] = LaunchFailed(host="h100", why="no space left")
    async with cockpit(engine, "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("ctrl+g")
        await pilot.pause()
        await pilot.press("tab", "enter")
        await workers_done(app)
        await pilot.pause()
        assert "vllm was not started" in app.text
        assert "launch_failed" in app.text


async def test_space_takes_and_leaves_cards_of_one_host() -> None:
    engine = ready_engine()
    async with cockpit(engine, "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("enter", "down", "space")
        await workers_done(app)
        assert engine.asked("plan")[-1][1:3] == ((HostName("h100"),), (4, 5))
        await pilot.press("up", "space")
        await workers_done(app)
        assert engine.asked("plan")[-1][2] is None


async def test_a_host_chosen_elsewhere_is_filled_in_and_esc_frees_it() -> None:
    engine = ready_engine()
    async with cockpit(engine, "4") as (app, pilot):
        await workers_done(app)
        screen = app.screen
        assert isinstance(screen, LaunchScreen)
        screen.prefill(HostName("h100"), 5)
        await planned(app, pilot)
        assert engine.asked("plan")[-1][1:3] == ((HostName("h100"),), (5,))
        await pilot.pause()
        assert "only h100; esc any host" in app.text
        await pilot.press("escape")
        await planned(app, pilot)
        assert engine.asked("plan")[-1][1:3] == ((), None)


async def test_every_mistake_of_a_file_is_shown_with_its_line() -> None:
    problems = (
        Problem("unknown_key", file="vllm.toml", line=7, key="gpus.min_fre", suggestion="min_free"),
        Problem(
            "time_needs_unit", file="vllm.toml", line=12, key="stop.int", given="15", example="15s"
        ),
    )
    async with cockpit(broken_engine(ProfileError(problems=problems, file="vllm.toml")), "4") as (
        app,
        pilot,
    ):
        await planned(app, pilot)
        await pilot.pause()
        assert "vllm.toml line 7" in app.text and "gpus.min_fre" in app.text
        assert "vllm.toml line 12" in app.text and "stop.int" in app.text
        assert app.screen.query_one("#go", Button).disabled


async def test_no_free_card_is_a_message_and_not_a_dialog() -> None:
    engine = broken_engine(NotNow(profile="vllm", count=2))
    async with cockpit(engine, "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("ctrl+g")
        await pilot.pause()
        assert isinstance(app.screen, LaunchScreen)
        assert "no_free_gpu" in app.text
        assert "[ ] h100:4" in app.text
        await pilot.press("enter", "space")
        await workers_done(app)
        assert engine.asked("plan")[-1][1:3] == ((HostName("h100"),), (4,))


async def test_a_blocked_plan_cannot_be_started() -> None:
    engine = ready_engine()
    from dataclasses import replace

    for key, plan in engine.plans.items():
        engine.plans[key] = replace(plan, checks=(Check("port_taken", "blocked", {"port": 8000}),))  # type: ignore[type-var]
    async with cockpit(engine, "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("ctrl+g")
        await pilot.pause()
        assert isinstance(app.screen, LaunchScreen)
        assert app.screen.query_one("#go", Button).disabled
        assert "Go: not as it stands" in app.text


async def test_the_exact_script_and_back() -> None:
    async with cockpit(ready_engine(), "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("V")
        await pilot.pause()
        assert "export CUDA_VISIBLE_DEVICES=4" in app.text
        assert "[vllm]" not in app.text
        await pilot.press("escape")
        await pilot.pause()
        assert "[vllm]" in app.text


async def test_a_ready_profile_is_copied_and_becomes_ones_own(tmp_path: Path) -> None:
    engine = ready_engine()
    target = tmp_path / "profiles" / "mine.toml"
    async with cockpit(engine, "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("C")
        await pilot.pause()
        app.screen.query_one(Input).value = str(target)
        await pilot.press("enter")
        await workers_done(app)
        assert 'name = "vllm"' in target.read_text()


async def test_a_copy_never_replaces_a_file(tmp_path: Path) -> None:
    from cockpit.screens.launch_files import _check_target

    taken = tmp_path / "a.toml"
    taken.write_text("")
    assert not _check_target(str(taken))[0]
    assert not _check_target(str(tmp_path / "a.txt"))[0]
    assert _check_target(str(tmp_path / "b.toml"))[0]


async def test_a_shipped_profile_is_not_edited_in_place() -> None:
    async with cockpit(ready_engine(), "4") as (app, pilot):
        await planned(app, pilot)
        await pilot.press("e")
        assert "C makes a copy" in app.said[-1]


async def test_ones_own_profiles_come_first() -> None:
    engine = ready_engine()
    mine = ProfileEntry("zz-mine", Path("/nowhere/zz.toml"), "home", "command", "", problems=2)
    engine.profile_entries.append(mine)
    engine.plans[str(mine.path)] = ProfileError(file="zz.toml")
    async with cockpit(engine, "4") as (app, _pilot):
        await workers_done(app)
        assert "! zz-mine" in app.rows[2]


def test_options_hold_where_the_home_is() -> None:
    assert UiOptions().hosts_file is None


@pytest.mark.parametrize("key", ["ctrl+g", "space", "V", "C", "e", "y", "enter", "escape"])
async def test_no_key_minds_that_there_is_no_profile(key: str) -> None:
    engine = FakeEngine().with_host("vast-a")
    async with cockpit(engine, "4", key) as (app, _pilot):
        assert app.is_running
