"""Each set holds what its terminals can show in one cell."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import fields

import pytest

from cockpit.domain.cells import cell_len
from cockpit.widgets.glyphs import ASCII, GLYPH_SETS, NARROW, UNICODE, Glyphs, choose_glyphs

NOT_SIGNS = {"name", "css_border"}


def signs(glyphs: Glyphs) -> Iterator[tuple[str, str]]:
    for field in fields(glyphs):
        value = getattr(glyphs, field.name)
        if field.name not in NOT_SIGNS:
            for sign in value if isinstance(value, tuple) else (value,):
                yield field.name, sign


@pytest.mark.parametrize("glyphs", GLYPH_SETS.values(), ids=lambda one: one.name)
def test_every_sign_is_one_cell(glyphs: Glyphs) -> None:
    wide = {name for name, sign in signs(glyphs) if cell_len(sign) != 1}

    assert wide <= {"degree", "enter"}


def test_the_narrow_set_has_nothing_that_east_asian_terminals_widen() -> None:
    ambiguous = {
        sign for _name, sign in signs(NARROW) for char in sign
        if unicodedata.east_asian_width(char) in "AWF"
    }  # fmt: skip

    assert not ambiguous


def test_the_ascii_set_is_ascii() -> None:
    assert all(sign.isascii() for _name, sign in signs(ASCII))


def test_no_sign_has_an_emoji_form_or_needs_a_selector() -> None:
    assert not {sign for _name, sign in signs(UNICODE)} & set("✖✔⚠▶◀▪▫ℹ⏸⏹")


@pytest.mark.parametrize(
    ("setting", "environ", "chosen"),
    [
        ("auto", {"TERM": "xterm-256color"}, UNICODE),
        ("auto", {"TERM": "linux"}, ASCII),
        ("auto", {"TERM": "xterm", "LANG": "C"}, ASCII),
        ("auto", {"TERM": "xterm", "LANG": "zh_CN.UTF-8"}, UNICODE),
        ("narrow", {"TERM": "xterm"}, NARROW),
        ("narrow", {"TERM": "xterm", "COCKPIT_GLYPHS": "ascii"}, ASCII),
        ("auto", {"TERM": "xterm", "COCKPIT_GLYPHS": "nonsense"}, UNICODE),
    ],
)
def test_choice(setting: str, environ: dict[str, str], chosen: Glyphs) -> None:
    assert choose_glyphs(setting, environ) is chosen
