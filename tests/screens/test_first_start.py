"""First start and adding a host: understood while typing, nothing sent before the second enter."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.app import CockpitApp
from cockpit.domain.models import HostName
from cockpit.errors import UsageError
from cockpit.screens.first_start import FirstStartScreen
from cockpit.screens.fleet import FleetScreen
from cockpit.screens.host_key import HostKeyDialog
from cockpit.screens.pasted_words import suggested_name, understood
from tests.builders.samples import host_sample
from tests.screens.fake_engine import FakeEngine
from tests.screens.fleets import calm

LINE = "ssh -p 41234 root@203.0.113.5 -L 8080:localhost:8080 -A"


async def settled(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    await pilot.pause()


def said(app: CockpitApp, name: str) -> str:
    return str(app.screen.query_one(name, Static).render())


async def paste(app: CockpitApp, pilot: Pilot[Any], text: str) -> None:
    app.post_message(events.Paste(text))
    await settled(pilot)


def test_words_for_a_line_that_is_still_being_typed() -> None:
    assert understood("") == ("", "", False)
    words, second, fine = understood(LINE)
    assert words == "user root   host 203.0.113.5   port 41234   forwards 8080"
    assert second == "not used: -A" and fine
    words, second, fine = understood("ssh -p 41234")
    assert "port 41234" in words and second and not fine
    assert not understood("ssh a; rm -rf /")[2]
    assert "not found" in understood("ssh -i /nonexistent/key root@h")[0]


def test_names_are_offered_and_free() -> None:
    assert suggested_name("ssh root@ssh4.vast.ai -p 1", ()) == "vast-1"
    assert suggested_name("ssh root@ssh4.vast.ai -p 1", ("vast-1",)) == "vast-2"
    assert suggested_name(LINE, ()) == "gpu-1"
    assert suggested_name("ssh ubuntu@h100.example", ()) == "h100"
    assert suggested_name("ssh ubuntu@h100.example", ("h100",)) == "h100-1"


async def test_a_paste_lands_in_the_line_and_connects_after_two_enters() -> None:
    engine = FakeEngine()
    app = CockpitApp(engine)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await paste(app, pilot, LINE + "\nls\n")
        assert app.screen.query_one("#first-line", Input).value == LINE
        assert "host 203.0.113.5" in said(app, "#first-understood")
        assert said(app, "#first-dropped") == "not used: -A"

        await pilot.press("enter")
        await settled(pilot)
        assert engine.asked("add_host") == []
        await pilot.press("enter")
        await settled(pilot)
        assert engine.asked("add_host") == [("gpu-1", LINE, False)]
        assert "connecting" in said(app, "#first-state")


async def test_the_key_is_shown_as_soon_as_it_is_offered() -> None:
    engine = FakeEngine()
    app = CockpitApp(engine)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await paste(app, pilot, LINE)
        await pilot.press("enter", "enter")
        await settled(pilot)
        engine.fleet.update(HostName("gpu-1"), fingerprint="SHA256:abc", key_type="ED25519")
        engine.set_link("gpu-1", "host_key", "host_key_unknown")
        await settled(pilot)

        assert isinstance(app.screen, HostKeyDialog)
        assert isinstance(app.screen_stack[-2], FleetScreen)


async def test_the_first_sample_leads_to_the_fleet() -> None:
    engine = FakeEngine()
    app = CockpitApp(engine)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await paste(app, pilot, LINE)
        await pilot.press("enter", "enter")
        await settled(pilot)
        engine.fleet.record(host_sample("gpu-1"), engine.clock_s)
        engine.set_link("gpu-1", "live")
        await settled(pilot)

        assert isinstance(app.screen, FleetScreen)


async def test_what_cannot_be_added_says_why_and_stays() -> None:
    engine = FakeEngine()
    engine.failures["add_host"] = UsageError("bad_host_name", name="-x")
    app = CockpitApp(engine)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await paste(app, pilot, LINE)
        await pilot.press("enter", "enter")
        await settled(pilot)

        assert app.screen.query_one("#first-state").has_class("-wrong")
        assert said(app, "#first-state")


async def test_a_hostile_line_is_not_taken() -> None:
    engine = FakeEngine()
    app = CockpitApp(engine)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await paste(app, pilot, "ssh -oProxyCommand='touch /tmp/x' root@h")
        await pilot.press("enter", "enter", "enter")
        await settled(pilot)

        assert engine.asked("add_host") == []
        assert app.screen.query_one("#first-dropped").has_class("-wrong")


async def test_d_is_the_demo_only_at_first_and_only_outside_the_inputs() -> None:
    app = CockpitApp(FakeEngine())
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await pilot.press("d")
        await settled(pilot)
    assert app.return_value == "demo"

    app = CockpitApp(calm())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("A", "d", "v")
        await settled(pilot)

        assert isinstance(app.screen, FirstStartScreen)
        assert app.screen.query_one("#first-line", Input).value == "dv"
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, FleetScreen)


async def test_what_one_types_before_enter_goes_into_the_line() -> None:
    app = CockpitApp(FakeEngine())
    async with app.run_test() as pilot:
        await settled(pilot)
        assert isinstance(app.screen, FirstStartScreen)
        await pilot.press(*"ssh", "space", *"root@h")
        await settled(pilot)
        assert isinstance(app.screen, FirstStartScreen)
        assert app.screen.query_one("#first-line", Input).value == "ssh root@h"
