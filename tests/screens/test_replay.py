"""A replay on the screens: its line, its keys, what it refuses; and a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from cockpit.engine.recording_read import read_recording
from cockpit.replay_app import ReplayApp
from cockpit.screens.incidents import IncidentsScreen
from cockpit.widgets.header_line import HeaderLine
from cockpit.widgets.incident_strip import IncidentStrip
from cockpit.widgets.replay_line import ReplayLine
from tests.builders.recordings import RUN, header, story, written
from tests.builders.samples import AT_S


async def settle(pilot: Pilot[Any]) -> None:
    for _n in range(3):
        await pilot.pause()


def standing(path: Path) -> ReplayApp:
    """A replay whose time only keys move."""
    app = ReplayApp(read_recording(path))
    app.playback.toggle()
    app.playback.seek(app.playback.begin_s)
    return app


def text_of(app: ReplayApp, kind: type[Any]) -> str:
    widget = app.screen.query_one(kind)
    return "".join(segment.text for segment in widget.render_line(0))


async def test_its_line_says_what_it_is_and_where(tmp_path: Path) -> None:
    app = standing(story(tmp_path / "s.cockpit.gz"))
    async with app.run_test(size=(160, 40)) as pilot:
        await settle(pilot)
        line = text_of(app, ReplayLine)
        assert "REPLAY" in line and "2023-11-14 22:13:20" in line and "0:00 / 1:00" in line
        assert "paused at 1x" in line
        await pilot.press("I", "plus")
        await settle(pilot)
        line = text_of(app, ReplayLine)
        assert "22:13:50" in line and "paused at 2x" in line
        assert "22:13:50" in text_of(app, HeaderLine)
        await pilot.press("space")
        await settle(pilot)
        assert "paused" not in text_of(app, ReplayLine)


async def test_the_incident_is_there_at_its_moment_and_gone_before_it(tmp_path: Path) -> None:
    app = standing(story(tmp_path / "s.cockpit.gz"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert app.screen.query_one(IncidentStrip).incidents == ()
        await pilot.press("full_stop", "full_stop", "full_stop")
        await settle(pilot)
        await app.workers.wait_for_complete()
        await settle(pilot)
        (shown,) = app.screen.query_one(IncidentStrip).incidents
        assert (shown.family, shown.opened_s) == ("gpu_oom", AT_S + 30)
        await pilot.press("comma")
        await settle(pilot)
        await app.workers.wait_for_complete()
        await settle(pilot)
        assert app.screen.query_one(IncidentStrip).incidents == ()


async def test_every_screen_shows_it(tmp_path: Path) -> None:
    app = standing(story(tmp_path / "s.cockpit.gz"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("I")
        await settle(pilot)
        for key in ("2", "enter", "escape", "3", "4", "5", "1", "enter"):
            await pilot.press(key)
            await settle(pilot)
            assert "REPLAY" in text_of(app, ReplayLine), key
        await pilot.press("3")
        await settle(pilot)
        assert isinstance(app.screen, IncidentsScreen)


async def test_a_run_shows_its_recorded_log(tmp_path: Path) -> None:
    from cockpit.screens.navigation import open_run
    from cockpit.widgets.log_view import LogView

    app = standing(story(tmp_path / "s.cockpit.gz"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.playback.seek(AT_S + 35)
        await app.playback.settled()
        open_run(app, RUN)
        await settle(pilot)
        view = app.screen.query_one(LogView)
        shown = "\n".join(
            "".join(segment.text for segment in view.render_line(y))
            for y in range(view.size.height)
        )
        assert "step 29 loss" in shown and "CUDA out of memory" in shown


async def test_what_would_act_says_that_it_is_a_replay(tmp_path: Path) -> None:
    app = standing(story(tmp_path / "s.cockpit.gz"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for key in ("f5", "v"):
            await pilot.press(key)
            await settle(pilot)
        told = [str(one.message) for one in app._notifications]
        assert any("This is a replay" in words for words in told)
        assert app.screen.is_modal


async def test_keys_that_are_typed_are_text(tmp_path: Path) -> None:
    app = standing(story(tmp_path / "s.cockpit.gz"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("slash", "a", "space", "comma", "minus", "I")
        await settle(pilot)
        assert isinstance(app.focused, Input) and app.focused.value == "a ,-I"
        assert app.playback.wall_s() == AT_S


async def test_a_recording_without_an_incident_says_so(tmp_path: Path) -> None:
    step = {"t": AT_S, "k": "link", "host": "vast-a", "state": "live"}
    app = standing(written(tmp_path / "n.cockpit.gz", header(at_s=None), step))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("I")
        await settle(pilot)
        assert [str(one.message) for one in app._notifications] == [
            "this recording was made for no incident"
        ]
        assert "cut off" in text_of(app, ReplayLine)


@pytest.mark.parametrize(("width", "last"), [(60, "paused"), (80, "0:00 / 1:01"), (200, "speed")])
async def test_parts_leave_from_the_right(tmp_path: Path, width: int, last: str) -> None:
    app = standing(story(tmp_path / "s.cockpit.gz", seconds=61))
    async with app.run_test(size=(width, 24)) as pilot:
        await settle(pilot)
        line = text_of(app, ReplayLine)
        assert len(line) == width and "REPLAY" in line and last in line


def test_picture_of_a_replay(snap_compare: Callable[..., bool], tmp_path: Path) -> None:
    async def at_the_incident(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        await pilot.press("I")
        await settle(pilot)
        await pilot.app.workers.wait_for_complete()
        pilot.app.clear_notifications()
        await settle(pilot)

    app = standing(story(tmp_path / "s.cockpit.gz"))
    assert snap_compare(app, terminal_size=(120, 40), run_before=at_the_incident)
