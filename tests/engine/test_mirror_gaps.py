"""What a copy does not hold, noted line by line, and what of it came later."""

from __future__ import annotations

from pathlib import Path

from cockpit.engine.mirror import Mirror
from cockpit.engine.mirror_gaps import Gaps


def test_parts_that_came_later_are_no_gap_any_more_also_for_the_next_reader(tmp_path: Path) -> None:
    path = tmp_path / "gaps"
    gaps = Gaps(path)
    gaps.add(0, 100, "skipped")
    gaps.add(200, 300, "dropped")
    gaps.loaded(0, 40)
    gaps.loaded(60, 70)
    for seen in (gaps, Gaps(path)):
        assert seen.spans() == ((40, 60), (70, 100), (200, 300))
        assert seen.spans("skipped") == ((40, 60), (70, 100))
        assert seen.at(45) == (60, "skipped") and seen.at(250) == (300, "dropped")
        assert seen.at(60) is None


def test_neighbours_of_a_kind_are_one(tmp_path: Path) -> None:
    gaps = Gaps(tmp_path / "gaps")
    gaps.add(0, 10, "dropped")
    gaps.add(10, 20, "dropped")
    gaps.add(20, 30, "skipped")
    assert gaps.spans() == ((0, 20), (20, 30))


def test_a_note_that_a_full_disk_cut_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "gaps"
    path.write_bytes(b"\n0 10 dropped\n\n20 3")
    Gaps(path).add(50, 60, "skipped")
    assert Gaps(path).spans() == ((0, 10), (50, 60))


def test_nonsense_is_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "gaps"
    path.write_bytes(b"9 1 dropped\n-1 5 dropped\n1 2 other\n\xff\xfe\n1\n")
    assert Gaps(path).spans() == ()


def test_a_gap_over_which_the_copy_did_not_grow_is_none(tmp_path: Path) -> None:
    """Whoever wrote the note died before it made the file longer: the bytes come again."""
    mirror = Mirror(tmp_path / "a" / "b" / "log")
    mirror.write(0, b"12345")
    Gaps(mirror.path.with_name("gaps")).add(5, 50, "skipped")
    again = Mirror(mirror.path)
    assert (again.size, again.gaps) == (5, ())
    again.write(5, b"x" * 100)
    assert Mirror(mirror.path).gaps == ()


def test_a_skipped_part_is_filled_from_its_beginning(tmp_path: Path) -> None:
    first = Mirror(tmp_path / "a" / "b" / "log")
    first.write(0, b"one ")
    first.skip_to(12, "skipped")
    first.write(12, b"four")
    mirror = Mirror(first.path)
    assert mirror.next_skipped(1 << 30) == (4, 12) and mirror.next_skipped(0) is None
    taken = mirror.path.stat().st_blocks * 512
    assert mirror.next_skipped(taken + 3) == (4, 7) and mirror.next_skipped(taken) is None
    mirror.fill(4, b"two ")
    assert mirror.read(0, 100) == b"one two " and mirror.next_skipped(1 << 30) == (8, 12)
    mirror.give_up(8, 12)
    assert mirror.next_skipped(1 << 30) is None and mirror.gap_at(8) == (12, "dropped")
    assert Mirror(mirror.path).gaps == ((8, 12),)
