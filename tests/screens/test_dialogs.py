"""Dialogs: what they answer, and that nothing dangerous is one careless key away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input

from cockpit.screens.dialogs import (
    Choice,
    ChoiceMenu,
    ConfirmDialog,
    MessageDialog,
    PasswordPrompt,
    TextPrompt,
)


class Asked(App[None]):
    """Shows one dialog and keeps its answer."""

    def __init__(self, dialog: ModalScreen[object]) -> None:
        super().__init__()
        self._dialog = dialog
        self.answers: list[object] = []
        self.copied = ""

    def on_mount(self) -> None:
        self.push_screen(self._dialog, self.answers.append)

    def copy_to_clipboard(self, text: str) -> None:
        self.copied = text

    @property
    def shown(self) -> str:
        strips = self.screen._compositor.render_strips(self.size)
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)


@asynccontextmanager
async def asked(dialog: object) -> AsyncIterator[tuple[Asked, Pilot[None]]]:
    app = Asked(dialog)  # type: ignore[arg-type]
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        yield app, pilot


def stop_dialog() -> ConfirmDialog:
    return ConfirmDialog(
        "Stop qwen?", "Run r-1 on [b]vast-a[/b].", confirm="Stop it", follows=["It ends."]
    )


@pytest.mark.parametrize(
    ("keys", "answers"),
    [
        (["enter"], [False]),
        (["enter", "enter", "enter"], [False]),
        (["escape"], [False]),
        (["tab", "enter"], [True]),
        (["right", "enter"], [True]),
        (["tab", "left", "enter"], [False]),
        (["y", "s", "x"], []),
    ],
    ids=["enter", "enter held", "esc", "tab", "right", "there and back", "letters"],
)
async def test_cancel_has_the_focus(keys: list[str], answers: list[bool]) -> None:
    async with asked(stop_dialog()) as (app, pilot):
        await pilot.press(*keys)
        await pilot.pause()
        assert app.answers == answers


async def test_what_follows_is_named_and_markup_stays_text() -> None:
    async with asked(stop_dialog()) as (app, _pilot):
        assert "- It ends." in app.shown
        assert "[b]vast-a[/b]" in app.shown


async def test_a_prompt_takes_no_wrong_answer() -> None:
    check = lambda typed: (typed == "good", "fine" if typed == "good" else "say good")  # noqa: E731
    async with asked(TextPrompt("Name", value="bad", check=check)) as (app, pilot):
        await pilot.press("enter")
        assert (app.answers, "say good" in app.shown) == ([], True)
        app.screen.query_one(Input).value = "good"
        await pilot.press("enter")
        await pilot.pause()
        assert app.answers == ["good"]


async def test_a_prompt_that_is_left_answers_nothing() -> None:
    async with asked(TextPrompt("Name", value="x")) as (app, pilot):
        await pilot.press("escape")
        await pilot.pause()
        assert app.answers == [None]


async def test_a_secret_is_not_on_the_screen() -> None:
    async with asked(PasswordPrompt("Password for root@vast-a")) as (app, pilot):
        await pilot.press(*"hunter2")
        assert "hunter2" not in app.shown
        await pilot.press("enter")
        await pilot.pause()
        assert app.answers == ["hunter2"]


async def test_a_message_is_copied_with_its_code() -> None:
    dialog = MessageDialog(
        "a100", "Port 8000 is in use.", "By vllm.", actions=["take 8001"], code="port_taken"
    )
    async with asked(dialog) as (app, pilot):
        await pilot.press("y")
        assert app.copied == "Port 8000 is in use.\nBy vllm.\n- take 8001\nport_taken"
        await pilot.press("enter")
        await pilot.pause()
        assert app.answers == [None]


def menu() -> ChoiceMenu:
    choices = [Choice("s", "state"), Choice("h", "host"), Choice("z", "none", disabled=True)]
    return ChoiceMenu("Sort", choices, current="h")


@pytest.mark.parametrize(
    ("keys", "answers"),
    [
        (["enter"], ["h"]),
        (["s"], ["s"]),
        (["up", "enter"], ["s"]),
        (["k", "enter"], ["s"]),
        (["z"], []),
        (["escape"], [None]),
    ],
    ids=["the present one", "letter", "arrow", "k", "disabled", "esc"],
)
async def test_a_menu_is_answered_by_letter_or_enter(
    keys: list[str], answers: list[object]
) -> None:
    async with asked(menu()) as (app, pilot):
        await pilot.press(*keys)
        await pilot.pause()
        assert app.answers == answers
