"""The whole log's screen: hits from the end backwards, their lines around them, and an end with a word."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.domain.models import RunId
from cockpit.screens.run import RunScreen
from cockpit.screens.whole_log import WholeLogScreen
from cockpit.widgets.text_pane import TextPane
from tests.screens.fake_engine import FakeEngine, FakeLog, run_view
from tests.screens.fleets import calm

RUN = RunId("llama-sft-1skaaaaaa")


async def settled(pilot: Pilot[Any]) -> None:
    for _ in range(3):
        await pilot.pause()


def engine() -> FakeEngine:
    made = calm()
    made.put_run(run_view(RUN, host="h100"))
    made.logs[RUN] = FakeLog(["kept"])
    made.whole_log = "\n".join(
        ["start"]
        + [f"line {n}" for n in range(30)]
        + ["nan here \x1b[31m", "rest", "nan again", "end"]
    )
    return made


async def test_hits_from_the_end_and_a_word_when_there_are_no_more() -> None:
    app = CockpitApp(engine())
    async with app.run_test(size=(120, 40)) as pilot:
        await app.push_screen(RunScreen(RUN))
        await settled(pilot)
        await pilot.press("O", *"nan", "enter")
        await settled(pilot)
        assert isinstance(app.screen, WholeLogScreen)
        pane = app.screen.query_one(TextPane)
        first = pane.plain_text
        assert "nan again" in first and "byte " in first.splitlines()[0]
        await pilot.press("n")
        await settled(pilot)
        second = pane.plain_text
        assert second != first and "nan here" in second and "\x1b" not in second
        await pilot.press("n")
        await settled(pilot)
        assert pane.plain_text == second
        await pilot.press("N")
        await settled(pilot)
        assert pane.plain_text == first
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, RunScreen)


async def test_nothing_found_says_so() -> None:
    app = CockpitApp(engine())
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(WholeLogScreen(RUN, "absent"))
        await settled(pilot)
        assert "not found" in app.screen.query_one(TextPane).plain_text
