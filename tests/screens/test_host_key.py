"""The host key dialogs: nothing is accepted by a key that is held down, or unseen."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.app import CockpitApp
from cockpit.domain.models import HostName
from cockpit.errors import HostKeyChanged
from cockpit.screens.dialogs import MessageDialog
from cockpit.screens.fleet import FleetScreen
from cockpit.screens.host_key import STILL_S, HostKeyDialog, ask_trust
from tests.screens.fake_engine import FakeEngine

NEW, OLD = "SHA256:8kQnThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5", "SHA256:known"
HOST = HostName("new-box")


class Hand:
    """A clock that moves only when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def engine_with_key(*, known: str | None = None) -> FakeEngine:
    code = "host_key_changed" if known else "host_key_unknown"
    engine = FakeEngine().with_host("new-box", "host_key", code)
    engine.fleet.update(HOST, fingerprint=NEW, known_fingerprint=known, key_type="ED25519")
    return engine


async def settled(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    await pilot.pause()


async def asked(app: CockpitApp, pilot: Pilot[Any], hand: Hand) -> HostKeyDialog:
    await settled(pilot)
    ask_trust(app, HOST)
    await settled(pilot)
    dialog = app.screen
    assert isinstance(dialog, HostKeyDialog)
    dialog._clock, dialog._last_t_s = hand, hand.now_s
    return dialog


def words(dialog: HostKeyDialog) -> str:
    return "\n".join(str(one.render()) for one in dialog.query(Static))


async def test_first_contact_shows_the_whole_key_and_what_to_compare() -> None:
    app = CockpitApp(engine_with_key())
    async with app.run_test(size=(80, 24)) as pilot:
        text = words(await asked(app, pilot, Hand()))

        assert f"ED25519 {NEW}" in text and "ssh-keygen -lf" in text
        assert f"cockpit hosts trust new-box --fingerprint {NEW}" in text


async def test_a_changed_key_shows_both() -> None:
    app = CockpitApp(engine_with_key(known=OLD))
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = await asked(app, pilot, Hand())

        assert OLD in words(dialog) and NEW in words(dialog)
        assert "someone in between" in words(dialog)
        assert dialog.has_class("-danger")


@pytest.mark.parametrize("known", [None, OLD])
async def test_enter_held_down_accepts_nothing(known: str | None) -> None:
    engine = engine_with_key(known=known)
    app = CockpitApp(engine)
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(app, pilot, Hand())
        await pilot.press(*["enter"] * 12)
        await settled(pilot)

        assert engine.asked("trust") == []


async def test_t_held_down_accepts_nothing_and_pressed_anew_accepts() -> None:
    engine, hand = engine_with_key(), Hand()
    app = CockpitApp(engine)
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = await asked(app, pilot, hand)
        for _n in range(20):
            hand.now_s += 0.03
            await pilot.press("t")
        assert app.screen is dialog and engine.asked("trust") == []

        hand.now_s += STILL_S
        await pilot.press("t")
        await settled(pilot)
        assert engine.asked("trust") == [("new-box", NEW)]


async def test_escape_and_the_default_button_are_not_now() -> None:
    engine = engine_with_key()
    app = CockpitApp(engine)
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("escape", "enter"):
            await asked(app, pilot, Hand())
            await pilot.press(key)
            await settled(pilot)
            assert isinstance(app.screen, FleetScreen)
        assert engine.asked("trust") == []


async def test_a_click_on_trust_trusts_the_key_that_was_shown() -> None:
    engine = engine_with_key()
    app = CockpitApp(engine)
    async with app.run_test(size=(100, 30)) as pilot:
        await asked(app, pilot, Hand())
        engine.fleet.update(HOST, fingerprint="SHA256:another-by-now")
        await pilot.click("#trust")
        await settled(pilot)

        assert engine.asked("trust") == [("new-box", NEW)]


async def test_another_key_by_now_is_told() -> None:
    engine, hand = engine_with_key(), Hand()
    engine.failures["trust"] = HostKeyChanged(host="new-box", known=NEW, fingerprint="SHA256:z")
    app = CockpitApp(engine)
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(app, pilot, hand)
        hand.now_s += 1
        await pilot.press("t")
        await settled(pilot)

        assert isinstance(app.screen, MessageDialog)


async def test_a_host_that_needs_no_trust_asks_for_none() -> None:
    app = CockpitApp(FakeEngine().with_host("new-box", "connecting"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        ask_trust(app, HOST)
        await settled(pilot)

        assert isinstance(app.screen, FleetScreen)
