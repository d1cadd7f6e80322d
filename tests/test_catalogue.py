"""The Chinese catalogue against the sources: nothing missing, nothing stale, every placeholder kept."""

from __future__ import annotations

import ast
import os
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cockpit
from cockpit.domain.cells import cell_len
from cockpit.i18n import use_language
from cockpit.i18n.po import read_po
from cockpit.i18n.problem_text import problem_text

PACKAGE = Path(cockpit.__file__).parent
ROOT = PACKAGE.parent
CATALOGUE = PACKAGE / "i18n" / "locales" / "zh_CN" / "LC_MESSAGES" / "cockpit.po"
FOLDERS = (PACKAGE, ROOT / "screens", ROOT / "widgets")
_MARKS = ("_", "N_", "ngettext")

Marked = dict[str, tuple[str, str | None]]


def calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in _MARKS and node.args:
                yield node


def text_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


@pytest.fixture(scope="module")
def marked() -> Marked:
    """English sentences by their text: where each stands, and the plural that goes with it."""
    found: Marked = {}
    paths = {path.resolve() for folder in FOLDERS for path in folder.rglob("*.py")}
    for path in sorted(paths):
        for call in calls(path):
            text = text_of(call.args[0])
            if text is not None:
                many = text_of(call.args[1]) if len(call.args) > 1 else None
                found.setdefault(text, (f"{path.relative_to(ROOT)}:{call.lineno}", many))
    return found


@pytest.fixture(scope="module")
def chinese() -> dict[str, str]:
    return read_po(CATALOGUE)


def placeholders(text: str) -> set[tuple[str, str]]:
    """Names with their format: `{count:,}` is not `{count}`."""
    return {
        (name, spec or "")
        for _text, name, spec, _conversion in string.Formatter().parse(text)
        if name is not None
    }


def test_every_marked_sentence_is_translated(marked: Marked, chinese: dict[str, str]) -> None:
    missing = [f"{place}  {text}" for text, (place, _many) in marked.items() if text not in chinese]
    assert len(marked) > 1500
    assert not missing, "\n".join(["not in cockpit.po:", *missing])


def test_no_entry_outlives_its_sentence(marked: Marked, chinese: dict[str, str]) -> None:
    assert not [text for text in chinese if text not in marked]


def test_placeholders_are_those_of_the_english(marked: Marked, chinese: dict[str, str]) -> None:
    wrong = []
    for text, said in chinese.items():
        many = marked.get(text, ("", None))[1]
        known = placeholders(text) | placeholders(many or "")
        if not placeholders(text) <= placeholders(said) <= known:
            wrong.append(f"{text}  ->  {said}")
    assert not wrong, "\n".join(wrong)


def test_no_brace_or_backtick_is_full_width(chinese: dict[str, str]) -> None:
    assert not [said for said in chinese.values() if set("｛｝｀") & set(said)]


def test_what_a_reader_types_stays_as_it_is(chinese: dict[str, str]) -> None:
    def typed(text: str) -> list[str]:
        return [part for part in text.split("`")[1::2] if part.isascii()]

    wrong = [text for text, said in chinese.items() if sorted(typed(text)) != sorted(typed(said))]
    allowed = [
        'or name one: `python = "/path"` under [hosts.{host}]',
        "`:password` once, not stored",
    ]
    assert [text for text in wrong if text not in allowed] == []


_DRAW = """
import asyncio, sys
from cockpit.i18n import use_language
use_language("zh_CN")
from cockpit.app import CockpitApp
from cockpit.domain.models import HostName
from cockpit.screens.host import HostScreen
from tests.screens.fleets import trouble

async def main(keys, size):
    app = CockpitApp(trouble())
    async with app.run_test(size=size) as pilot:
        for _n in range(3):
            await pilot.pause()
        for key in keys:
            if key == "HOST":
                await app.push_screen(HostScreen(HostName("h100")))
            else:
                await pilot.press(key)
            for _n in range(3):
                await pilot.pause()
        for strip in app.screen._compositor.render_strips():
            print("".join(segment.text for segment in strip))

width, height, *keys = sys.argv[1:]
asyncio.run(main(keys, (int(width), int(height))))
"""


def drawn(size: tuple[int, int], *keys: str) -> list[str]:
    """A screen in Chinese, line by line; apart, since key labels are made when a module is loaded."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "TERM": "xterm"}
    command = [sys.executable, "-c", _DRAW, *map(str, size), *keys]
    done = subprocess.run(
        command, capture_output=True, env=environ, cwd=ROOT, timeout=120, check=True
    )
    return done.stdout.decode().splitlines()


SCREENS = {
    "fleet": ((), "筛选"),
    "host": (("HOST",), "在此启动"),
    "help": (("question_mark",), "方向键滚动"),
    "runs": (("2",), "停止"),
    "incidents": (("3",), "已知晓"),
}


@pytest.mark.parametrize("name", sorted(SCREENS))
def test_a_screen_in_chinese_keeps_its_lines_straight(name: str) -> None:
    keys, label = SCREENS[name]
    lines = drawn((80, 24), *keys)
    assert {cell_len(line) for line in lines} == {80}
    assert label in "\n".join(lines)


def test_names_over_columns_stand_where_the_rows_do() -> None:
    lines = drawn((120, 40), "HOST")
    head = next(line for line in lines if "用户" in line)
    row = lines[lines.index(head) + 1]
    start = cell_len(head[: head.index("用户")])
    before = row[: row.index("root")]
    assert cell_len(before) == start


def test_what_was_expected_is_said_in_chinese() -> None:
    use_language("zh_CN")
    try:
        assert problem_text("wrong_type", {"expected": "a table"}) == "不是表"
    finally:
        use_language("en")
