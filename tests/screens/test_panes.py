"""Text for panes: wrapping by cells, diffs, TOML in colours; and the list that keeps its cursor."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from cockpit.widgets.diff import patch_paras, toml_value, value_at
from cockpit.widgets.drawing import Line
from cockpit.widgets.log_bar import thumb_rows, tick_rows
from cockpit.widgets.log_index import AllLines
from cockpit.widgets.look import Look
from cockpit.widgets.row_list import RowList
from cockpit.widgets.text_pane import Para, TextPane, code, layout, para
from cockpit.widgets.toml_text import toml_line, toml_paras
from cockpit.widgets.words import wrapped
from tests.screens.logs import CountingLog

PROSE = "The card was full: 22.8 of 23.6 GiB held, 1.75 GiB asked for."
CHINESE = "显存不够：共 23.6 GiB，已占 22.8 GiB，还要申请 1.75 GiB，只剩 0.79 GiB。"


@pytest.mark.parametrize("text", [PROSE, CHINESE, "x" * 90, "显" * 60, "a\nb", ""])
@pytest.mark.parametrize("width", [8, 13, 40])
def test_wrapping_keeps_within_the_width_and_loses_nothing(text: str, width: int) -> None:
    lines = wrapped(text, width, hang=2)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_no_line_begins_with_closing_punctuation() -> None:
    for width in range(8, 40):
        assert not any(line.lstrip()[:1] in "，。：" for line in wrapped(CHINESE, width) if line)


def test_roles_stay_with_their_words_when_a_line_wraps() -> None:
    one = Para((("where    ", "muted"), ("a long place that wraps", "strong")), hang=9)
    rows = layout([one], 20)
    assert rows[0][1][0] == ("where    ", "muted")
    assert all(
        role == "strong" for _indent, pieces in rows[1:] for text, role in pieces if text.strip()
    )


def test_code_keeps_its_blanks_and_is_one_row() -> None:
    assert layout([code(("  x = 1", "text"), indent=2)], 4) == [(2, (("  x = 1", "text"),))]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (4, "4"), (0.85, "0.85"), ("a\"b", '"a\\"b"'), ("显存", '"显存"'),
        (["--batch", "4"], '["--batch", "4"]'), ({"a": 1}, "{ a = 1 }"), ({}, "{}"),
    ],
)  # fmt: skip
def test_values_as_toml_writes_them(value: object, text: str) -> None:
    assert toml_value(value) == text


def test_a_patch_shows_what_stands_there_now() -> None:
    before = {"vllm": {"gpu_memory_utilization": 0.9}}
    rows = patch_paras({"vllm.gpu_memory_utilization": 0.85, "vllm.max_model_len": 4096}, before)
    assert [one.plain for one in rows] == [
        "- vllm.gpu_memory_utilization = 0.9",
        "+ vllm.gpu_memory_utilization = 0.85",
        "+ vllm.max_model_len = 4096",
    ]


def test_without_the_profile_only_what_would_be_set() -> None:
    assert [one.plain for one in patch_paras({"a.b": 1}, None)] == ["+ a.b = 1"]
    assert value_at({"a": 1}, "a.b") is None


@pytest.mark.parametrize(
    "text",
    ['name = "x"  # why', "[gpus]", "[[a.b]]", "count = 2", "x = true", "  'odd' = 1", "", "}{"],
)
def test_coloured_toml_is_the_same_text(text: str) -> None:
    assert "".join(piece for piece, _role in toml_line(text)) == text


def test_roles_of_toml() -> None:
    pieces = dict(toml_line("count = 2  # cards"))
    assert (pieces["count"], pieces["2"], pieces["# cards"]) == ("ok", "warn", "muted")


def test_a_file_with_mistakes_has_line_numbers_and_an_endless_one_an_end() -> None:
    assert toml_paras("a = 1", numbers=True)[0].plain == "   1  a = 1"
    assert len(toml_paras("a = 1\n" * 5_000)) == 401


@pytest.mark.parametrize(
    ("place", "count", "rows"),
    [
        (0, 5, (0, 0)),
        (0, 100, (0, 1)),
        (90, 100, (9, 10)),
        (45, 100, (4, 5)),
        (999_990, 1_000_000, (9, 10)),
    ],
)
def test_the_thumb_is_where_one_is(place: int, count: int, rows: tuple[int, int]) -> None:
    assert thumb_rows(place, 10, count, 10) == rows


def test_ticks_show_the_worst_of_a_row_and_look_at_rows_only() -> None:
    log = CountingLog(1_000)
    ticks = tick_rows(AllLines(log), 10, [("hit", [5, 950]), ("fatal", [951]), ("mark", [6])])
    assert ticks == ((0, "mark"), (9, "fatal"))
    assert log.read == []


@dataclass(frozen=True)
class Plain:
    key: str

    def draw(self, look: Look, width: int) -> Line:
        return Line(look.text).add(self.key)


class ListApp(App[None]):
    def compose(self) -> ComposeResult:
        yield RowList("list", empty="nothing here", id="rows")
        yield TextPane("text")

    @property
    def rows(self) -> RowList:
        return self.query_one(RowList)


async def test_the_cursor_follows_its_row_and_takes_the_place_of_one_that_left() -> None:
    app = ListApp()
    async with app.run_test(size=(40, 12)) as pilot:
        app.rows.focus()
        app.rows.show([Plain(key) for key in "abc"])
        await pilot.press("down")
        app.rows.show([Plain(key) for key in "xabc"])
        assert app.rows.cursor_key == "b"
        app.rows.show([Plain(key) for key in "xac"])
        assert app.rows.cursor_key == "c"
        app.rows.show([])
        assert app.rows.cursor_key is None
        await pilot.press("down", "enter", "G")


async def test_a_long_list_scrolls_with_its_cursor_and_a_click_goes_there() -> None:
    app = ListApp()
    async with app.run_test(size=(40, 24)) as pilot:
        app.rows.focus()
        app.rows.show([Plain(f"row {number}") for number in range(100)])
        await pilot.press("G")
        assert app.rows.top_row == 100 - app.rows.rows_shown
        await pilot.click("#rows", offset=(3, 1))
        assert app.rows.cursor_key == f"row {app.rows.top_row}"


async def test_the_same_text_again_changes_nothing() -> None:
    app = ListApp()
    async with app.run_test(size=(40, 12)) as pilot:
        pane = app.query_one(TextPane)
        pane.show([para(PROSE)] * 9)
        await pilot.pause()
        pane.focus()
        await pilot.press("down", "down")
        top = pane.top_row
        pane.show([para(PROSE)] * 9)
        assert pane.top_row == top == 2
