from __future__ import annotations

import unicodedata

import pytest

from cockpit.domain.lines import KEPT_BYTES
from cockpit.domain.text import (
    LineAssembler,
    ansi_spans,
    cell_len,
    cut_end,
    cut_middle,
    safe_line,
)

HOSTILE = [
    ("title", "a\x1b]0;owned\x07b", "ab"),
    ("title ended by ST", "a\x1b]0;owned\x1b\\b", "ab"),
    ("clipboard", "a\x1b]52;c;ZXZpbA==\x07b", "ab"),
    ("hyperlink", "a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
    ("device control", "a\x1bPq#0;2;0;0;0\x1b\\b", "ab"),
    ("clear screen and home", "\x1b[2J\x1b[Ha", "a"),
    ("alternate screen", "\x1b[?1049ha", "a"),
    ("mouse on", "\x1b[?1003ha", "a"),
    ("charset", "\x1b(0a", "a"),
    ("reset", "\x1bca", "a"),
    ("C1 CSI", "a\x9b31mb", "ab"),
    ("C1 OSC", "a\x9d0;owned\x9cb", "ab"),
    ("unterminated title stays in view", "a\x1b]0;out of memory", "a0;out of memory"),
    ("unterminated CSI", "a\x1b[31", "a"),
    ("lone escape", "a\x1b", "a"),
    ("nested escapes", "\x1b[\x1b[31mred", "red"),
    ("bell and backspace", "a\x07\x08b", "a..b"),
    ("NUL", "a\x00b", "a.b"),
    ("delete", "a\x7fb", "a.b"),
    ("newline and return", "a\nb\rc", "a b c"),
    ("right to left override", "a\u202egpj.exe", "agpj.exe"),
    ("isolates", "\u2066a\u2069", "a"),
    ("zero width", "a\u200b\u200d\ufeffb", "ab"),
    ("tags", "a\U000e0041b", "ab"),
    ("variation selector", "\u2764\ufe0f", "\u2764"),
    ("line separator", "a\u2028b", "a b"),
    ("lone surrogate", "a\ud800b", "a\ufffdb"),
    ("tab", "a\tb", "a       b"),
]


@pytest.mark.parametrize(
    ("dirty", "shown"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE]
)
def test_hostile_text_becomes_one_harmless_line(dirty: str, shown: str) -> None:
    assert safe_line(dirty) == shown
    assert safe_line(safe_line(dirty)) == shown
    assert ansi_spans(dirty.replace("\n", " ").replace("\r", " "))[0] == shown


def test_every_code_point_comes_out_harmless() -> None:
    text = "".join(map(chr, range(0x0, 0x3000))) + "".join(map(chr, range(0xD800, 0x10000)))
    for start in range(0, len(text), 64):
        for char in safe_line(text[start : start + 64]):
            assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), hex(ord(char))


def test_stacks_of_combining_marks_are_cut() -> None:
    assert safe_line("e" + "\u0301" * 50) == "e" + "\u0301" * 3


def test_length_is_bounded_for_text_and_bytes() -> None:
    assert safe_line("x" * 100, 10) == "x" * 9 + "…"
    assert len(safe_line(b"\xff" * 10_000_000, 50)) == 50
    assert safe_line("\x1b[31m" * 1_000_000 + "end", 50) == ""


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b]" * 50_000,
        "\x90" * 50_000,
        "\x1b[" + "9" * 100_000,
        "\x1b[" * 50_000,
        "\x1b]0;" + "a" * 200_000,
    ],
    ids=["openings", "c1", "parameters", "introducers", "endless title"],
)
def test_hostile_lengths_take_no_more_than_linear_time(hostile: str) -> None:
    """Quadratic work on these would take minutes."""
    assert "\x1b" not in ansi_spans(hostile)[0]


def test_bytes_are_utf_8_with_replacement() -> None:
    assert safe_line("größe 显存".encode()) == "größe 显存"
    assert safe_line(b"a\xff\xfeb") == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    ("text", "plain", "spans"),
    [
        ("\x1b[31mred\x1b[0m x", "red x", ((0, 3, "red"),)),
        ("\x1b[1;31mA\x1b[22mB\x1b[39mC", "ABC", ((0, 1, "bold red"), (1, 2, "red"))),
        ("\x1b[94mA\x1b[m", "A", ((0, 1, "bright_blue"),)),
        ("\x1b[38;5;196mA", "A", ((0, 1, "#ff0000"),)),
        ("\x1b[38;5;9mA", "A", ((0, 1, "bright_red"),)),
        (
            "\x1b[38;2;1;2;3mA\x1b[48;5;232mB",
            "AB",
            ((0, 1, "#010203"), (1, 2, "#010203 on #080808")),
        ),
        ("\x1b[8mhidden\x1b[5mblink", "hiddenblink", ()),
        ("\x1b[38;5mA\x1b[999mB", "AB", ()),
        ("\x1b[31m\x1b[1mA\x1b[0m", "A", ((0, 1, "bold red"),)),
    ],
)
def test_colours_become_spans(text: str, plain: str, spans: tuple[object, ...]) -> None:
    assert ansi_spans(text) == (plain, spans)


