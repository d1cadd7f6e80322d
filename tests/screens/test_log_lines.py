"""One line as cells: widths, cuts, wrapping, colours, and places for the mouse."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.strip import Strip

from cockpit.engine.api import LogLine
from cockpit.widgets.log_colours import contrast, log_look, log_style
from cockpit.widgets.log_lines import DRAWN_CHARS, LineArtist, LineMarks, wrap_places
from cockpit.widgets.log_search import Pattern
from cockpit.widgets.look import Look
from cockpit.widgets.theme import PALETTES

WIDE = "显存占用 18.9/23.6 GiB，继续训练"


def artist(width: int = 20, **settings: object) -> LineArtist:
    return LineArtist(log_look(Look()), width, **settings)  # type: ignore[arg-type]


def line(text: str, **facts: object) -> LogLine:
    return LogLine(1, 0, text, **facts)  # type: ignore[arg-type]


def plain(strip: Strip) -> str:
    return "".join(segment.text for segment in strip)


def painted(strip: Strip, text: str) -> object:
    return next(segment.style for segment in strip if segment.text == text)


@pytest.mark.parametrize("text", ["", "short", "x" * 50, WIDE, "a" + WIDE, "e\u0301" * 30])
@pytest.mark.parametrize("column", [0, 1, 8, 99])
def test_every_row_is_exactly_as_wide_as_the_view(text: str, column: int) -> None:
    for width in (12, 13, 20):
        strip = artist(width, column=column).draw(line(text), 0, LineMarks())
        assert strip.cell_length == cell_len(plain(strip)) == width


def test_a_wide_character_that_is_cut_leaves_a_blank() -> None:
    strip = artist(20, column=1).draw(line("显存 full"), 0, LineMarks())
    assert plain(strip).startswith("   存 full")


@pytest.mark.parametrize("width", [6, 7, 16])
def test_wrapping_loses_no_character(width: int) -> None:
    for text in ("x" * 40, WIDE * 2, "a" + WIDE):
        places = wrap_places(text, width)
        assert "".join(text[start:end] for start, end in places) == text
        assert all(cell_len(text[start:end]) <= width for start, end in places)


def test_wrapped_rows_hang_and_show_where_they_were_cut() -> None:
    drawn = artist(14, wrap=True)
    text = line("abcdefghijklmnopqrst")
    rows = [plain(drawn.draw(text, row, LineMarks())) for row in range(drawn.rows(text))]
    assert rows == ["  abcdefghijk\\", "    lmnopqrst "]


def test_two_megabytes_in_one_line_are_cut_with_a_word() -> None:
    huge = line("y" * 2_000_000)
    strip = artist(60, column=DRAWN_CHARS - 8).draw(huge, 0, LineMarks())
    assert plain(strip).startswith("  yyyyyyyy ... 1,995,904 more characters")


def test_colours_of_the_log_become_ours() -> None:
    strip = artist(30).draw(line("ok bad", spans=((3, 6, "bold red"),)), 0, LineMarks())
    style = painted(strip, "bad")
    assert style.bold  # type: ignore[attr-defined]
    assert style.color.get_truecolor().hex == PALETTES["dark"].fatal  # type: ignore[attr-defined]


@pytest.mark.parametrize("theme", ["dark", "light", "dark-hc", "light-hc"])
@pytest.mark.parametrize(
    "spec",
    ["black", "white", "bright_white", "#101010", "#fefefe", "yellow on white", "on #111417"],
)
def test_no_colour_of_a_log_hides_its_text(theme: str, spec: str) -> None:
    palette = PALETTES[theme]
    style = log_style(spec, palette)
    shown = style.color.get_truecolor().hex if style.color else palette.fg
    ground = style.bgcolor.get_truecolor().hex if style.bgcolor else palette.bg
    assert contrast(shown, ground) >= 2.5


def test_incident_lines_bear_a_sign_and_a_ground() -> None:
    strip = artist(20).draw(line("boom"), 0, LineMarks(severity="fatal"))
    assert plain(strip).startswith("✗ boom")
    assert painted(strip, "boom").bgcolor is not None  # type: ignore[attr-defined]


def test_marks_and_a_progress_bar_show_in_the_gutter() -> None:
    assert plain(artist().draw(line("x"), 0, LineMarks(marked=True))).startswith(" ▸x")
    assert plain(artist().draw(line("x"), 0, LineMarks(unfinished=True))).startswith("~ x")


def test_hits_are_reversed_where_they_are() -> None:
    strip = artist(30, pattern=Pattern.parse("loss")).draw(line("a loss b"), 0, LineMarks())
    assert painted(strip, "loss").reverse  # type: ignore[attr-defined]


def test_cells_know_their_place_in_the_text() -> None:
    strip = artist(20, column=8).draw(LogLine(77, 0, "0123456789abc"), 0, LineMarks(), offsets=True)
    places = {
        segment.text: segment.style.meta["offset"]
        for segment in strip
        if segment.style is not None and "offset" in segment.style.meta
    }
    assert places["89abc"] == (8, 77)
