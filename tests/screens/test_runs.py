"""The list of runs: columns, order, filter, and the way to a stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cockpit.domain.filter import parse_filter
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.engine.api import StopReport
from cockpit.errors import LinkLost
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import matches
from cockpit.widgets.run_row import Columns, RunRow
from cockpit.widgets.run_words import cards_text, failed, state_word
from tests.screens.fake_engine import WALL_S, FakeEngine, FakeLog, run_view
from tests.screens.run_scenes import (
    OOM,
    QUEUED,
    TRAINING,
    busy_engine,
    cockpit,
    plan_of,
    workers_done,
)
from tests.screens.run_scenes import WatchedApp as App


def listed(app: App) -> list[str]:
    """Profiles in the order of the list."""
    names = ("eval-1", "qwen-lora", "llama-sft", "vllm-7b")
    return [name for row in app.rows[3:9] for name in names if name in row]


async def test_every_run_is_one_line_with_state_in_words() -> None:
    async with cockpit(busy_engine(), "2") as (app, _pilot):
        assert listed(app) == ["eval-1", "qwen-lora", "llama-sft", "vllm-7b", "qwen-lora"]
        for words in ("queued", "exit 1", "running", "unreachable", "done"):
            assert words in app.text
        assert "h100:0-3" in app.text
        assert "812/2000 40%" in app.text


@pytest.mark.parametrize("width", range(56, 200, 7))
def test_columns_never_leave_the_line_and_the_state_always_stays(width: int) -> None:
    from cockpit.widgets.look import Look

    view = run_view(
        profile="a-very-long-profile-name-" * 3, host=HostName("h" * 60), degraded="supervisor_died"
    )
    line = RunRow.of(view, 1_700_000_000.0).draw(Look(), width)
    assert line.cells <= width
    assert len(Columns.at(width).names()) <= width
    assert "running" in line.plain


async def test_sorting_by_letter_and_turning_round() -> None:
    async with cockpit(busy_engine(), "2", "s", "n") as (app, pilot):
        assert listed(app) == ["eval-1", "llama-sft", "qwen-lora", "qwen-lora", "vllm-7b"]
        await pilot.press("s", "n")
        await pilot.pause()
        assert listed(app)[0] == "vllm-7b"
        assert "turned round" in app.text


async def test_the_filter_narrows_as_one_types_and_esc_gives_all_back() -> None:
    async with cockpit(busy_engine(), "2", "slash", *"qwen") as (app, pilot):
        assert listed(app) == ["qwen-lora", "qwen-lora"]
        await pilot.press("enter")
        await pilot.pause()
        assert "2 of 5 runs fit qwen" in app.text
        await pilot.press("escape")
        await pilot.pause()
        assert len(listed(app)) == 5


async def test_a_filter_that_fits_nothing_says_so() -> None:
    async with cockpit(busy_engine(), "2", "slash", *"zzz") as (app, _pilot):
        assert "No run fits zzz. esc shows all 5." in app.text


@pytest.mark.parametrize(
    ("typed", "fits"),
    [
        ("qwen", True),
        ("vast running", True),
        ("-running", False),
        ("!h100 sft", True),
        ("-zzz", True),
        ("tag:sft", True),
        ("tag:eval", False),
        ("-tag:sft", False),
        ("state:running step>800 loss<2", True),
        ("state:failed", False),
        ("took>30m & host:vast,h100", True),
        ("code=1", False),
        ("baseline", True),
    ],
)
def test_words_and_tests_of_the_filter(typed: str, fits: bool) -> None:
    view = run_view(remark="the baseline")
    assert matches(view, parse_filter(typed), WALL_S) is fits


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"state": "exited", "code": 0}, "done"),
        ({"state": "exited", "code": 3}, "failed"),
        ({"state": "lost"}, "failed"),
        ({"state": "lost"}, "lost"),
    ],
    ids=["done", "exit", "lost-failed", "lost"],
)
def test_a_state_is_asked_for_by_its_own_word_or_by_how_it_went(
    changes: dict[str, Any], word: str
) -> None:
    assert matches(run_view(**changes), parse_filter(f"state:{word}"))


async def test_a_filter_that_cannot_be_read_says_so_and_the_last_one_stays() -> None:
    async with cockpit(busy_engine(), "2", "slash", *"host:h100") as (app, pilot):
        before = listed(app)
        assert before and len(before) < 5
        await pilot.press("space", "left_parenthesis")
        await pilot.pause()
        assert "something is missing at the end" in app.text
        assert listed(app) == before


async def test_a_line_about_a_run_is_kept_shown_and_found() -> None:
    engine = busy_engine()
    async with cockpit(engine, "2", "down", "down", "M") as (app, pilot):
        assert "About llama-sft" in app.text
        await pilot.press(*"good one", "enter")
        await pilot.pause()
        assert engine.asked("set_remark") == [(TRAINING, "good one")]
        await pilot.press("slash", *"good")
        await pilot.pause()
        assert listed(app) == ["llama-sft"]


async def test_a_run_that_was_started_from_here_is_launched_as_it_was_then() -> None:
    engine = busy_engine()
    view = engine.runs.get(OOM)
    assert view is not None
    engine.past_runs[OOM] = PastRun(view, WALL_S, has_origin=True)
    origin = Origin("name = 'qwen-lora'  # as it was\n", "qwen-lora", overrides=("stop.int=3s",))
    engine.plans[OOM] = replace(plan_of(engine.profile_entries[0]), origin=origin)
    async with cockpit(engine, "2", "down", "R") as (app, pilot):
        await pilot.pause(0.4)
        assert engine.asked("plan_again") == [(OOM, ("vast-a",), view.gpus or None, ())]
        assert f"as {OOM} was started" in app.text and "# as it was" in app.text
        assert '"3s"' in app.text
        await pilot.press("ctrl+g")
        await pilot.pause()
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert engine.asked("launch")


async def test_moving_on_in_the_list_leaves_the_past() -> None:
    engine = busy_engine()
    view = engine.runs.get(OOM)
    assert view is not None
    engine.past_runs[OOM] = PastRun(view, WALL_S, has_origin=True)
    engine.plans[OOM] = plan_of(engine.profile_entries[0])
    async with cockpit(engine, "2", "down", "R") as (app, pilot):
        await pilot.pause(0.4)
        await pilot.press("escape", "escape")
        await pilot.pause(0.4)
        assert f"as {OOM} was started" not in app.text


async def test_an_empty_list_says_how_runs_get_here() -> None:
    engine = FakeEngine().with_host("vast-a")
    async with cockpit(engine, "2") as (app, _pilot):
        assert "Nothing was started from here yet." in app.text


async def test_enter_opens_the_log_of_the_run_under_the_cursor() -> None:
    async with cockpit(busy_engine(), "2", "down", "enter") as (app, _pilot):
        assert isinstance(app.screen, RunScreen)
        assert app.screen.run_id == OOM


async def test_the_cursor_stays_on_its_run_when_others_come() -> None:
    engine = busy_engine()
    async with cockpit(engine, "2", "down", "down") as (app, pilot):
        engine.put_run(run_view("r-new", profile="eval-1", started_s=1_700_000_100.0))
        await pilot.pause()
        await pilot.press("y")
        assert app.copied == TRAINING


async def test_an_unchanged_list_is_not_drawn_again() -> None:
    async with cockpit(busy_engine(), "2") as (app, pilot):
        from cockpit.widgets.row_list import RowList

        drawn: list[int] = []
        rows = app.screen.query_one(RowList)
        rows.render_line = lambda y: drawn.append(y)  # type: ignore[assignment, method-assign, return-value]
        for _ in range(5):
            app.screen.pull()  # type: ignore[attr-defined]
            await pilot.pause()
        assert drawn == []


async def test_stop_asks_first_and_cancel_stops_nothing() -> None:
    engine = busy_engine()
    async with cockpit(engine, "2", "down", "down", "x") as (app, pilot):
        assert "Stop llama-sft?" in app.text
        assert "Its 4 cards are free after that." in app.text
        assert "h100 goes on costing 8.90 USD/h." in app.text
        await pilot.press("enter")
        await pilot.pause()
        assert engine.asked("stop") == []


async def test_stop_runs_the_ladder_once_it_is_wanted() -> None:
    engine = busy_engine()
    async with cockpit(engine, "2", "down", "down", "x", "tab", "enter") as (app, _pilot):
        await workers_done(app)
        assert engine.asked("stop") == [(TRAINING,)]
        assert any("nothing of it is left" in words for words in app.said)


async def test_what_a_stop_could_not_end_is_listed() -> None:
    engine = busy_engine()
    engine.stop_reports[TRAINING] = StopReport(
        TRAINING, ("INT", "TERM", "KILL"), (77,), ("python x.py",)
    )
    async with cockpit(engine, "2", "down", "down", "x", "tab", "enter") as (app, _pilot):
        await workers_done(app)
        assert "pid 77  python x.py" in app.text


async def test_a_stop_that_cannot_reach_the_host_says_why() -> None:
    engine = busy_engine()
    engine.stop_reports[TRAINING] = LinkLost(host="h100")
    async with cockpit(engine, "2", "down", "down", "x", "tab", "enter") as (app, _pilot):
        await workers_done(app)
        assert "llama-sft was not stopped" in app.text
        assert "link_lost" in app.text


async def test_the_strip_offers_its_remedy_here_too() -> None:
    engine = busy_engine()
    engine.plans["qwen-lora"] = plan_of(engine.profile_entries[0])
    async with cockpit(engine, "2", "a") as (app, pilot):
        await pilot.pause()
        assert "Relaunch qwen-lora with this change?" in app.text


async def test_an_event_before_the_first_paint_of_a_screen_is_no_trouble() -> None:
    engine = busy_engine()
    async with cockpit(engine) as (app, pilot):
        for mode in ("runs", "incidents", "launch", "desk"):
            app.switch_mode(mode)
            engine.put_run(run_view("r-x"))
            await pilot.pause()
        assert app.is_running


async def test_a_run_that_ended_is_not_stopped_again() -> None:
    engine = busy_engine()
    async with cockpit(engine, "2", "down", "x") as (app, _pilot):
        await workers_done(app)
        assert app.said[-1] == "qwen-lora has ended: exit 1"
        assert engine.asked("stop") == []


@pytest.mark.parametrize(
    ("gpus", "text"),
    [((0,), "0"), ((0, 1), "0,1"), ((0, 1, 2, 3, 6), "0-3,6"), ((5, 3, 4), "3-5"), ((), "")],
)
def test_cards_are_named_shortly(gpus: tuple[int, ...], text: str) -> None:
    assert cards_text(gpus) == text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"code": 0}, "done"),
        ({"code": 42}, "exit 42"),
        ({"signal": 9}, "signal 9"),
        ({"code": 0, "by": "cockpit"}, "stopped"),
        ({}, "ended"),
    ],
)
def test_the_end_in_a_word(changes: dict[str, Any], word: str) -> None:
    assert state_word(run_view(state="exited", **changes)) == word


@pytest.mark.parametrize(
    ("changes", "is_trouble"),
    [({"signal": 2, "by": "cockpit"}, False), ({"signal": 2}, True), ({"code": 1}, True), ({"code": 0}, False)],
)  # fmt: skip
def test_a_run_that_was_stopped_is_no_trouble(changes: dict[str, Any], is_trouble: bool) -> None:
    assert failed(run_view("r", state="exited", **changes)) is is_trouble


def test_ids_of_the_scene() -> None:
    assert RunId("r-3d77") == QUEUED


async def test_who_waits_for_cards_shows_for_whom_and_as_which() -> None:
    engine = busy_engine()
    waiting = engine.runs.get(RunId("r-3d77"))
    assert waiting is not None
    engine.runs.put(replace(waiting, position=2, waiting_for="GPU 0: pid 7 bob python3"))
    engine.logs[waiting.run] = FakeLog()
    async with cockpit(engine, "2", size=(180, 40)) as (app, pilot):
        assert "number 2 in the queue" in app.text
        await pilot.press("enter")
        await pilot.pause()
        assert "Number 2 in the queue. Held: GPU 0: pid 7 bob python3." in app.text
