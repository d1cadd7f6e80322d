"""Pictures of the fleet, the host, the first start and the help, at three sizes.

Made with one Python and one Textual; `pytest --snapshot-update` makes them anew after a wanted change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.domain.models import HostName
from cockpit.screens.host import HostScreen
from cockpit.screens.host_key import ask_trust
from cockpit.widgets.options import UiOptions
from tests.screens.fake_engine import FakeEngine
from tests.screens.fleets import calm, large, sixteen, stale, trouble

SnapCompare = Callable[..., bool]
SIZES = [(80, 24), (120, 40), (200, 50)]
sized = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


async def settle(pilot: Pilot[Any]) -> None:
    for _n in range(3):
        await pilot.pause()


def host_opened(name: str) -> Callable[[Pilot[Any]], Any]:
    async def open_it(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        await pilot.app.push_screen(HostScreen(HostName(name)))
        await settle(pilot)

    return open_it


@sized
@pytest.mark.parametrize("fleet", [calm, trouble], ids=lambda fleet: fleet.__name__)
def test_fleet(
    snap_compare: SnapCompare, fleet: Callable[[], FakeEngine], size: tuple[int, int]
) -> None:
    assert snap_compare(CockpitApp(fleet()), terminal_size=size, run_before=settle)


@sized
def test_fleet_stale(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    assert snap_compare(CockpitApp(stale(calm())), terminal_size=size, run_before=settle)


def test_fleet_of_sixteen_cards(snap_compare: SnapCompare) -> None:
    assert snap_compare(CockpitApp(sixteen()), terminal_size=(80, 24), run_before=settle)


def test_fleet_of_a_hundred_hosts(snap_compare: SnapCompare) -> None:
    assert snap_compare(CockpitApp(large()), terminal_size=(120, 40), run_before=settle)


@pytest.mark.parametrize("theme", ["light", "dark-hc", "light-cb", "ansi-dark-ground"])
def test_fleet_in_other_colours(snap_compare: SnapCompare, theme: str) -> None:
    app = CockpitApp(trouble(), UiOptions(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40), run_before=settle)


@pytest.mark.parametrize("glyphs", ["narrow", "ascii"])
def test_fleet_in_other_glyphs(snap_compare: SnapCompare, glyphs: str) -> None:
    app = CockpitApp(trouble(), UiOptions(glyphs=glyphs))
    assert snap_compare(app, terminal_size=(120, 40), run_before=settle)


def test_fleet_filtering(snap_compare: SnapCompare) -> None:
    async def type_it(pilot: Pilot[Any]) -> None:
        await pilot.press("slash", *"free>20GB & tmp>80")
        await settle(pilot)

    assert snap_compare(CockpitApp(calm()), terminal_size=(120, 40), run_before=type_it)


@sized
def test_host(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    app = CockpitApp(trouble())
    assert snap_compare(app, terminal_size=size, run_before=host_opened("h100"))


def test_host_in_braille(snap_compare: SnapCompare) -> None:
    app = CockpitApp(calm(), UiOptions(charts="braille"))
    assert snap_compare(app, terminal_size=(120, 40), run_before=host_opened("vast-a"))


@sized
def test_first_start(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    assert snap_compare(CockpitApp(FakeEngine()), terminal_size=size, run_before=settle)


def test_add_host(snap_compare: SnapCompare) -> None:
    async def type_it(pilot: Pilot[Any]) -> None:
        await pilot.press("A", *"ssh -p 41234 root@203.0.113.5 -A -i /no/key")
        await settle(pilot)

    assert snap_compare(CockpitApp(calm()), terminal_size=(120, 40), run_before=type_it)


@sized
def test_help(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    async def ask(pilot: Pilot[Any]) -> None:
        await pilot.press("question_mark")
        await settle(pilot)

    assert snap_compare(CockpitApp(calm()), terminal_size=size, run_before=ask)


@pytest.mark.parametrize("known", [None, "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8"])
def test_host_key(snap_compare: SnapCompare, known: str | None) -> None:
    engine = calm().with_host("new-box", "host_key", "host_key_unknown")
    engine.fleet.update(
        HostName("new-box"), known_fingerprint=known, fingerprint="SHA256:8kQnThbg6kXUpJ"
    )

    async def ask(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        ask_trust(pilot.app, HostName("new-box"))
        await settle(pilot)

    assert snap_compare(CockpitApp(engine), terminal_size=(80, 24), run_before=ask)


def test_desk(snap_compare: SnapCompare) -> None:
    async def go(pilot: Pilot[Any]) -> None:
        await pilot.press("5")
        await settle(pilot)

    assert snap_compare(CockpitApp(trouble()), terminal_size=(120, 40), run_before=go)


def test_too_small(snap_compare: SnapCompare) -> None:
    assert snap_compare(CockpitApp(calm()), terminal_size=(50, 12), run_before=settle)
