"""The host screen: charts, processes, facts, and the signal that needs a dialog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.domain.models import HostName
from cockpit.domain.runs import RunView
from cockpit.engine.api import Forwarded
from cockpit.i18n.messages import explain
from cockpit.screens.dialogs import ChoiceMenu
from cockpit.screens.fleet import FleetScreen
from cockpit.screens.host import HostScreen
from cockpit.screens.run import RunScreen
from cockpit.widgets.chart_grid import ChartGrid
from cockpit.widgets.options import UiOptions
from cockpit.widgets.text_pane import TextPane
from tests.builders.samples import gpu, host_sample, process
from tests.screens.fake_engine import FakeEngine, FakeLog, run_view
from tests.screens.fleets import calm, stale, trouble


async def settled(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    await pilot.pause()


async def opened(pilot: Pilot[Any], host: str) -> HostScreen:
    screen = HostScreen(HostName(host))
    await pilot.app.push_screen(screen)
    await settled(pilot)
    return screen


def charts(screen: HostScreen) -> str:
    grid = screen.query_one(ChartGrid)
    return "\n".join(grid.render_line(y).text for y in range(grid.size.height))


def facts(screen: HostScreen) -> str:
    return screen.query_one("#facts", TextPane).plain_text


def processes(screen: HostScreen) -> str:
    table = screen.query_one("#processes")
    return "\n".join(table.render_line(y).text for y in range(table.size.height))


async def test_charts_have_a_row_a_card_a_shared_axis_and_runs() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, "h100")
        shown = charts(screen)

        assert shown.count("78.1/79.6G") == 2 and " 0.0/79.6G" in shown
        assert shown.count("-5 min") == 2 and "llama-sft" in shown
        assert "█" in shown


async def test_incidents_are_marked_on_the_axis() -> None:
    app = CockpitApp(trouble())
    async with app.run_test(size=(120, 40)) as pilot:
        axis = charts(await opened(pilot, "vast-a")).splitlines()[-2]

        assert axis.count("✗") == 2


async def test_braille_by_choice() -> None:
    app = CockpitApp(calm(), UiOptions(charts="braille"))
    async with app.run_test(size=(120, 40)) as pilot:
        assert "⣿" in charts(await opened(pilot, "h100"))


async def test_span_can_be_changed() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, "h100")
        await pilot.press("plus", "plus")
        assert "-1 min" in charts(screen)
        await pilot.press("minus", "minus", "minus")
        assert "-15 min" in charts(screen)


async def test_sixteen_cards_scroll_in_a_small_window() -> None:
    cards = [gpu(n, util_pct=80 + n) for n in range(16)]
    app = CockpitApp(FakeEngine().with_host(host_sample("many", gpus=cards)))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, "many")
        assert " 80%" in charts(screen) and " 95%" not in charts(screen)

        screen.query_one(ChartGrid).focus()
        await pilot.press("end")
        await settled(pilot)
        assert " 95%" in charts(screen) and "now" in charts(screen)


async def test_facts_of_host_and_link() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 40)) as pilot:
        text = facts(await opened(pilot, "vast-a"))

        for part in (
            "550.54.15, serves CUDA 12.4", "59.6/80.0G free", "203.0.113.5:41234", "41 ms",
            "ED25519 SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8",
            "login noise 26 B skipped", "29.3/58.6G in this container", "0.42 USD/h",
        ):  # fmt: skip
            assert part in text


async def test_what_is_wrong_with_cards_is_among_the_facts() -> None:
    app = CockpitApp(trouble())
    async with app.run_test(size=(120, 40)) as pilot:
        text = facts(await opened(pilot, "h100"))

        assert "2 uncorrected ECC errors; slowed by thermal_sw" in text
        assert "GPU is lost" in text


async def test_processes_by_card_with_run_and_command() -> None:
    run = run_view()
    busy = process(4121, run=run.run, mem_used_mib=22_000)
    engine = FakeEngine().with_host(
        host_sample("vast-a", gpus=[gpu(0, processes=(busy, process(9)))])
    )
    engine.put_run(run)
    app = CockpitApp(engine)
    async with app.run_test(size=(160, 40)) as pilot:
        text = processes(await opened(pilot, "vast-a"))

        assert "qwen-lora" in text and "python train.py --lr 1e-4" in text and "101%" in text
        assert text.index("4121") < text.index("      9  ")


async def test_enter_on_a_process_of_ours_opens_its_run() -> None:
    run: RunView = run_view()
    engine = FakeEngine().with_host(
        host_sample("vast-a", gpus=[gpu(0, processes=(process(run=run.run),))])
    )
    engine.put_run(run)
    engine.logs[run.run] = FakeLog(["hello"])
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, "vast-a")
        await pilot.press("enter")
        await settled(pilot)

        assert isinstance(app.screen, RunScreen)


@pytest.mark.parametrize(
    ("keys", "sent"),
    [("t", "TERM"), ("k", "KILL"), ("i", "INT"), ("c", None), ("enter", None), ("escape", None)],
)
async def test_a_signal_is_chosen_in_a_dialog_whose_default_sends_nothing(
    keys: str, sent: str | None
) -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, "vast-a")
        await pilot.press("x")
        await settled(pilot)
        assert isinstance(app.screen, ChoiceMenu)
        await pilot.press(keys)
        await settled(pilot)

        wanted = [] if sent is None else [("vast-a", 4121, 123_456, sent)]
        assert engine.asked("signal_process") == wanted


async def test_a_pid_of_another_container_is_never_signalled() -> None:
    hidden = process(4121, visible=False, started_ticks=None)
    engine = FakeEngine().with_host(host_sample("vast-a", gpus=[gpu(0, processes=(hidden,))]))
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, "vast-a")
        await pilot.press("x")
        await settled(pilot)

        assert app.screen is screen and len(app._notifications) == 1


async def test_the_host_is_focused_only_while_it_is_looked_at() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, "h100")
        await pilot.press("escape")
        await settled(pilot)

        assert engine.asked("focus") == [("h100",), (None,)]
        assert isinstance(app.screen, FleetScreen)


async def test_siblings_in_turn() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, "a100")
        await pilot.press("full_stop")
        await settled(pilot)
        assert "78.1" not in charts(screen) and "22.8/24.0G" in charts(screen)
        await pilot.press("comma", "left_square_bracket")
        await settled(pilot)
        assert "78.1/79.6G" in charts(screen)


async def test_a_stale_host_says_so_and_keeps_its_curves() -> None:
    engine = stale(calm())
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, "a100")
        assert "no answer for 14 s" in screen.query_one("#host-title").render_line(0).text
        assert "25.5/40.0G" in charts(screen)

        engine.clock_s += 3
        screen.pull()
        await settled(pilot)
        assert "no answer for 17 s" in screen.query_one("#host-title").render_line(0).text


async def test_a_removed_host_closes_its_screen() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, "a100")
        engine.fleet.remove(HostName("a100"))
        screen.pull()
        await settled(pilot)

        assert isinstance(app.screen, FleetScreen)


async def test_panes_take_turns_in_a_narrow_window() -> None:
    app = CockpitApp(calm())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, "h100")
        assert not screen.query_one("#facts").display
        await pilot.press("tab")
        await settled(pilot)
        assert screen.query_one("#facts").has_focus and not screen.query_one("#processes").display
        await pilot.press("tab", "tab")
        await settled(pilot)
        assert screen.query_one("#processes").has_focus


async def test_new_samples_move_the_charts() -> None:
    engine = calm()
    app = CockpitApp(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, "vast-a")
        latest = engine.state("vast-a").latest
        assert latest is not None
        cards = (replace(latest.gpus[0], util_pct=3, mem_used_mib=1_024),)
        engine.fleet.record(replace(latest, at_s=latest.at_s + 1, gpus=cards), engine.clock_s)
        screen.pull()
        await settled(pilot)

        assert "  3%" in charts(screen) and " 1.0/24.0G" in charts(screen)


async def test_a_host_in_trouble_says_in_full_what_happened_and_what_to_do() -> None:
    engine = calm()
    state = engine.fleet.hosts[HostName("h100")]
    state.link, state.code, state.why = "unreachable", "unreachable", {"why": "refused"}
    app = CockpitApp(engine)
    async with app.run_test(size=(200, 50)) as pilot:
        shown = " ".join(facts(await opened(pilot, "h100")).split())

    told = explain("unreachable", {"host": "h100", "why": "refused"})
    assert told.body
    for text in (told.headline, told.body, *told.actions):
        assert " ".join(text.split()) in shown


async def test_forwarded_ports_and_money_for_nothing_are_among_the_facts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = calm()
    host = HostName("vast-a")
    engine.forwards[host] = (
        Forwarded(8080, 80, is_open=True),
        Forwarded(9000, 9000, is_open=False, code="port_taken"),
    )
    engine.fleet.update(host, idle_since_s=engine.now_s() - 3600)
    opened_urls: list[str] = []
    async with CockpitApp(engine).run_test(size=(160, 60)) as pilot:
        screen = await opened(pilot, "vast-a")
        monkeypatch.setattr(pilot.app, "open_url", opened_urls.append)
        text = "\n".join(one.plain for one in screen.query_one("#facts", TextPane)._paras)
        assert "localhost:8080 -> 80" in text and "taken on this computer" in text
        assert "idle 1 h: 0.42 USD for nothing" in text
        await pilot.press("b")
        await settled(pilot)
        assert opened_urls == ["http://localhost:8080/"]
