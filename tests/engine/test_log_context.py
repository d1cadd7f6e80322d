"""The lines around an evidence line: from the copy here, whole, bounded, and without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.domain.masking import Masker
from cockpit.engine.log_context import AFTER_BYTES, BEFORE_BYTES, read_context

NONE = Masker()


def write(path: Path, lines: list[str]) -> list[int]:
    """The file, and the offset of each line."""
    offsets, data = [], b""
    for line in lines:
        offsets.append(len(data))
        data += line.encode() + b"\n"
    path.write_bytes(data)
    return offsets


def texts(
    path: Path, offset: int, masker: Masker = NONE, before: int = 2, after: int = 1
) -> list[str]:
    return [line.text for line in read_context(path, offset, before, after, masker)]


def test_a_few_lines_before_and_after(tmp_path: Path) -> None:
    log = tmp_path / "log"
    offsets = write(log, [f"line {n}" for n in range(100)])
    assert texts(log, offsets[50]) == ["line 48", "line 49", "line 50", "line 51"]
    assert texts(log, offsets[50] + 3) == ["line 48", "line 49", "line 50", "line 51"]
    assert texts(log, offsets[0]) == ["line 0", "line 1"]
    assert texts(log, offsets[99]) == ["line 97", "line 98", "line 99"]
    found = read_context(log, offsets[50], 2, 1, NONE)
    assert [line.offset for line in found] == offsets[48:52]


def test_deep_in_a_large_log_only_a_window_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    offsets = write(log, [f"{n:05} " + "x" * 300 for n in range(2000)])
    found = read_context(log, offsets[1500], 5000, 5000, NONE)
    assert any(line.offset == offsets[1500] for line in found)
    assert sum(len(line.text) for line in found) <= BEFORE_BYTES + AFTER_BYTES
    assert all(line.text[:5].isdigit() for line in found)


@pytest.mark.parametrize("shift", range(0, 12))
def test_a_secret_at_any_edge_of_the_window_is_covered(tmp_path: Path, shift: int) -> None:
    secret = "hunter2secret"
    log = tmp_path / "log"
    filler = "y" * (BEFORE_BYTES - 5 - shift)
    offsets = write(
        log,
        [f"a {secret} {filler}", "marked", f"{'z' * (AFTER_BYTES - 20 + shift)}{secret} tail" * 2],
    )
    shown = "".join(texts(log, offsets[1], Masker([secret]), before=50, after=50))
    assert "marked" in shown
    assert "hunter" not in shown and "secret" not in shown


def test_one_endless_line_is_shown_from_the_place_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"q" * 200_000)
    assert texts(log, 100_000)[0].startswith("qqq")


def test_what_was_skipped_is_not_shown_as_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.write(b"before\n")
        file.truncate(5000)
        file.seek(5000)
        file.write(b"rest of a line\nwhole\nmarked\nnext\n")
    assert texts(log, 5000 + 21, before=9, after=9) == ["whole", "marked", "next"]


@pytest.mark.parametrize("offset", [-1, 10_000])
def test_a_place_that_is_not_here_gives_nothing(tmp_path: Path, offset: int) -> None:
    log = tmp_path / "log"
    write(log, ["one"])
    assert texts(log, offset) == []
    assert texts(tmp_path / "none", 0) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    secret, log = tmp_path / "secret", tmp_path / "log"
    write(secret, ["private"])
    log.symlink_to(secret)
    assert texts(log, 0) == []


def test_hostile_bytes_are_harmless(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\x1b]0;title\x07\xff\x9b31m bad\r\n" * 3)
    assert all("\x1b" not in text and "\x9b" not in text for text in texts(log, 0))
