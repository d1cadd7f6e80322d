"""The timeline: order, filter, what is hidden, earlier sessions; and mutes made and taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.filter import parse_filter
from cockpit.domain.mutes import DAY_S, HOUR_S
from cockpit.screens import base
from cockpit.screens.incident_list import entries_of, in_order, passes
from cockpit.screens.incidents import IncidentsScreen
from cockpit.widgets.incident_strip import IncidentStrip
from cockpit.widgets.row_list import RowList
from tests.screens.fake_engine import WALL_S, FakeEngine, oom_incident
from tests.screens.incident_scenes import OOM_KEY, oom, other, storied
from tests.screens.run_scenes import WatchedApp, cockpit, workers_done

OLD = "run:r-old/gpu_oom/torch"


def keys(app: WatchedApp) -> list[str]:
    return [row.key for row in app.screen.query_one("#incidents", RowList)._rows]


async def test_first_what_matters_and_what_is_hidden_is_counted() -> None:
    async with cockpit(storied(), "3") as (app, _pilot):
        assert keys(app) == [OOM_KEY, "r-11c0:leak", "r-20b1:hang"]
        assert "H: 2 settled, 1 muted, 1 earlier" in app.text


async def test_all_shows_settled_muted_and_earlier_sessions() -> None:
    async with cockpit(storied(), "3", "H") as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        assert len(keys(app)) == 7 and any(key.startswith(OLD + "@") for key in keys(app))
        for words in ("muted", "closed", "recovered", "11-12 20:13"):
            assert words in app.text
        assert sum(OOM_KEY in key for key in keys(app)) == 1


async def test_by_time_the_newest_is_first() -> None:
    async with cockpit(storied(), "3", "H", "s", "t") as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        found = keys(app)
        assert found[0] == OOM_KEY and found[-1].startswith(OLD)
        assert "newest first" in app.text
        assert "recovered 21:06" in app.text


@pytest.mark.parametrize("order", ["u", "t", "h", "f"])
def test_every_order_shows_each_once(order: str) -> None:
    engine = storied()
    entries = entries_of(engine.incidents.all(), engine.earlier)
    assert sorted(one.key for one in in_order(entries, order)) == sorted(one.key for one in entries)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("family:gpu_oom", {OOM_KEY, OLD}),
        ("incident:leak", {"r-11c0:leak"}),
        ("host:h100", {"r-20b1:hang", "h100:disk", "h100:starved", "r-0a41:nan", OLD}),
        ("run:llama", {"r-20b1:hang"}),
        ("fatal !state:closed", {OOM_KEY, OLD}),
        ("severity:warning host:a100", {"r-11c0:leak"}),
        ("muted", {"h100:disk"}),
        ("state:seen", {"r-20b1:hang"}),
        ("opened<10m", {OOM_KEY, "r-11c0:leak"}),
        ("gpu=0", {OOM_KEY, "r-11c0:leak"}),
        ("growing | stuck", {"r-11c0:leak", "r-20b1:hang"}),
        ("torch.OutOfMemoryError", {OOM_KEY}),
        ("fixed", {"r-0a41:nan"}),
        ("rank=3", set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_words_and_tests_narrow_the_list(typed: str, found: set[str]) -> None:
    engine = storied()
    entries = entries_of(engine.incidents.all(), engine.earlier)
    kept = [one for one in entries if passes(engine, one, parse_filter(typed))]
    assert {one.incident.key for one in kept} == found


async def test_the_filter_is_live_and_escape_takes_it_back() -> None:
    async with cockpit(storied(), "3", "slash", *"family:leak") as (app, pilot):
        assert keys(app) == ["r-11c0:leak"]
        assert "1 of 3 incidents fit family:leak" in app.text
        await pilot.press("enter", "escape")
        await pilot.pause()
        assert len(keys(app)) == 3


async def test_an_empty_result_says_why() -> None:
    async with cockpit(storied(), "3", "slash", *"host:nowhere") as (app, _pilot):
        assert "No incident fits host:nowhere. esc shows all 3." in app.text


async def test_a_filter_that_cannot_be_read_keeps_the_last_one() -> None:
    async with cockpit(storied(), "3", "slash", *"family:leak & (") as (app, _pilot):
        assert keys(app) == ["r-11c0:leak"]
        assert "is missing at the end" in app.text


async def test_one_of_an_earlier_session_shows_as_it_was_and_takes_no_decision() -> None:
    engine = storied()
    async with cockpit(engine, "3", "H") as (app, pilot):
        await workers_done(app)
        screen = app.screen
        assert isinstance(screen, IncidentsScreen)
        screen.query_one("#incidents", RowList).select(keys(app)[-1])
        await pilot.pause()
        assert "Nobody watched any more after 11-12 20:13." in app.text
        for key in ("o", "x"):
            await pilot.press(key)
        await pilot.pause()
        assert app.said[-1].startswith("It is of an earlier session")
        assert engine.incidents.get(OLD) is None


async def test_one_that_the_filter_hides_is_shown_when_another_screen_asks_for_it() -> None:
    async with cockpit(storied(), "3", "slash", *"family:leak", "enter") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, IncidentsScreen)
        screen.select(OOM_KEY)
        await pilot.pause()
        assert screen.chosen is not None and screen.chosen.key == OOM_KEY


# Mutes.


@pytest.mark.parametrize(
    ("pressed", "scope", "for_s"),
    [
        (("m", "r", "h"), "run", HOUR_S),
        (("m", "c", "d"), "card", DAY_S),
        (("m", "h", "h"), "host", HOUR_S),
        (("m", "e", "a", *"known", "enter"), "everywhere", None),
    ],
    ids=["run", "card", "host", "everywhere"],
)
async def test_muting_takes_a_place_and_a_time(
    pressed: tuple[str, ...], scope: str, for_s: float | None
) -> None:
    engine = storied()
    async with cockpit(engine, "3", *pressed) as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        rule = engine.mutes[0]
        assert rule.scope == scope and rule.family == "gpu_oom"
        assert rule.until_s == (None if for_s is None else engine.wall_s() + for_s)
        assert rule.why == ("known" if for_s is None else "")
        assert OOM_KEY not in keys(app) and "2 muted" in app.text
        assert app.said[-1].startswith("Muted: Out of GPU memory")
        await pilot.press("u")
        await workers_done(app)
        await pilot.pause()
        assert OOM_KEY in keys(app)


async def test_the_same_menu_takes_a_rule_back() -> None:
    engine = storied()
    async with cockpit(engine, "3", "m") as (app, pilot):
        assert "take back: Trouble with a disk, on h100, until 23:12:20" in app.text
        await pilot.press("1")
        await workers_done(app)
        await pilot.pause()
        assert engine.mutes == () and "h100:disk" in keys(app)
        await pilot.press("u")
        await workers_done(app)
        assert len(engine.mutes) == 1


async def test_escape_from_either_menu_mutes_nothing() -> None:
    for pressed in (("m", "escape"), ("m", "h", "escape"), ("m", "h", "a", "escape")):
        engine = storied()
        async with cockpit(engine, "3", *pressed) as (app, _pilot):
            await workers_done(app)
            assert engine.asked("mute") == []


async def test_a_card_that_breaks_cannot_be_muted_for_ever() -> None:
    engine = FakeEngine().with_host("h100", "live")
    engine.incidents.put(other("hardware", "fatal", "h100:hardware", 1))
    async with cockpit(engine, "3", "m", "h", "a") as (app, _pilot):
        assert "not for a card that breaks" in app.text
        assert engine.asked("mute") == []


async def test_a_rule_that_could_not_be_kept_says_so() -> None:
    engine = storied()
    engine.keeps_mutes = False
    async with cockpit(engine, "3", "m", "h", "h") as (app, _pilot):
        await workers_done(app)
        assert "for this session" in app.said[-1]


async def test_what_is_muted_has_no_count_no_strip_no_toast_and_no_mark() -> None:
    engine = storied()
    rule = replace(
        engine.mutes[0], family="gpu_oom", signature="torch_oom", severity="fatal", host=None
    )
    async with cockpit(engine) as (app, pilot):
        await engine.mute(rule)
        await pilot.pause()
        app.said.clear()
        engine.put_incident(oom_incident("new", mute=rule.id))
        await pilot.pause()
        assert app.said == []
        shown = app.screen.query_one(IncidentStrip).incidents
        assert all(one.family != "gpu_oom" for one in shown)
        assert "✗ 1" not in app.rows[0] and "3 muted" in app.rows[0]


# At once.


@pytest.mark.parametrize(
    "pressed", [("1",), ("2",), ("3",), ("4",), ("5",), ("2", "enter")], ids=str
)
async def test_an_incident_is_on_every_screen_without_waiting_for_a_timer(
    monkeypatch: pytest.MonkeyPatch, pressed: tuple[str, ...]
) -> None:
    monkeypatch.setattr(base, "PULL_S", 3600.0)
    engine = storied()
    async with cockpit(engine, *pressed) as (app, pilot):
        await workers_done(app)
        app.take()
        engine.put_incident(oom_incident("at-once", opened_s=WALL_S + 1, profile="brand-new-run"))
        await pilot.pause()
        assert "brand-new" in app.text
        assert "✗ 2" in app.rows[0]


async def test_the_same_incident_again_repaints_nothing() -> None:
    engine = storied()
    async with cockpit(engine, "3") as (app, pilot):
        await workers_done(app)
        await pilot.pause()
        app.take()
        engine.put_incident(engine.incidents.all()[0])
        await pilot.pause()
        assert app.take() == ""
        assert oom().key == OOM_KEY
