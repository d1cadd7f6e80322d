"""Bars, sparklines and charts: fixed axes, and missing is not zero."""

from __future__ import annotations

import pytest

from cockpit.engine.fleet import GpuHistory
from cockpit.widgets.chart import area, binned, place_of
from cockpit.widgets.gauges import bar, recent, spark
from cockpit.widgets.glyphs import ASCII, GLYPH_SETS, NARROW, UNICODE, Glyphs
from tests.builders.samples import gpu


@pytest.mark.parametrize(
    ("fraction", "full", "empty"),
    [
        (0.0, "", "░░░░"),
        (0.001, "", "░░░░"),
        (0.01, "▏", "░░░"),
        (0.5, "██", "░░"),
        (0.53, "██▏", "░"),
        (1.0, "████", ""),
        (1.7, "████", ""),
        (None, "", "    "),
    ],
)
def test_bar(fraction: float | None, full: str, empty: str) -> None:
    assert bar(fraction, 4, UNICODE) == (full, empty)


@pytest.mark.parametrize("glyphs", GLYPH_SETS.values(), ids=lambda one: one.name)
def test_a_bar_is_as_wide_as_asked(glyphs: Glyphs) -> None:
    for percent in range(101):
        full, empty = bar(percent / 100, 13, glyphs)
        assert len(full + empty) == 13


def test_spark_has_a_fixed_axis() -> None:
    assert spark([0, 1, 50, 100, None, 12], 100, UNICODE) == " ▁▅█ ▁"
    assert spark([100, 40], 100, ASCII) == "#-"
    assert spark([100, 10], 100, NARROW) == "⣿⣀"


def history(*values: int | None, start_s: float = 100.0) -> GpuHistory:
    made = GpuHistory()
    for position, value in enumerate(values):
        made.append(start_s + position, gpu(util_pct=value))
    return made


def test_bins_stand_still_while_samples_come() -> None:
    before = recent(history(*[10] * 7), 4, 5.0)
    after = recent(history(*[10] * 9), 4, 5.0)

    assert before == after == [None, None, 10, 10]
    assert recent(history(*[10] * 11), 4, 5.0) == [None, 10, 10, 10]


def test_missing_samples_are_gaps() -> None:
    assert recent(history(10, None, 30), 3, 1.0) == [10, None, 30]
    assert recent(None, 2, 1.0) == [None, None]
    assert recent(GpuHistory(), 2, 1.0) == [None, None]


def test_binned_takes_the_highest() -> None:
    points = [(3.0, 4.0), (2.0, None), (1.0, 9.0), (0.0, 1.0)]

    assert binned(points, 3.0, 4.0, 2) == [9.0, 4.0]
    assert binned(points, 5.0, 4.0, 4) == [None, 4.0, None, None]
    assert place_of(1.0, 3.0, 4.0, 4) == 1
    assert place_of(-9.0, 3.0, 4.0, 4) is None


def test_area_in_blocks() -> None:
    assert area([None, 0, 50, 100], 100, 2, UNICODE, braille=False) == ["   █", " ▁██"]
    assert area([40, 20_000], 100, 1, UNICODE, braille=False) == ["▃█"]
    assert area([1, 2], 0, 1, UNICODE, braille=False) == ["  "]


def test_area_in_braille_has_two_values_a_cell() -> None:
    assert area([0, 100, 50, 50], 100, 1, UNICODE, braille=True) == ["⣸⣤"]
    assert area([None, None], 100, 2, UNICODE, braille=True) == ["⠀", "⠀"]
    assert len(area([1, 2, 3], 100, 1, UNICODE, braille=True)[0]) == 2
