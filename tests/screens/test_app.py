"""The shell around the screens: modes, leaving, keys, toasts, failures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from cockpit.app import CockpitApp
from cockpit.domain.models import HostName
from cockpit.engine.api import EngineApi
from cockpit.engine.events import OwnTrouble
from cockpit.errors import ConfigError, Fact
from cockpit.screens.boot import BootScreen
from cockpit.screens.first_start import FirstStartScreen
from cockpit.screens.fleet import FleetScreen
from cockpit.screens.help import HelpScreen
from cockpit.screens.host import HostScreen
from cockpit.widgets.fleet_view import FleetView
from cockpit.widgets.footer_bar import FooterBar
from cockpit.widgets.header_line import HeaderLine
from cockpit.widgets.incident_strip import IncidentStrip
from cockpit.widgets.options import UiOptions
from tests.screens.fake_engine import FakeEngine, oom_incident
from tests.screens.fleets import calm


async def settled(pilot: Pilot[Any]) -> None:
    """Every message handled, and what was called after a refresh too."""
    await pilot.pause()
    await pilot.pause()


async def test_the_engine_starts_after_the_first_paint() -> None:
    engine, painted = calm(), []

    async def open_engine() -> EngineApi:
        painted.append(type(app.screen))
        return engine

    app = CockpitApp(open_engine)
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        await settled(pilot)

        assert painted == [BootScreen]
        assert isinstance(app.screen, FleetScreen)
        assert engine.asked("start") == [()]
    assert engine.asked("close") == [()]


async def test_a_home_with_mistakes_ends_the_app_with_its_error() -> None:
    async def open_engine() -> EngineApi:
        raise ConfigError(file="hosts.toml")

    app = CockpitApp(open_engine)
    async with app.run_test() as pilot:
        await settled(pilot)
    assert isinstance(app.failure, ConfigError)


@pytest.mark.parametrize(
    ("keys", "mode"),
    [("2", "runs"), ("r", "runs"), ("3", "incidents"), ("i", "incidents"), ("4", "launch"),
     ("l", "launch"), ("5", "desk"), ("5 1", "fleet"), ("r f", "fleet")],
)  # fmt: skip
async def test_modes_have_digits_and_letters(keys: str, mode: str) -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        await pilot.press(*keys.split())
        await settled(pilot)

        assert app.current_mode == mode


async def test_escape_goes_back_and_never_out() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, HostScreen)

        await pilot.press("escape", "escape", "escape")
        await settled(pilot)

        assert isinstance(app.screen, FleetScreen)
        assert app.is_running


async def test_the_key_of_a_mode_leads_to_its_first_screen_from_inside_of_it() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, HostScreen)

        await pilot.press("2", "1")
        await settled(pilot)
        assert isinstance(app.screen, HostScreen)

        await pilot.press("1")
        await settled(pilot)
        assert isinstance(app.screen, FleetScreen)


async def test_q_goes_back_and_at_the_root_out() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        await pilot.press("enter")
        await settled(pilot)
        await pilot.press("q")
        await settled(pilot)
        assert isinstance(app.screen, FleetScreen)

        await pilot.press("q")
        await settled(pilot)

    assert app.return_code == 0


async def test_one_interrupt_says_how_to_quit_and_two_quit() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        await pilot.press("ctrl+c")
        await settled(pilot)
        assert app.is_running and len(app._notifications) == 1

        await pilot.press("ctrl+c")
        await settled(pilot)
    assert app.return_code == 0


async def test_a_full_width_key_does_what_its_twin_does() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        app.post_message(events.Key("２", "２"))
        await settled(pilot)

        assert app.current_mode == "runs"


async def test_another_script_is_told_once() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        for _n in range(3):
            app.post_message(events.Key("й", "й"))
        await settled(pilot)

        assert len(app._notifications) == 1


async def test_no_hosts_leads_to_the_first_start() -> None:
    app = CockpitApp(FakeEngine())
    async with app.run_test() as pilot:
        await settled(pilot)

        assert isinstance(app.screen, FirstStartScreen)


async def test_help_lists_the_keys_of_the_screen_below() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        await settled(pilot)
        assert isinstance(app.screen, HelpScreen)
        text = app.screen.query_one("#help-text").plain_text  # type: ignore[attr-defined]

        assert "only trouble" in text and "quit" in text
        assert "GPU 0 of vast-a, 0.2 s ago, by NVML" in text and "402/450W" in text
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, FleetScreen)


async def test_too_small_says_how_much_is_needed() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(59, 15)) as pilot:
        await settled(pilot)

        assert app.screen.has_class("-too-small")
        assert "60x15" in str(app.screen.query_one("#too-small").render())
        await pilot.resize_terminal(60, 15)
        await settled(pilot)
        assert not app.screen.has_class("-too-small")


async def test_every_theme_in_turn() -> None:
    app = CockpitApp(calm(), UiOptions(theme="dark"))
    async with app.run_test() as pilot:
        seen = []
        for _n in range(8):
            await pilot.press("T")
            await settled(pilot)
            seen.append(app.look.palette.name)

        assert seen[0] == "light" and seen[-1] == "dark" and len(set(seen)) == 8


async def test_an_incident_is_on_the_screen_at_once_on_every_screen() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test() as pilot:
        for key in ("1", "5", "enter"):
            await pilot.press(key)
            await settled(pilot)
        engine.put_incident(oom_incident())
        await settled(pilot)

        strip = app.screen.query_one(IncidentStrip)
        assert [one.key for one in strip.incidents] == ["r-7f3a:gpu_oom"]
        assert strip.size.height == 1
        engine.put_incident(replace(oom_incident(), state="recovered"))
        await settled(pilot)
        assert strip.incidents == ()


async def test_a_fatal_toast_stays_until_a_key() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test() as pilot:
        engine.put_incident(oom_incident())
        await settled(pilot)
        assert len(app._notifications) == 1

        await pilot.press("down")
        await settled(pilot)
        assert len(app._notifications) == 0


async def test_keys_can_be_mapped_anew() -> None:
    app = CockpitApp(calm(), UiOptions(keys={"mode.runs": "f9", "nonsense": "x"}))
    async with app.run_test() as pilot:
        assert len(app._notifications) == 1
        await pilot.press("f9")
        await settled(pilot)

        assert app.current_mode == "runs"


async def test_the_palette_knows_hosts_runs_and_commands() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        await pilot.press("colon")
        await settled(pilot)
        await pilot.press(*"h100")
        await pilot.pause(0.3)
        await pilot.press("enter", "enter")
        await settled(pilot)

        assert isinstance(app.screen, HostScreen)


async def test_letters_are_text_while_an_input_has_the_focus() -> None:
    app = CockpitApp(calm())
    async with app.run_test() as pilot:
        await pilot.press("slash", *"r2q")
        await settled(pilot)

        assert app.current_mode == "fleet"
        assert app.screen.query_one("#filter-text", Input).value == "r2q"


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_the_key_bar_shows_whole_hints_and_every_mode(width: int) -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(width, 30)) as pilot:
        await settled(pilot)
        text = app.screen.query_one(FooterBar).render_line(0).text

        assert "? help" in text and "1 Fleet" in text and "open" in text
        assert len(text) == width
        if width == 80:
            keys = text.split("? help")[0].split("  ")
            assert len([key for key in keys if key.strip()]) <= 6


async def test_the_header_counts_and_prices() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        text = app.screen.query_one(HeaderLine).render_line(0).text

        for part in (
            "3 hosts",
            "6 GPUs",
            "4 busy",
            "2 free",
            "10.42 USD/h",
            "idle 3.52",
            "22:13:20",
        ):
            assert part in text


async def test_pause_stops_painting_and_says_how_far_behind() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        drawn = app.screen.query_one(FleetView).drawn
        before = drawn[HostName("h100")]
        await pilot.press("p")
        engine.set_link("h100", "stale", "link_lost")
        engine.clock_s += 65
        app.screen.show_frame()  # type: ignore[attr-defined]
        await settled(pilot)
        assert "PAUSED 1:05" in app.screen.query_one(HeaderLine).render_line(0).text
        assert drawn[HostName("h100")] == before

        await pilot.press("p")
        await settled(pilot)
        assert drawn[HostName("h100")] > before


async def test_trouble_of_ours_is_told_in_words() -> None:
    engine = calm()
    async with CockpitApp(engine).run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        facts: dict[str, Fact] = {"path": "~/cockpit.db", "kept": "~/cockpit.db.broken-1"}
        engine.publish(OwnTrouble("history_set_aside", facts, engine.wall_s()))
        await pilot.pause()
        (told,) = pilot.app._notifications
        assert "~/cockpit.db was damaged" in told.message and told.severity == "warning"
