"""The story of an incident: the curve, the lines around its evidence, who was there, what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from cockpit.domain.cells import cell_len
from cockpit.domain.incident_proof import Curve, Proof, Step
from cockpit.domain.incidents import Incident
from cockpit.engine.api import LogLine
from cockpit.i18n import use_language
from cockpit.screens.incidents import IncidentsScreen
from cockpit.widgets.curve_chart import curve_rows, curve_title, spread
from cockpit.widgets.glyphs import ASCII, NARROW, UNICODE
from cockpit.widgets.incident_row import IncidentRow, moment
from cockpit.widgets.look import Look
from cockpit.widgets.text_pane import TextPane, layout, para
from tests.screens.fake_engine import WALL_S, FakeEngine, oom_incident
from tests.screens.incident_scenes import LEAK_KEY, OFFSET, OOM_KEY, climb, oom, storied
from tests.screens.run_scenes import WatchedApp, cockpit, workers_done


def story(app: WatchedApp) -> str:
    return app.screen.query_one("#card", TextPane).plain_text


async def test_the_story_has_the_curve_the_company_and_the_versions() -> None:
    async with cockpit(storied(), "3") as (app, _pilot):
        await workers_done(app)
        text = story(app)
        assert "memory of GPU 0: from 900 MiB to 22.5 GiB of 24.0 GiB in the 10 m before" in text
        assert "python 4121 22.2 GiB (this run), jupyter-lab 977 640 MiB (anna)" in text
        assert "driver 550.54.15, CUDA 12.4, Ubuntu 22.04" in text
        assert "cockpit replay vast-a-20231114-2212.rec" in text
        assert "▂▃▄▆" in text and "─✗" in text


async def test_the_evidence_stands_among_its_neighbours() -> None:
    engine = storied()
    async with cockpit(engine, "3") as (app, _pilot):
        await workers_done(app)
        text = story(app)
        assert "trainer.train()" in text and "▌ torch.OutOfMemoryError" in text
        assert text.count("torch.OutOfMemoryError") == 1
        assert engine.asked("log_context") == [(OOM_KEY, OFFSET)]


async def test_lines_that_come_after_are_read_once_more_when_it_has_settled() -> None:
    engine = storied()
    fresh = replace(oom(), opened_s=WALL_S - 1, last_s=WALL_S - 1)
    engine.incidents.put(fresh)
    async with cockpit(engine, "3") as (app, _pilot):
        await workers_done(app)
        assert len(engine.asked("log_context")) == 1
        engine.clock_s += 30
        engine.contexts[OFFSET] = (*engine.contexts[OFFSET], LogLine(9, OFFSET + 900, "after it"))
        app.screen.pull()  # type: ignore[attr-defined]
        await workers_done(app)
        assert "after it" in story(app)
        app.screen.pull()  # type: ignore[attr-defined]
        await workers_done(app)
        assert len(engine.asked("log_context")) == 2


async def test_without_neighbours_the_line_stands_alone() -> None:
    engine = storied()
    engine.contexts.clear()
    async with cockpit(engine, "3") as (app, _pilot):
        await workers_done(app)
        assert "torch.OutOfMemoryError" in story(app) and "▌" not in story(app)


async def test_a_line_that_stood_there_before_has_no_readings_and_says_so() -> None:
    engine = storied()
    engine.incidents.put(replace(oom(), proof=None))
    async with cockpit(engine, "3") as (app, _pilot):
        assert "before anybody watched" in story(app)


async def test_a_deadline_is_a_time_of_the_clock() -> None:
    async with cockpit(storied(), "3", "down") as (app, _pilot):
        assert "Full at about 11-15 03:13." in story(app)
        assert "memory of vllm 88 on GPU 0" in story(app) and "9 h 15 m" in story(app)


async def test_every_step_has_its_time() -> None:
    async with cockpit(storied(), "3", "down") as (app, _pilot):
        lines = [line.strip() for line in story(app).splitlines()]
        told = [line for line in lines if line.endswith(("opened", "recovered", "opened again"))]
        assert [line.split()[0] for line in told] == ["21:23:20", "21:40:00", "22:09:20"]


async def test_what_to_do_first_stands_on_top_where_the_end_is_out_of_sight() -> None:
    async with cockpit(storied(), "3") as (app, _pilot):
        assert "do first" in app.rows[3]
    async with cockpit(storied(), "3", size=(200, 70)) as (app, _pilot):
        assert "do first" not in app.text


async def test_an_idle_card_is_told_by_its_use() -> None:
    async with cockpit(storied(), "3", "down", "down") as (app, _pilot):
        assert "use of GPU 2: 0 to 100 %, 0 % at the end" in story(app)
        assert "then on it  nobody" in story(app)


async def test_the_narrow_screen_has_the_list_above_its_story() -> None:
    async with cockpit(storied(), "3", size=(80, 24)) as (app, pilot):
        await pilot.pause()
        assert "3 incidents" in app.rows[1] and "its story" in app.rows[6]
        await pilot.press("z")
        await pilot.pause()
        assert "its story" in app.rows[1]
        await pilot.press("escape")
        await pilot.pause()
        assert "3 incidents" in app.rows[1]


async def test_many_incidents_leave_the_narrow_story_most_of_the_height() -> None:
    engine = storied()
    for number in range(30):
        engine.incidents.put(oom_incident(f"k{number}", opened_s=WALL_S - number))
    async with cockpit(engine, "3", size=(80, 24)) as (app, pilot):
        await pilot.pause()
        at = next(n for n, row in enumerate(app.rows) if "its story" in row)
        assert at <= 10


# Pieces.


def curve(values: tuple[float | None, ...], top: float | None = 100.0) -> Curve:
    return Curve("gpu", 5.0, WALL_S, values, top, gpu=0)


@pytest.mark.parametrize("glyphs", [UNICODE, NARROW, ASCII], ids=lambda one: one.name)
@pytest.mark.parametrize("width", [8, 20, 21, 40, 80, 200])
def test_a_chart_is_as_wide_as_it_may_be_and_no_wider(width: int, glyphs: object) -> None:
    rows = curve_rows(curve(climb(), 24_564.0), width, glyphs)  # type: ignore[arg-type]
    assert bool(rows) == (width >= 20)
    assert all(len(axis) + len(line) <= width for axis, line in rows)


@pytest.mark.parametrize(
    "values",
    [(), (None,), (None, None), (0.0,), (1.0,), tuple([5.0] * 120), (None, 1.0, None, 3.0)],
    ids=["none", "one-gap", "gaps", "zero", "one", "level", "holes"],
)
def test_any_curve_can_be_drawn(values: tuple[float | None, ...]) -> None:
    for top in (None, 0.0, 100.0, 0.5):
        assert isinstance(curve_title(curve(values, top)), str)
        curve_rows(curve(values, top), 60, UNICODE)


@pytest.mark.parametrize("count", [1, 2, 59, 60, 61, 119, 120])
@pytest.mark.parametrize("cells", [12, 60, 61])
def test_joining_loses_neither_the_end_nor_the_peak(count: int, cells: int) -> None:
    values: list[float | None] = [float(n) for n in range(count)]
    values[count // 2] = 999.0
    found = spread(values, cells)
    assert len(found) <= cells
    assert max(value or 0 for value in found) == 999.0
    assert found[-1] == values[-1]


def test_another_day_is_told_by_its_date() -> None:
    assert moment(WALL_S, WALL_S) == "22:13:20"
    assert moment(WALL_S - 86_400, WALL_S) == "11-13 22:13"


@pytest.mark.parametrize("width", range(16, 90, 7))
@pytest.mark.parametrize("title", ["Stuck", "GPU memory keeps growing", "显存持续上涨，请尽快处理"])
def test_a_row_fits_any_width(title: str, width: int) -> None:
    incident = replace(
        oom_incident(), count=12, state="recovered", profile="名字很长的训练任务-qwen"
    )
    line = IncidentRow(incident, title, "11-30 12:04").draw(Look(), width)
    assert line.strip(width).cell_length == width


def test_the_place_is_the_last_to_go() -> None:
    row = IncidentRow(oom_incident(), "GPU memory keeps growing")
    assert "qwen-lora vast-a:0" in row.draw(Look(), 60).plain
    assert row.draw(Look(), 44).plain.rstrip().endswith("vast-a:0")
    assert "…  vast-a:0" in row.draw(Look(), 36).plain


@pytest.mark.parametrize("width", [1, 4, 8, 9, 15])
def test_a_pane_narrower_than_its_hang_is_laid_out_all_the_same(width: int) -> None:
    rows = layout([para("some words that are wrapped " * 3, indent=2, hang=12)], width)
    assert "".join(text for _indent, pieces in rows for text, _role in pieces).replace(" ", "")


async def test_hostile_texts_stay_in_their_place() -> None:
    evil = "\x1b]0;x\x07\x9b2J[bold]\u202e" + "x" * 3000
    engine = FakeEngine().with_host("vast-a", "live")
    proof = Proof(
        Curve("process", 5.0, WALL_S, (1.0,), 2.0, evil, 0), (), {"gpu": evil, "driver": evil}
    )
    one: Incident = replace(
        oom(), proof=proof, steps=(Step(WALL_S, evil, evil),), recording=evil, state_why=evil
    )
    engine.incidents.put(one)
    engine.contexts[OFFSET] = (LogLine(1, OFFSET, evil),)
    async with cockpit(engine, "3") as (app, _pilot):
        await workers_done(app)
        written = app.take()
        assert "\x1b]0;x" not in written and "\x9b2J" not in written and "\u202e" not in written
        assert isinstance(app.screen, IncidentsScreen)


async def test_the_leak_is_chosen_by_its_key() -> None:
    async with cockpit(storied(), "3") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, IncidentsScreen)
        screen.select(LEAK_KEY)
        await pilot.pause()
        assert screen.chosen is not None and screen.chosen.family == "leak"


async def test_how_sure_the_detector_is_stands_beside_its_reasons() -> None:
    engine = storied()
    finding = replace(oom().finding, facts={"confidence": "likely", "tried_mib": 7})
    engine.incidents.put(replace(oom(), finding=finding))
    async with cockpit(engine, "3") as (app, _pilot):
        assert "Why we think so   likely" in app.text
        assert "confidence" not in story(app)


@pytest.fixture
def _chinese() -> Iterator[None]:
    use_language("zh_CN")
    yield
    use_language("en")


@pytest.mark.usefixtures("_chinese")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_wide_characters_keep_every_row_in_its_frame(size: tuple[int, int]) -> None:
    engine = storied()
    wide = replace(oom(), profile="千问微调任务-第三次重新启动", state="seen", count=3)
    engine.incidents.put(wide)
    async with cockpit(engine, "3", "H", size=size) as (app, _pilot):
        await workers_done(app)
        assert "显存溢出" in app.text
        assert {cell_len(row) for row in app.rows} == {size[0]}
