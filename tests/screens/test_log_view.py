"""The log view on a screen: what it reads, when it repaints, and what its keys do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from cockpit.engine.api import LogLine
from cockpit.widgets.log_pane import LogPane
from cockpit.widgets.log_state import LogState
from cockpit.widgets.log_view import LogView
from tests.screens.fake_engine import FakeLog
from tests.screens.logs import CountingLog, stamped, texts

SIZE = (60, 12)
TEXT_ROWS = 10


class LogApp(App[None]):
    """One log pane and nothing else."""

    def __init__(self, log: FakeLog) -> None:
        super().__init__()
        self.watched = log
        self.copied = ""

    def compose(self) -> ComposeResult:
        yield LogPane("log", now_s=lambda: 1_000.0)

    def on_mount(self) -> None:
        self.view.show(self.watched, started_s=0.0)
        self.view.focus()

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)

    @property
    def state(self) -> LogState:
        assert self.view.state is not None
        return self.view.state

    def copy_to_clipboard(self, text: str) -> None:
        self.copied = text

    @property
    def rows(self) -> list[str]:
        """What is on the screen, border and scrollbar off."""
        strips = self.screen._compositor.render_strips(self.size)
        return ["".join(segment.text for segment in strip)[1:-1].rstrip() for strip in strips]

    @property
    def status(self) -> str:
        return next(row for row in reversed(self.rows) if "─" in row)


@asynccontextmanager
async def shown(
    log: FakeLog, size: tuple[int, int] = SIZE
) -> AsyncIterator[tuple[LogApp, Pilot[None]]]:
    app = LogApp(log)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


async def type_in(pilot: Pilot[None], text: str) -> None:
    await pilot.press(*("space" if char == " " else char for char in text))


async def next_frame(app: LogApp, pilot: Pilot[None]) -> None:
    """What the timer does, without waiting for it."""
    app.view.frame()
    await pilot.pause()


async def test_only_lines_in_view_are_read() -> None:
    log = CountingLog(5_000)
    async with shown(log):
        assert min(log.read) > 5_000 - TEXT_ROWS - 1


async def test_an_unchanged_log_is_not_read_again() -> None:
    log = CountingLog(100)
    async with shown(log) as (app, pilot):
        log.read.clear()
        for _ in range(20):
            await next_frame(app, pilot)
        assert log.read == []


async def test_a_flood_costs_a_view_a_frame() -> None:
    log = CountingLog(100)
    async with shown(log) as (app, pilot):
        log.read.clear()
        for _frame in range(4):
            for _ in range(1_000):
                log.append("x")
            await next_frame(app, pilot)
        assert 0 < len(set(log.read)) <= 4 * TEXT_ROWS


async def test_new_lines_under_a_reader_touch_only_the_edges() -> None:
    log = CountingLog(100)
    async with shown(log) as (app, pilot):
        await pilot.press("pageup")
        await pilot.pause()
        seen = app.rows[1:-1]
        log.read.clear()
        log.append("new")
        await next_frame(app, pilot)
        assert log.read == []
        assert app.rows[1:-1] == seen
        assert "1 new below" in app.status


async def test_a_progress_bar_is_one_line_that_changes() -> None:
    log = CountingLog(30)
    log.open_text = " 10%|#   "
    async with shown(log) as (app, pilot):
        log.read.clear()
        log.open_text = " 20%|##  "
        log.version += 1
        await next_frame(app, pilot)
        assert app.rows[-2] == "~  20%|##"
        assert log.read == []


async def test_it_follows_until_one_moves_up_and_again_after_g() -> None:
    log = CountingLog(100)
    async with shown(log) as (app, pilot):
        assert "following, 100 lines" in app.status
        await pilot.press("k")
        for _ in range(7):
            log.append("more")
        await next_frame(app, pilot)
        assert "reading, 7 new below  G follows" in app.status
        await pilot.press("G")
        await pilot.pause()
        assert app.rows[-2] == "  more"
        assert "following" in app.status


async def test_an_incident_below_a_reader_is_counted() -> None:
    log = CountingLog(100)
    async with shown(log) as (app, pilot):
        await pilot.press("pageup")
        log.append("boom")
        app.view.set_trouble({101: "fatal"})
        await next_frame(app, pilot)
        assert "1 new below, 1 incident" in app.status


async def test_incident_lines_are_marked_in_gutter_and_scrollbar() -> None:
    async with shown(CountingLog(100)) as (app, pilot):
        app.view.set_trouble({98: "fatal", 3: "warning"})
        await pilot.pause()
        assert "✗ line 98" in app.rows
        strips = app.screen._compositor.render_strips(app.size)
        bar = ["".join(segment.text for segment in strip)[-1] for strip in strips]
        assert (bar[1], bar[TEXT_ROWS]) == ("!", "✗")


async def test_search_is_live_counts_and_lands_upwards() -> None:
    async with shown(CountingLog(200)) as (app, pilot):
        await pilot.press("slash")
        await type_in(pilot, "line 15")
        await pilot.pause()
        assert "11" in app.status
        await pilot.press("enter")
        await pilot.pause()
        assert (app.state.window.cursor, "11 of 11" in app.status) == (159, True)
        await pilot.press("N")
        assert app.state.window.cursor == 158
        await pilot.press("n", "n")
        await pilot.pause()
        assert app.state.window.cursor == 15
        assert "from the top" in app.status


async def test_escape_takes_back_search_then_filter() -> None:
    async with shown(CountingLog(50)) as (app, pilot):
        await pilot.press("ampersand")
        await type_in(pilot, "line 4")
        await pilot.press("enter", "slash")
        await type_in(pilot, "42")
        await pilot.press("enter", "escape")
        assert (app.state.hits, app.state.filtered) == (None, True)
        await pilot.press("escape")
        assert not app.state.filtered


async def test_escape_in_the_prompt_takes_back_what_was_tried() -> None:
    async with shown(CountingLog(50)) as (app, pilot):
        await pilot.press("ampersand")
        await type_in(pilot, "line 4")
        assert app.state.filtered
        await pilot.press("escape")
        assert not app.state.filtered
        assert app.view.has_focus


@pytest.mark.parametrize("key", ["slash", "ampersand", "at"])
async def test_what_is_typed_into_the_prompt_is_seen(key: str) -> None:
    async with shown(CountingLog(50)) as (app, pilot):
        await pilot.press(key)
        await type_in(pilot, "line 4")
        await pilot.pause()
        assert "line 4 " in app.rows[-1]


async def test_a_filter_that_nothing_matches_says_so() -> None:
    async with shown(CountingLog(50)) as (app, pilot):
        app.view.set_words(empty="Nothing printed yet.")
        await pilot.press("ampersand")
        await type_in(pilot, "absent")
        await pilot.press("enter")
        await pilot.pause()
        assert app.rows[1] == "  No line matches; esc shows all."
        await pilot.press("escape")
        await pilot.pause()
        assert app.rows[-2] == "  line 50"


async def test_a_regular_expression_with_a_mistake_is_told_in_the_prompt() -> None:
    async with shown(CountingLog(50)) as (app, pilot):
        await pilot.press("slash")
        await type_in(pilot, "~(")
        await pilot.press("enter")
        await pilot.pause()
        assert any("not a regular expression" in row for row in app.rows)


async def test_the_level_floor_hides_and_shows() -> None:
    log = texts("INFO a", "WARNING b", "INFO c", "ERROR d")
    async with shown(log) as (app, pilot):
        await pilot.press("V")
        await pilot.pause()
        assert app.rows[1:3] == ["  WARNING b", "  ERROR d"]
        await pilot.press("V")
        await pilot.pause()
        assert app.rows[1:3] == ["  ERROR d", ""]
        await pilot.press("V")
        await pilot.pause()
        assert app.rows[1] == "  INFO a"


async def test_context_grows_and_shrinks() -> None:
    async with shown(CountingLog(50)) as (app, pilot):
        await pilot.press("ampersand")
        await type_in(pilot, "line 42")
        await pilot.press("enter", "greater_than_sign")
        await pilot.pause()
        assert app.rows[1:4] == ["  line 41", "  line 42", "  line 43"]
        await pilot.press("less_than_sign")
        await pilot.pause()
        assert app.rows[1:3] == ["  line 42", ""]


async def test_marks_are_set_walked_and_copied() -> None:
    async with shown(CountingLog(50)) as (app, pilot):
        await pilot.press("g", "space", "j", "j", "space", "G", "apostrophe")
        await pilot.pause()
        assert app.state.window.cursor == 1
        await pilot.press("quotation_mark")
        assert app.state.window.cursor == 3
        await pilot.press("y")
        assert app.copied == "1: line 1\n3: line 3"


async def test_a_selection_copies_the_text_without_gutter_wrap_or_stamps() -> None:
    log = FakeLog(
        ["first line that is longer than the view is wide, and goes on", "second", "third"]
    )
    async with shown(log, (40, 12)) as (app, pilot):
        await pilot.press("W")
        app.screen.selections = {app.view: Selection(Offset(6, 1), Offset(3, 3))}
        await pilot.pause()
        await pilot.press("y")
        assert app.copied == "line that is longer than the view is wide, and goes on\nsecond\nthi"


async def test_a_selection_by_mouse_stops_following_and_takes_what_was_dragged_over() -> None:
    log = CountingLog(100)
    async with shown(log) as (app, pilot):
        await pilot.mouse_down(offset=(3, 5))
        await pilot.hover(offset=(6, 6))
        await pilot.mouse_up(offset=(6, 6))
        await pilot.pause()
        assert not app.state.window.follow
        await pilot.press("y")
        assert app.copied == "line 95\nline"


async def test_too_much_for_a_clipboard_is_said_and_not_copied() -> None:
    async with shown(FakeLog(["x" * 200_000])) as (app, pilot):
        await pilot.press("g", "y")
        assert app.copied == ""


async def test_going_to_a_time_and_to_a_step() -> None:
    log = stamped(*(900.0 + number for number in range(60)))
    log.append(LogLine(61, 0, "812/2000 [x]", (), 999.0))
    async with shown(log) as (app, pilot):
        await pilot.press("at")
        await type_in(pilot, "-90s")
        await pilot.press("enter")
        assert app.state.window.cursor == 11
        await pilot.press("at")
        await type_in(pilot, "step 812")
        await pilot.press("enter")
        assert app.state.window.cursor == 61


async def test_a_time_that_is_none_keeps_the_prompt_open() -> None:
    async with shown(CountingLog(50)) as (app, pilot):
        await pilot.press("at")
        await type_in(pilot, "noon")
        await pilot.press("enter")
        await pilot.pause()
        assert not app.view.has_focus
        assert any("step 812" in row for row in app.rows)


async def test_stamps_need_room_and_say_so() -> None:
    log = stamped(*(900.0 + number for number in range(60)))
    async with shown(log) as (app, pilot):
        await pilot.press("t")
        await pilot.pause()
        assert "stamps need 100 columns" in app.status
    async with shown(log, (110, 12)) as (app, pilot):
        await pilot.press("t", "t")
        await pilot.pause()
        assert app.rows[-2] == "    +15:59 line 60"


async def test_wheel_and_scrollbar_move_the_view() -> None:
    log = CountingLog(1_000)
    async with shown(log) as (app, pilot):
        app.view.scroll_rows(-3)
        assert not app.state.window.follow
        await pilot.click(offset=(59, 1))
        await pilot.pause()
        assert app.rows[1] == "  line 1"
        await pilot.click(offset=(59, 10))
        await pilot.pause()
        assert app.state.window.follow


async def test_the_view_stays_when_older_lines_leave() -> None:
    log = CountingLog(200)
    async with shown(log) as (app, pilot):
        await pilot.press(*["pageup"] * 5)
        await pilot.pause()
        seen = app.rows[1:-1]
        log.drop_oldest(100)
        await next_frame(app, pilot)
        assert app.rows[1:-1] == seen
        await pilot.press("g")
        await pilot.pause()
        assert app.rows[1] == "  line 101"


@pytest.mark.parametrize("key", ["slash", "n", "k", "y", "W", "space", "at", "G"])
async def test_no_key_minds_an_empty_log(key: str) -> None:
    async with shown(FakeLog()) as (app, pilot):
        await pilot.press(key, "enter")
        await pilot.pause()
        assert app.is_running


async def test_a_burst_of_keys_goes_into_the_prompt_and_nowhere_else() -> None:
    """As a slow link or a paste sends it: all keys at once, before the prompt has the focus."""
    async with shown(CountingLog(200)) as (app, pilot):
        for key in ("slash", *"line", "space", "1", "5", "enter"):
            character = {"slash": "/", "space": " ", "enter": "\r"}.get(key, key)
            app.post_message(events.Key(key, character))
        await pilot.pause()
        await pilot.pause()
        assert app.state.hits is not None
        assert app.state.hits.pattern.typed == "line 15"
        assert app.view.has_focus
        assert app.state.marks == set()


async def test_a_progress_bar_under_a_reader_becomes_its_line() -> None:
    log = CountingLog(30)
    log.open_text = " 10%|#   "
    async with shown(log) as (app, pilot):
        await pilot.press("k", "k")
        log.open_text = ""
        log.append("done 10%")
        log.open_text = " 11%|#"
        log.version += 1
        await next_frame(app, pilot)
        assert "  done 10%" in app.rows
        assert not any("10%|" in row for row in app.rows)
