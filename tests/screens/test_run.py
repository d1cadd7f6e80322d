"""One run's screen: header, log, chart, steps, incident, and its keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.models import HostName
from cockpit.domain.past_runs import PastRun
from cockpit.domain.runs import Progress
from cockpit.engine.api import Around, Forwarded
from cockpit.engine.fleet import GpuHistory
from cockpit.errors import StorageError
from cockpit.i18n.messages import reason_text
from cockpit.screens.incidents import IncidentsScreen
from cockpit.screens.launch import LaunchScreen
from cockpit.screens.run import RunScreen
from cockpit.widgets.glyphs import UNICODE
from cockpit.widgets.log_view import LogView
from cockpit.widgets.memory_chart import MemoryChart, binned, column_glyph
from tests.screens.fake_engine import WALL_S, FakeLog, oom_incident, run_view
from tests.screens.run_scenes import OOM, TRAINING, busy_engine, cockpit, plan_of, workers_done
from tests.screens.run_scenes import WatchedApp as App

TO_OOM = ("2", "down", "enter")
TO_TRAINING = ("2", "down", "down", "enter")


def log_view(app: App) -> LogView:
    return app.screen.query_one(LogView)


async def test_the_header_says_what_where_how_far_and_what_it_cost() -> None:
    async with cockpit(busy_engine(), *TO_TRAINING, size=(200, 50)) as (app, _pilot):
        header = app.rows[1]
        for words in (
            "● llama-sft", "h100  GPU 0-3", "running 2 h 5 m", "step 1204/8000  15%",
            "eta 2 h 5 m", "loss 1.12", "1.10 s/step", "18.54 USD",
        ):  # fmt: skip
            assert words in header


async def test_a_narrow_window_keeps_the_log_and_leaves_the_side_out() -> None:
    async with cockpit(busy_engine(), *TO_OOM, size=(80, 24)) as (app, _pilot):
        assert not app.screen.query_one(MemoryChart).region.width
        assert "exit 1 after 40 m" in app.text
        assert "✗ torch.OutOfMemoryError" in app.text


async def test_the_steps_of_its_life_are_ticked_off() -> None:
    async with cockpit(busy_engine(), *TO_OOM) as (app, _pilot):
        for words in ("✓ sent to vast-a", "✓ started", "✓ first step", "✗ exit 1"):
            assert words in app.text


async def test_its_own_incident_has_a_line_with_remedies_and_leaves_the_strip() -> None:
    async with cockpit(busy_engine(), *TO_OOM) as (app, _pilot):
        assert app.text.count("Out of GPU memory") == 1
        assert "a apply and relaunch" in app.text
        assert "1 " in app.rows[-3] and "2 " in app.rows[-3]
        assert "leak" in app.rows[-2]


async def test_an_incident_shows_at_once() -> None:
    engine = busy_engine()
    incident = engine.incidents.all()[0]
    engine.incidents._incidents.clear()
    async with cockpit(engine, *TO_OOM) as (app, pilot):
        assert "Out of GPU memory" not in app.text
        engine.put_incident(incident)
        await pilot.pause()
        assert "Out of GPU memory" in app.text


async def test_the_end_is_said_in_the_log_border() -> None:
    async with cockpit(busy_engine(), *TO_OOM) as (app, _pilot):
        assert "ended 22:12:47, exit 1, 405 lines" in app.text


async def test_a_lost_link_does_not_end_the_log() -> None:
    engine = busy_engine()
    async with cockpit(engine, *TO_TRAINING) as (app, pilot):
        engine.set_link("h100", "unreachable", "link_lost")
        await pilot.pause()
        assert "the log goes on on the host" in app.text
        assert "ended" not in app.text


async def test_a_silent_log_says_what_to_expect() -> None:
    engine = busy_engine()
    silent = run_view("r-20b1", host=HostName("h100"), started_s=WALL_S - 8, progress=Progress())
    engine.runs.put(silent)
    engine.logs[TRAINING] = FakeLog()
    async with cockpit(engine, "2", "down", "enter", size=(200, 50)) as (app, _pilot):
        assert "Started 8 s ago, nothing printed yet." in app.text


async def test_losses_become_a_sparkline() -> None:
    engine = busy_engine()
    async with cockpit(engine, *TO_TRAINING, size=(200, 50)) as (app, pilot):
        for loss in (3.0, 2.0, 1.5, 1.0):
            view = engine.runs.get(TRAINING)
            assert view is not None
            engine.put_run(
                run_view(
                    "r-20b1",
                    profile="llama-sft",
                    host=HostName("h100"),
                    progress=Progress(loss=loss),
                )
            )
            await pilot.pause()
        assert "loss 1 " in app.rows[1]
        assert "█" in app.rows[1]


async def test_the_log_is_let_go_when_the_screen_leaves() -> None:
    engine = busy_engine()
    async with cockpit(engine, *TO_OOM) as (app, pilot):
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, RunScreen)
        assert engine.logs[OOM].closed


async def test_the_host_is_looked_at_while_its_run_is_shown() -> None:
    engine = busy_engine()
    async with cockpit(engine, *TO_OOM) as (_app, pilot):
        await pilot.press("escape")
        await pilot.pause()
        assert engine.asked("focus")[-2:] == [(HostName("vast-a"),), (None,)]


async def test_escape_takes_back_search_zoom_and_then_the_screen() -> None:
    async with cockpit(busy_engine(), *TO_OOM) as (app, pilot):
        await pilot.press("z", "slash", *"loss", "enter")
        await pilot.press("escape")
        await pilot.pause()
        state = log_view(app).state
        assert state is not None and state.hits is None
        assert app.screen.has_class("-zoomed")
        await pilot.press("escape")
        await pilot.pause()
        assert not app.screen.has_class("-zoomed")
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, RunScreen)


async def test_letters_typed_into_a_search_reach_nothing_else() -> None:
    engine = busy_engine()
    async with cockpit(engine, *TO_TRAINING, "slash", *"axRqfril123") as (app, _pilot):
        assert isinstance(app.screen, RunScreen)
        assert engine.asked("stop") == []


async def test_enter_on_an_incident_line_opens_the_incident() -> None:
    async with cockpit(busy_engine(), *TO_OOM, "enter") as (app, _pilot):
        assert isinstance(app.screen, IncidentsScreen)


async def test_brackets_walk_to_the_next_run() -> None:
    async with cockpit(busy_engine(), *TO_OOM, "right_square_bracket") as (app, _pilot):
        assert isinstance(app.screen, RunScreen)
        assert app.screen.run_id == TRAINING


async def test_the_whole_log_is_written_where_one_says(tmp_path: Path) -> None:
    engine = busy_engine()
    target = tmp_path / "oom.log"
    async with cockpit(engine, *TO_OOM, "w") as (app, pilot):
        assert "Every byte as the job wrote it." in app.text
        from textual.widgets import Input

        app.screen.query_one(Input).value = str(target)
        await pilot.press("enter")
        await workers_done(app)
        assert engine.asked("save_log") == [(OOM, target)]
        assert str(target) in app.said[-1]


async def test_a_file_that_exists_is_not_offered_up(tmp_path: Path) -> None:
    from cockpit.screens.run_actions import check_new_file

    taken = tmp_path / "x.log"
    taken.write_text("mine")
    assert check_new_file(str(taken))[0] is False
    assert check_new_file(str(tmp_path / "no" / "x.log"))[0] is False
    assert check_new_file("")[0] is False
    assert check_new_file(str(tmp_path / "new.log"))[0] is True


async def test_a_log_that_could_not_be_saved_says_why(tmp_path: Path) -> None:
    engine = busy_engine()
    engine.failures["save_log"] = StorageError(path="/x", why="No space left on device")
    async with cockpit(engine, *TO_OOM, "w") as (app, pilot):
        from textual.widgets import Input

        app.screen.query_one(Input).value = str(tmp_path / "a.log")
        await pilot.press("enter")
        await workers_done(app)
        assert "The log was not saved" in app.text


async def test_apply_shows_its_diff_and_cancel_starts_nothing() -> None:
    engine = busy_engine()
    engine.plans["qwen-lora"] = plan_of(engine.profile_entries[0])
    async with cockpit(engine, *TO_OOM, "a") as (app, pilot):
        assert "Relaunch qwen-lora with this change?" in app.text
        assert '+ accelerate.args = ["--batch", "4"]' in app.text
        assert "h100 costs 8.90 USD/h." in app.text
        await pilot.press("enter")
        await pilot.pause()
        assert engine.asked("launch") == []


async def test_apply_starts_the_changed_run_and_goes_there() -> None:
    engine = busy_engine()
    engine.plans["qwen-lora"] = plan_of(engine.profile_entries[0])
    async with cockpit(engine, *TO_OOM, "a", "tab", "enter") as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        overrides = ('accelerate.args=["--batch", "4"]',)
        assert engine.asked("plan") == [("qwen-lora", (HostName("vast-a"),), None, overrides)]
        assert len(engine.asked("launch")) == 1


async def test_an_incident_whose_remedy_was_applied_says_so_and_is_not_offered_again() -> None:
    engine = busy_engine()
    engine.plans["qwen-lora"] = plan_of(engine.profile_entries[0])
    async with cockpit(engine, *TO_OOM, "a", "tab", "enter") as (app, _pilot):
        await workers_done(app)
        closed = engine.incidents.get("r-7f3a:gpu_oom")
        assert closed is not None
        assert (closed.state, closed.state_why) == ("applied", "relaunched_as:r-new")
        assert reason_text(closed.state_why) == "relaunched as r-new"
        assert not closed.is_loud


async def test_apply_keeps_the_changes_that_the_run_had_already() -> None:
    engine = busy_engine()
    view = engine.runs.get(OOM)
    assert view is not None
    engine.past_runs[OOM] = PastRun(view, WALL_S, has_origin=True)
    engine.plans[OOM] = plan_of(engine.profile_entries[0])
    async with cockpit(engine, *TO_OOM, "a", "tab", "enter") as (app, _pilot):
        await workers_done(app)
        overrides = ('accelerate.args=["--batch", "4"]',)
        assert engine.asked("plan_again") == [(OOM, (HostName("vast-a"),), None, overrides)]
        assert len(engine.asked("launch")) == 1


async def test_what_goes_along_with_a_run_is_on_its_page() -> None:
    engine = busy_engine()
    engine.put_run(run_view(OOM, remark="the good one"))
    engine.arounds[OOM] = Around(
        forwards=(
            Forwarded(8000, 8001, is_open=True),
            Forwarded(9000, 9000, is_open=False, code="port_taken"),
        ),
        model="Qwen/Qwen2.5-7B",
        steps=((WALL_S, "hook_failed", "on_end: exit 3"),),
    )
    async with cockpit(engine, *TO_OOM, size=(200, 50)) as (app, _pilot):
        for words in (
            "localhost:8000 -> 8001", "taken on this computer", "Qwen/Qwen2.5-7B", "the good one",
            "A hook failed: on_end: exit 3.",
        ):  # fmt: skip
            assert words in app.text
        assert "runs train" not in app.text


async def test_a_run_of_the_past_says_how_old_that_is_and_what_went_wrong_then() -> None:
    engine = busy_engine()
    view = run_view(OOM, state="unreachable")
    engine.put_run(view)
    engine.past_runs[OOM] = PastRun(replace(view, state="running"), WALL_S - 720)
    engine.incidents._incidents.clear()
    engine.remembered[OOM] = (oom_incident("run:r-7f3a/gpu_oom/torch"),)
    async with cockpit(engine, *TO_OOM, size=(200, 50)) as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        assert "running, 12 m ago" in app.text
        assert "Out of GPU memory" in app.text


async def test_an_ended_run_that_went_well_has_had_its_first_step() -> None:
    engine = busy_engine()
    engine.put_run(run_view(OOM, state="exited", code=0, progress=Progress()))
    async with cockpit(engine, *TO_OOM, size=(200, 50)) as (app, _pilot):
        (row,) = [row for row in app.rows if "first step" in row]
        (done,) = [row for row in app.rows if "sent to vast-a" in row]
        sign = done[done.index("sent to") - 2]
        assert row[row.index("first step") - 2] == sign


async def test_apply_to_a_run_that_lives_says_that_it_is_stopped_first() -> None:
    engine = busy_engine()
    engine.plans["qwen-lora"] = plan_of(engine.profile_entries[0])
    engine.runs.put(run_view())
    async with cockpit(engine, *TO_OOM, "a") as (app, pilot):
        assert "Run r-7f3a still runs: it is stopped first" in app.text
        assert engine.asked("plan") == []
        await pilot.press("tab", "enter")
        await workers_done(app)
        assert [name for name, _args in engine.calls if name in ("stop", "plan", "launch")] == [
            "stop", "plan", "launch",
        ]  # fmt: skip


async def test_relaunch_fills_the_launch_screen_in() -> None:
    engine = busy_engine()
    entry = engine.profile_entries[0]
    engine.plans[str(entry.path)] = plan_of(entry)
    engine.runs.put(run_view(profile=entry.name))
    async with cockpit(engine, "2", "down", "enter", "R") as (app, pilot):
        await pilot.pause()
        assert isinstance(app.screen, LaunchScreen)
        assert app.screen.entry == entry


async def test_paused_the_log_stands_still_and_goes_on_after_it() -> None:
    engine = busy_engine()
    async with cockpit(engine, *TO_TRAINING, "p") as (app, pilot):
        engine.logs[TRAINING].append("while paused")
        log_view(app).frame()
        await pilot.pause()
        assert "PAUSED" in app.rows[0]
        assert "while paused" not in app.text
        await pilot.press("p")
        log_view(app).frame()
        await pilot.pause()
        assert "while paused" in app.text


async def test_help_explains_the_numbers_of_the_header() -> None:
    async with cockpit(busy_engine(), *TO_TRAINING, "question_mark") as (app, _pilot):
        assert "Run r-20b1 on h100" in app.text
        assert "the host's price by the run's time" in app.text


@pytest.mark.parametrize("bins", [1, 7, 60])
def test_bins_of_the_chart_stand_still_as_time_goes_on(bins: int) -> None:
    history = GpuHistory()
    for second in range(120):
        history.at_s.append(1_000.0 + second)
        history.mem_used_mib.append(second)
        history.util_pct.append(None)
    before = binned(history, bins, 60)
    assert len(before) == bins
    assert before[-1] == 119
    history.at_s.append(1_120.0)
    history.mem_used_mib.append(None)
    history.util_pct.append(None)
    after = binned(history, bins, 60)
    assert set(after) - {None} <= set(before) | {119}


def test_a_missing_reading_is_no_column() -> None:
    assert column_glyph(None, 0, 4, UNICODE) == " "
    assert [column_glyph(0.5, row, 4, UNICODE) for row in range(4)] == [" ", " ", "█", "█"]
    assert [column_glyph(1.0, row, 2, UNICODE) for row in range(2)] == ["█", "█"]
    assert column_glyph(0.03, 3, 4, UNICODE) == "▁"
