"""The whole log's screen: hits from the end backwards, places, pages at both ends, and work that esc stops."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.domain.models import RunId
from cockpit.errors import RunError
from cockpit.screens.run import RunScreen
from cockpit.screens.whole_log import WholeLogScreen
from cockpit.widgets.log_places import ByteAt, LineNumber
from cockpit.widgets.log_view import LogView
from tests.screens.fake_engine import FakeEngine, FakeLog, run_view
from tests.screens.fleets import calm

RUN = RunId("llama-sft-1skaaaaaa")


async def settled(pilot: Pilot[Any]) -> None:
    for _ in range(8):
        await pilot.pause()


def with_lines(lines: list[str], *, dropped: int = 0) -> FakeEngine:
    """A run whose log has these lines, of which the first ones are on the host only."""
    made = calm()
    made.put_run(run_view(RUN, host="h100"))
    made.whole_log = "".join(f"{line}\n" for line in lines)
    made.logs[RUN] = FakeLog(lines)
    made.logs[RUN].drop_oldest(dropped)
    return made


@pytest.fixture
def engine() -> FakeEngine:
    return with_lines(
        [
            "start",
            *(f"line {n}" for n in range(60)),
            "nan here \x1b[31m",
            "rest",
            "nan again",
            "end",
        ]
    )


@pytest.fixture
def long() -> FakeEngine:
    """A thousand lines of ten bytes, of which the last 400 are kept; some are read at once."""
    made = with_lines([f"line {number:04}" for number in range(1, 1001)], dropped=600)
    made.lines_around = 50
    return made


def rows(app: CockpitApp) -> list[str]:
    view = app.screen.query_one(LogView)
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


def text(app: CockpitApp) -> str:
    return "\n".join(rows(app))


def cursor(app: CockpitApp) -> str:
    """The line under the cursor."""
    state = app.screen.query_one(LogView).state
    assert state is not None
    line = state.line(state.window.cursor)
    return "" if line is None else line.text


async def test_hits_from_the_end_and_a_word_when_there_are_no_more(engine: FakeEngine) -> None:
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await app.push_screen(RunScreen(RUN))
        await settled(pilot)
        await pilot.press("O", *"nan", "enter")
        await settled(pilot)
        assert isinstance(app.screen, WholeLogScreen)
        assert cursor(app) == "nan again" and "byte " in rows(app)[-1] and "/nan" in rows(app)[-1]
        assert "rest" in text(app), "what led to it is in sight"
        await pilot.press("n")
        await settled(pilot)
        assert "no more hits this way" in rows(app)[-1]
        await pilot.press("N")
        await settled(pilot)
        assert cursor(app).startswith("nan here") and "\x1b" not in text(app)
        await pilot.press("N")
        await settled(pilot)
        assert "no more hits this way" in rows(app)[-1] and cursor(app).startswith("nan here")
        await pilot.press("n")
        await settled(pilot)
        assert cursor(app) == "nan again"
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, RunScreen)


async def test_hits_beyond_the_part_that_is_shown(long: FakeEngine) -> None:
    app = CockpitApp(long)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.push_screen(WholeLogScreen(RUN, "00"))
        await settled(pilot)
        seen = [cursor(app)]
        for _ in range(5):
            await pilot.press("N")
            await settled(pilot)
            seen.append(cursor(app))
        assert seen == [f"line {n:04}" for n in (1000, 900, 800, 700, 600, 500)]
        await pilot.press("n")
        await settled(pilot)
        assert cursor(app) == "line 0600"


async def test_a_regular_expression_is_searched_as_one(long: FakeEngine) -> None:
    app = CockpitApp(long)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.push_screen(RunScreen(RUN))
        await settled(pilot)
        await pilot.press("O", *"~01.3(", "enter")
        await settled(pilot)
        assert not isinstance(app.screen, WholeLogScreen), "a mistake is said before it is asked"
        await pilot.press("backspace", "enter")
        await settled(pilot)
        assert cursor(app) == "line 0193"


async def test_nothing_found_says_so(engine: FakeEngine) -> None:
    app = CockpitApp(engine)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(WholeLogScreen(RUN, "absent"))
        await settled(pilot)
        assert "not found" in text(app)


async def test_what_the_host_refuses_is_said_and_the_lines_stay(engine: FakeEngine) -> None:
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 24)) as pilot:
        await app.push_screen(WholeLogScreen(RUN, "nan"))
        await settled(pilot)
        engine.failures["search_log"] = RunError("pattern_too_slow", host="h100", at=5)
        await pilot.press("N", "N")
        await settled(pilot)
        assert "takes too long on h100" in text(app) and "nan again" in text(app)


async def test_esc_stops_a_search_and_then_leaves(long: FakeEngine) -> None:
    long.search_waits = asyncio.Event()
    app = CockpitApp(long)
    async with app.run_test(size=(120, 24)) as pilot:
        await app.push_screen(WholeLogScreen(RUN, place=ByteAt(5000)))
        await settled(pilot)
        await pilot.press("slash", *"0123", "enter")
        await settled(pilot)
        assert "searching" in rows(app)[-1]
        await pilot.press("escape")
        await settled(pilot)
        assert "stopped" in rows(app)[-1] and isinstance(app.screen, WholeLogScreen)
        await pilot.press("escape")
        await settled(pilot)
        assert not isinstance(app.screen, WholeLogScreen)


async def test_older_lines_than_those_kept_come_by_scrolling_up(long: FakeEngine) -> None:
    """Page up at the first kept line goes on among those on the host, page by page, to the first of all."""
    app = CockpitApp(long)
    async with app.run_test(size=(120, 24)) as pilot:
        await app.push_screen(RunScreen(RUN))
        await settled(pilot)
        await pilot.press("g")
        for _ in range(5):  # a wheel that turns on
            app.screen.query_one(LogView).action_page(-1)
        await settled(pilot)
        assert isinstance(app.screen, WholeLogScreen) and isinstance(
            app.screen_stack[-2], RunScreen
        )
        assert cursor(app) == "line 0600" and "line 0601" in text(app)
        seen: set[str] = set()
        for _ in range(60):
            seen |= set(re.findall(r"line \d{4}", text(app)))
            await pilot.press("pageup")
            await settled(pilot)
        assert {f"line {n:04}" for n in range(1, 601)} <= seen
        assert "line 0001" in rows(app)[1]


async def test_newer_lines_come_by_scrolling_down_and_the_end_is_the_end(long: FakeEngine) -> None:
    app = CockpitApp(long)
    async with app.run_test(size=(120, 24)) as pilot:
        await app.push_screen(WholeLogScreen(RUN, place=ByteAt(8800)))
        await settled(pilot)
        seen: set[str] = set()
        for _ in range(20):
            seen |= set(re.findall(r"line \d{4}", text(app)))
            await pilot.press("pagedown")
            await settled(pilot)
        assert {f"line {n:04}" for n in range(890, 1001)} <= seen
        assert "line 1000" in rows(app)[-2]
        long.whole_log += "line 1001\n"
        await pilot.press("pagedown")
        await settled(pilot)
        assert "line 1001" in text(app)


async def test_places_of_the_whole_log(long: FakeEngine) -> None:
    app = CockpitApp(long)
    async with app.run_test(size=(120, 24)) as pilot:
        await app.push_screen(RunScreen(RUN))
        await settled(pilot)

        async def go(typed: str) -> str:
            await pilot.press("at", *typed, "enter")
            await settled(pilot)
            return cursor(app)

        assert await go("byte 9000") == "line 0901" and isinstance(app.screen, RunScreen)
        assert await go("line 700") == "line 0700" and isinstance(app.screen, RunScreen)
        assert await go("25%") == "line 0251" and isinstance(app.screen, WholeLogScreen)
        assert "byte 2,500 of 9.8 KiB, 25%" in rows(app)[-1]
        assert await go("line 12") == "line 0012" and "line 12 " in rows(app)[-1]
        assert await go("line 0015") == "line 0015"
        assert long.asked("line_place") == [(RUN, 12)], "the next one is among those that are here"
        assert await go("line 5000") == "line 1000" and "the log has 1,000 lines" in rows(app)[-1]
        await pilot.press("g")
        await settled(pilot)
        assert cursor(app) == "line 0001"
        await pilot.press("G")
        await settled(pilot)
        assert cursor(app) == "line 1000"
        assert await go("step 77") == "line 1000" and "no more hits" in rows(app)[-1]


async def test_a_line_is_asked_for_from_the_run(long: FakeEngine) -> None:
    app = CockpitApp(long)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(WholeLogScreen(RUN, place=LineNumber(3)))
        await settled(pilot)
        assert cursor(app) == "line 0003"
        await pilot.press("space", "y")
        await settled(pilot)
        assert app.clipboard == "3: line 0003"


async def test_what_is_searched_for_among_the_kept_lines_is_offered_for_all(
    long: FakeEngine,
) -> None:
    app = CockpitApp(long)
    async with app.run_test(size=(120, 24)) as pilot:
        await app.push_screen(RunScreen(RUN))
        await settled(pilot)
        await pilot.press("slash", *"0042", "enter", "O", "enter")
        await settled(pilot)
        assert isinstance(app.screen, WholeLogScreen) and cursor(app) == "line 0042"
