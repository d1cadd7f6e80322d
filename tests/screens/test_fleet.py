"""The fleet screen: what is drawn, when it is drawn again, and what its keys do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.domain.models import HostName
from cockpit.screens.dialogs import ChoiceMenu
from cockpit.screens.first_start import FirstStartScreen
from cockpit.screens.host import HostScreen
from cockpit.screens.host_key import HostKeyDialog
from cockpit.widgets.filter_bar import FilterBar
from cockpit.widgets.fleet_note import FleetNote
from cockpit.widgets.fleet_view import FleetView
from cockpit.widgets.options import UiOptions
from tests.builders.samples import gpu, host_sample
from tests.screens.capture import CapturingApp
from tests.screens.fake_engine import FakeEngine, oom_incident
from tests.screens.fleets import calm, large, sixteen, stale, trouble


async def settled(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    await pilot.pause()


def view_of(app: CockpitApp) -> FleetView:
    return app.screen.query_one(FleetView)


def lines(app: CockpitApp) -> list[str]:
    view = view_of(app)
    return [view.render_line(y).text for y in range(view.size.height)]


def text(app: CockpitApp) -> str:
    return "\n".join(lines(app))


def note(app: CockpitApp) -> str:
    return app.screen.query_one(FleetNote).render_line(0).text


def touch(engine: FakeEngine, host: str, util: int) -> None:
    """A new sample of a host in which only utilisation differs."""
    latest = engine.state(host).latest
    assert latest is not None
    cards = tuple(replace(card, util_pct=util) for card in latest.gpus)
    engine.fleet.record(replace(latest, at_s=latest.at_s + 1, gpus=cards), engine.clock_s)


async def pull(app: CockpitApp, pilot: Pilot[Any]) -> None:
    app.screen.pull()  # type: ignore[attr-defined]
    await settled(pilot)


async def test_panes_where_they_fit_and_rows_where_they_do_not() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert view_of(app).density == "pane"
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert view_of(app).density == "row"
        await pilot.press("d")
        await settled(pilot)
        assert view_of(app).density == "pane"


async def test_sixteen_cards_show_in_80x24() -> None:
    app = CockpitApp(sixteen())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        shown = text(app)

        for card in range(16):
            assert f"{100 - card:>3}%" in shown
        assert shown.count("dgx-h200-east") == 1
        assert note(app).strip() == ""


async def test_the_last_line_says_how_many_hosts_are_below() -> None:
    app = CockpitApp(large(10))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "7 hosts below" in note(app)

        await pilot.press("G")
        await settled(pilot)
        assert "hosts above" in note(app) and "below" not in note(app)
        assert view_of(app).cursor == ("node-009", 7)


async def test_only_hosts_that_changed_are_drawn_again() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pull(app, pilot)
        view_of(app).drawn.clear()

        await pull(app, pilot)
        assert not view_of(app).drawn

        touch(engine, "h100", 55)
        await pull(app, pilot)
        assert set(view_of(app).drawn) == {"h100"}
        assert "55%" in text(app)


async def test_hosts_out_of_sight_are_not_drawn() -> None:
    engine = large(40)
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pull(app, pilot)
        view_of(app).drawn.clear()

        for number in range(40):
            touch(engine, f"node-{number:03}", 42)
        await pull(app, pilot)

        assert 3 <= len(view_of(app).drawn) <= 5


async def test_a_hundred_hosts_are_few_widgets_and_bounded_output() -> None:
    engine = large(100)
    app = CapturingApp(engine)
    async with app.run_test(size=(200, 50)) as pilot:
        await settled(pilot)
        await pull(app, pilot)
        assert len(app.screen.query("*")) <= 20

        app.take()
        for number in range(100):
            touch(engine, f"node-{number:03}", 42)
        await pull(app, pilot)
        everything = len(app.take().encode())
        touch(engine, "node-000", 43)
        await pull(app, pilot)
        one_host = len(app.take().encode())

        assert 0 < everything < 40_000
        assert 0 < one_host < everything / 4


async def test_stale_hosts_keep_their_numbers_grey_with_age_and_reason() -> None:
    engine = stale(calm())
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert "no answer for 14 s, next try in 4 s" in text(app)
        assert "25.5/40.0G" in text(app)

        engine.clock_s += 2
        await pull(app, pilot)
        assert "no answer for 16 s, next try in 2 s" in text(app)


async def test_what_is_wrong_is_said_in_words() -> None:
    app = CockpitApp(trouble())
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        shown = text(app)

        for words in (
            "GPU is lost", "needs a reset", "!89°C", "Driver/library version mismatch", "by proc",
            "connecting", "vllm-7b !", "qwen-lora ✗",
        ):  # fmt: skip
            assert words in shown


async def test_moving_and_opening() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert view_of(app).cursor == ("vast-a", 0)
        await pilot.press("j", "down", "k")
        assert view_of(app).cursor == ("h100", 0)

        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, HostScreen)


async def test_a_click_selects_and_a_double_click_opens() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.click(FleetView, offset=(20, 5))
        await settled(pilot)
        assert view_of(app).cursor == ("h100", 1)

        await pilot.double_click(FleetView, offset=(20, 5))
        await settled(pilot)
        assert isinstance(app.screen, HostScreen)


async def test_the_cursor_stays_on_its_card_when_lines_move() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("G")
        engine.with_host(host_sample("new", gpus=[gpu(0), gpu(1)]))
        engine.fleet.hosts = {
            HostName("new"): engine.fleet.hosts[HostName("new")],
            **engine.fleet.hosts,
        }
        await pull(app, pilot)

        assert view_of(app).cursor == ("a100", 1)


async def test_trouble_can_be_jumped_to() -> None:
    app = CockpitApp(trouble())
    async with app.run_test(size=(80, 40)) as pilot:
        await settled(pilot)
        visited = []
        for _n in range(7):
            await pilot.press("n")
            visited.append(view_of(app).cursor)
        await pilot.press("N")

        assert visited == [
            ("h100", 3), ("a100", None), ("a100", 0), ("small-1", None), ("new-box", None),
            ("rtx-lab", None), ("vast-a", 0),
        ]  # fmt: skip
        assert view_of(app).cursor == ("rtx-lab", None)


async def test_only_trouble() -> None:
    app = CockpitApp(trouble())
    async with app.run_test(size=(80, 40)) as pilot:
        await pilot.press("exclamation_mark")
        await settled(pilot)
        shown = text(app)
        assert "llama-sft" not in shown and "slow" not in shown
        assert "qwen-lora" in shown and "GPU is lost" in shown
        assert "only trouble" in note(app)

        await pilot.press("escape")
        await settled(pilot)
        assert "llama-sft" in text(app)


async def test_filter_is_live_and_keeps_the_last_that_could_be_read() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("slash", *"free>39G")
        await settled(pilot)
        assert "h100" in text(app) and "vast-a" not in text(app)

        await pilot.press(*" tmp")
        await settled(pilot)
        assert "h100" in text(app), "half a word never empties the screen"
        await pilot.press(*">1")
        await settled(pilot)
        bar = app.screen.query_one("#filter-note")
        assert "no field tmp: temp?" in str(bar.render()) and bar.has_class("-wrong")
        assert "vast-a" not in text(app)

        await pilot.press("tab")
        await settled(pilot)
        assert app.screen.query_one(FilterBar).text == "free>39G temp>1"

        await pilot.press("enter")
        await settled(pilot)
        assert "free > 39.0 GiB   temp > 1 C   2 of 6" in note(app)
        assert view_of(app).has_focus

        await pilot.press("escape")
        await settled(pilot)
        assert "vast-a" in text(app)


async def test_an_empty_filter_result_says_why() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("slash", *"free>200GiB", "enter")
        await settled(pilot)

        assert "No card has free > 200.0 GiB. Largest free now: 79.6G. esc shows all 6" in note(app)


async def test_numbers_of_a_stale_host_are_unknown_to_a_filter() -> None:
    app = CockpitApp(stale(calm()))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("slash", *"temp<80", "enter")
        await settled(pilot)

        assert "4 of 6, 2 unknown" in note(app)


async def test_saved_filters_by_name() -> None:
    app = CockpitApp(calm(), UiOptions(filters={"mine": "host:a100"}))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("slash", *"/mine", "enter")
        await settled(pilot)

        assert "host has a100" in note(app)


async def test_history_of_filters() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("slash", *"h100", "enter", "escape", "slash", "up")
        await settled(pilot)

        assert app.screen.query_one(FilterBar).text == "h100"


@pytest.mark.parametrize(
    ("letters", "first"),
    [
        ("f", "h100"),
        ("p", "h100"),
        ("n", "a100"),
        ("nn", "vast-a"),
        ("u", "h100"),
        ("o", "a100"),
    ],
)
async def test_sorting(letters: str, first: str) -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        for letter in letters:
            await pilot.press("s")
            await settled(pilot)
            assert isinstance(app.screen, ChoiceMenu)
            await pilot.press(letter)
            await settled(pilot)

        assert view_of(app).plan.entries[0].host == first


async def test_hosts_that_must_be_trusted_open_their_key() -> None:
    app = CockpitApp(trouble())
    async with app.run_test(size=(80, 40)) as pilot:
        await settled(pilot)
        view_of(app).select(HostName("new-box"), None)
        await pilot.press("enter")
        await settled(pilot)

        assert isinstance(app.screen, HostKeyDialog)


async def test_a_adds_a_host() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("A")
        await settled(pilot)

        assert isinstance(app.screen, FirstStartScreen)


async def test_probe_and_copy_are_about_the_cursor() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("down", "f5", "y")
        await settled(pilot)

        assert engine.asked("probe_now") == [(("h100",),)]
        assert app.clipboard == "GPU-00000000-0000-4000-8000-000000000000"


async def test_an_incident_marks_its_card_at_once() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert "qwen-lora ✗" not in text(app)
        engine.put_incident(oom_incident())
        await settled(pilot)

        assert "qwen-lora ✗" in text(app)


async def test_a_number_explains_itself_to_the_pointer() -> None:
    app = CockpitApp(trouble())
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        row = lines(app)[1]
        for part, words in (
            ("97%", "utilisation 97 %"), ("22.8", "memory 22.8/24.0G"), ("64", "temperature 64 C"),
            ("402/450W", "power 402/450W"), ("qwen", "used by qwen-lora"), ("0 ", "card NVIDIA"),
        ):  # fmt: skip
            await pilot.hover(FleetView, offset=(row.index(part) + 1, 1))
            await settled(pilot)
            tip = str(view_of(app).tooltip)
            assert words in tip and "by NVML" in tip


async def test_the_screen_below_paints_nothing() -> None:
    engine = calm()
    app = CapturingApp(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("enter")
        await settled(pilot)
        fleet = app.screen_stack[0]
        app.take()
        touch(engine, "h100", 12)
        fleet._pull_if_current()  # type: ignore[attr-defined]
        await settled(pilot)

        assert app.take() == ""
