"""Pictures of the screens about runs, at the three sizes that people have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.screens.launch import LaunchScreen
from cockpit.widgets.options import UiOptions
from tests.screens.fake_engine import FakeEngine
from tests.screens.run_scenes import WatchedApp, busy_engine, plan_of, workers_done

SIZES = [(80, 24), (120, 40), (200, 50)]
by_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
Compare = Callable[..., bool]


def staged() -> FakeEngine:
    engine = busy_engine()
    for entry in engine.profile_entries:
        engine.plans[str(entry.path)] = plan_of(entry)
    engine.plans["qwen-lora"] = plan_of(engine.profile_entries[0])
    return engine


def after(*keys: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Press the keys, then let everything come to rest; no timer decides what is on the picture."""

    async def run(pilot: Pilot[Any]) -> None:
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        screen = pilot.app.screen
        if isinstance(screen, LaunchScreen):
            screen.action_plan_again()
            await workers_done(pilot.app)
        for _ in range(2):
            if hasattr(screen, "pull"):
                screen.pull()
            await pilot.pause()

    return run


@by_size
@pytest.mark.parametrize(
    "keys",
    [("2",), ("2", "down", "down", "enter"), ("2", "down", "enter"), ("3",), ("4",), ("5",)],
    ids=["runs", "run", "run-oom", "incidents", "launch", "desk"],
)
def test_screen(snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    assert snap_compare(WatchedApp(staged()), terminal_size=size, run_before=after(*keys))


@pytest.mark.parametrize(
    "keys",
    [("2", "down", "down", "x"), ("3", "a"), ("2", "s"), ("2", "down", "enter", "w")],
    ids=["stop", "apply", "sort", "save"],
)
def test_dialog(
    snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...]
) -> None:
    monkeypatch.chdir("/")
    assert snap_compare(WatchedApp(staged()), terminal_size=(80, 24), run_before=after(*keys))


@pytest.mark.parametrize("theme", ["light", "dark-hc", "ansi-dark-ground"])
def test_run_in_other_palettes(snap_compare: Compare, theme: str) -> None:
    app = WatchedApp(staged(), UiOptions(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40), run_before=after("2", "down", "enter"))


@pytest.mark.parametrize("keys", [("2", "down", "enter"), ("4",)], ids=["run", "launch"])
def test_in_plain_ascii(snap_compare: Compare, keys: tuple[str, ...]) -> None:
    app = WatchedApp(staged(), UiOptions(glyphs="ascii"))
    assert snap_compare(app, terminal_size=(100, 30), run_before=after(*keys))


@pytest.mark.parametrize(
    "options", [UiOptions(theme="ansi-dark-ground"), UiOptions(glyphs="ascii", theme="light")],
    ids=["16 colours", "ascii"],
)  # fmt: skip
def test_dialog_in_other_looks(snap_compare: Compare, options: UiOptions) -> None:
    app = WatchedApp(staged(), options)
    assert snap_compare(app, terminal_size=(80, 24), run_before=after("2", "down", "down", "x"))


def test_a_search_in_the_log(snap_compare: Compare) -> None:
    keys = ("2", "down", "enter", "slash", *"loss", "enter", "N", "space")
    assert snap_compare(WatchedApp(staged()), terminal_size=(120, 40), run_before=after(*keys))


def test_the_log_wrapped_with_stamps(snap_compare: Compare) -> None:
    keys = ("2", "down", "enter", "W", "t", "k")
    assert snap_compare(WatchedApp(staged()), terminal_size=(120, 40), run_before=after(*keys))


def test_few_widgets_are_mounted() -> None:
    """The widget count is the budget of a screen."""
    import asyncio

    async def count() -> list[int]:
        app = WatchedApp(staged())
        counts = []
        async with app.run_test(size=(200, 50)) as pilot:
            for keys in (("2",), ("2", "enter"), ("3",), ("4",), ("5",)):
                for key in keys:
                    await pilot.press(key)
                    await pilot.pause()
                counts.append(len(app.screen.query("*")))
        return counts

    assert max(asyncio.run(count())) <= 40
