"""A host may send what it likes: no screen passes any of it on to the terminal.

Driven through every screen with the app's output caught, at a width where long text is cut and one
where it is not.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.domain.models import HostName
from cockpit.screens.host import HostScreen
from cockpit.screens.host_key import ask_trust
from cockpit.screens.navigation import open_run
from cockpit.widgets.fleet_view import FleetView
from tests.screens.capture import CapturingApp
from tests.screens.fake_engine import FakeEngine, FakeLog, run_view
from tests.screens.fleets import HOSTILE, hostile

OURS = re.compile(r"\x1b\[[0-9;]*[mH]")
"""Colours and cursor addresses: all that our own drawing sends."""
FORBIDDEN = {
    "an escape": "\x1b",
    "C1": "[\x80-\x9f]",
    "a control": "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]",
    "bidi": "[\u202a-\u202e\u2066-\u2069\u200e\u200f]",
    "invisible": "[\u200b\ufe0f\u2060\ufeff]",
}


def harmful(text: str) -> dict[str, str]:
    """What is left that a terminal would obey, once our own drawing is taken out, and where."""
    left = OURS.sub("", text)
    found = {name: re.search(f".{{0,60}}{pattern}", left) for name, pattern in FORBIDDEN.items()}
    return {name: match.group() for name, match in found.items() if match is not None}


async def settled(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    await pilot.pause()


def test_the_check_itself_sees_the_attack() -> None:
    assert set(harmful(HOSTILE)) == set(FORBIDDEN)
    assert harmful("\x1b[1;2H\x1b[38;2;1;2;3mfine\x1b[0m\r\n") == {}


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_fleet_host_desk_and_dialogs(size: tuple[int, int]) -> None:
    engine = hostile()
    app = CapturingApp(engine)
    async with app.run_test(size=size, notifications=True) as pilot:
        await settled(pilot)
        for key in ("d", "d", "n", "n", "y", "s", "escape", "exclamation_mark", "exclamation_mark"):
            await pilot.press(key)
            await settled(pilot)
        await pilot.press("slash", *"PWNED", "enter")
        await settled(pilot)
        await pilot.press("escape", "question_mark")
        await settled(pilot)
        await pilot.press("escape", "5")
        await settled(pilot)
        await pilot.press("1")
        for host in engine.fleet.hosts:
            await app.push_screen(HostScreen(HostName(host)))
            await settled(pilot)
            await pilot.press("x", "escape", "z", "z", "y", "escape")
            await settled(pilot)
        ask_trust(app, HostName("key"))
        await settled(pilot)
        await pilot.press("escape", "colon")
        await settled(pilot)
        text = app.take()

    assert "PWNED" in text, "the attack did not reach the screen, so nothing was tested"
    assert harmful(text) == {}


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_runs_incidents_and_logs(size: tuple[int, int]) -> None:
    engine = hostile()
    log = FakeLog([HOSTILE, f"loss {HOSTILE}"])
    log.open_text = HOSTILE
    engine.logs[run_view().run] = log
    app = CapturingApp(engine)
    async with app.run_test(size=size, notifications=True) as pilot:
        for key in ("2", "3", "down", "enter", "escape", "4"):
            await pilot.press(key)
            await settled(pilot)
        open_run(app, run_view().run)
        await settled(pilot)
        engine.put_incident(engine.incidents.all()[0])
        await settled(pilot)
        text = app.take()

    assert "PWNED" in text
    assert harmful(text) == {}


async def test_markup_of_a_host_is_text() -> None:
    app = CapturingApp(hostile())
    async with app.run_test(size=(200, 50)) as pilot:
        await settled(pilot)
        view = app.screen.query_one(FleetView)
        shown = "\n".join(view.render_line(y).text for y in range(view.size.height))

        assert "[bold red]PWNED-MARKUP[/]" in shown


async def test_new_attacks_while_it_runs() -> None:
    engine = FakeEngine().with_host("calm")
    app = CapturingApp(engine)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await settled(pilot)
        for incident in hostile().incidents.all():
            engine.put_incident(incident)
        engine.set_link("calm", "unreachable", "unreachable", why=HOSTILE, address=HOSTILE)
        await settled(pilot)

        assert harmful(app.take()) == {}