@pytest.mark.parametrize(
    ("text", "cells"),
    [("abc", 3), ("显存", 4), ("e\u0301", 1), ("●◐○", 3), ("ｆｕｌｌ", 8), ("", 0)],
)
def test_cells_are_counted_as_a_terminal_does(text: str, cells: int) -> None:
    assert cell_len(text) == cells


@pytest.mark.parametrize(
    ("text", "cells", "end", "middle"),
    [
        ("abcdefghij", 10, "abcdefghij", "abcdefghij"),
        ("abcdefghij", 7, "abcdef…", "abc…hij"),
        ("abcdefghij", 2, "a…", "a…"),
        ("abcdefghij", 1, "…", "…"),
        ("abcdefghij", 0, "", ""),
        ("显存溢出了", 6, "显存…", "显…了"),
        ("显存溢出了", 5, "显存…", "显…了"),
    ],
)
def test_cuts_keep_to_the_width(text: str, cells: int, end: str, middle: str) -> None:
    assert (cut_end(text, cells), cut_middle(text, cells)) == (end, middle)
    assert cell_len(cut_end(text, cells)) <= cells
    assert cell_len(cut_middle(text, cells)) <= cells


def lines(*pieces: bytes) -> list[tuple[int, int, str]]:
    assembler = LineAssembler()
    found = [line for piece in pieces for line in assembler.feed(piece)] + assembler.finish()
    return [(line.number, line.offset, line.text) for line in found]


def test_lines_carry_their_number_and_the_offset_of_their_first_byte() -> None:
    assert lines(b"one\n\ntwo\r\nthr", b"ee\nlast") == [
        (1, 0, "one"),
        (2, 4, ""),
        (3, 5, "two"),
        (4, 10, "three"),
        (5, 16, "last"),
    ]


def test_any_split_of_the_bytes_gives_the_same_lines() -> None:
    data = "a\x1b[31mré\x1b[0m显\r\nbar 1\rbar 2\r\x1b[Kbar 3\nx\x08y\n\x1b]0;t\x07z\n".encode()
    whole = lines(data)
    for cut in range(1, len(data)):
        assert lines(data[:cut], data[cut:]) == whole
    assert lines(*(bytes([byte]) for byte in data)) == whole


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b" 10%|# |\r 20%|##|\r", " 20%|##|"),
        (b"downloading 1\rdone", "done"),
        (b"abc\x08\x08X", "aX"),
        (b"abc\x1b[2Kx", "x"),
        (b"abc\r\x1b[Kx", "x"),
        (b"abc\x1b[1Gx", "x"),
        (b"abc\r\x1b[0m", "abc"),
        (b"tail \xe6\x98", "tail "),
        (b"\x1b[10;10Hmoved", "moved"),
        (b"spin |\x08/\x08-", "spin -"),
    ],
)
def test_the_unfinished_line_shows_what_a_terminal_would_show(data: bytes, shown: str) -> None:
    assembler = LineAssembler()
    assert assembler.feed(data) == []
    assert assembler.open_text == shown
    assert assembler.open_offset == 0


def test_a_redrawn_line_is_marked_as_a_bar() -> None:
    assembler = LineAssembler()
    [bar, plain] = assembler.feed(b"\r 1/2\r 2/2\nplain\r\n")
    assert (bar.text, bar.bar) == (" 2/2", True)
    assert (plain.text, plain.bar) == ("plain", False)


def test_nested_bars_replace_their_rows() -> None:
    assembler = LineAssembler()
    [first] = assembler.feed(b"\r outer 0%\n\r inner 0%\x1b[A\r outer 10%")
    assert (first.text, first.replaces) == (" outer 0%", 0)
    assert assembler.open_text == " inner 0%"
    [again] = assembler.feed(b"\n\r inner 50%")
    assert (again.text, again.replaces) == (" outer 10%", 1)
    assert assembler.open_text == " inner 50%"


def test_cursor_up_reaches_no_further_than_what_was_printed() -> None:
    assembler = LineAssembler()
    [only] = assembler.feed(b"\x1b[9999Ahello\n")
    assert (only.text, only.replaces) == ("hello", 0)
    redrawn = assembler.feed(b"\x1b[9999A\rtop\n")
    assert [(line.text, line.replaces) for line in redrawn] == [("top", 1)]


def test_an_endless_line_is_cut_and_says_how_much_is_missing() -> None:
    assembler = LineAssembler(limit=20)
    for _ in range(300):
        assert assembler.feed(b"x" * 10_000) == []
    assert assembler.open_text == "x" * 20 + "... +3.0 MB"
    [line] = assembler.feed(b"\n")
    assert line.text == "x" * 20 + "... +3.0 MB"
    assert assembler.open_offset == 3_000_001


def test_an_endless_bar_keeps_only_its_last_state() -> None:
    assembler = LineAssembler()
    for step in range(20_000):
        assembler.feed(b"\r%6d/20000 |########|" % step)
    assert assembler.open_text == " 19999/20000 |########|"
    assert assembler.end_offset == 20_000 * 24
    assert len(bytes(assembler._pending)) <= KEPT_BYTES


def test_reading_begins_where_it_is_told() -> None:
    assembler = LineAssembler(offset=1000, number=50)
    [line] = assembler.feed(b"here\n")
    assert (line.number, line.offset) == (50, 1000)
    assert assembler.open_offset == 1005
