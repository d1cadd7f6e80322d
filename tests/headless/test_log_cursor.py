"""Bytes and events of a run in one order, over gaps and a log that begins anew."""

from __future__ import annotations

from pathlib import Path

from cockpit.engine.mirror import Mirror
from cockpit.headless.log_cursor import Bytes, Gap, LogCursor, Missing, Restart


def everything(cursor: LogCursor[str]) -> list[object]:
    found: list[object] = []
    while (item := cursor.next(1000)) is not None:
        found.append(item.data if isinstance(item, Bytes) else item)
    return found


def test_an_event_comes_after_the_bytes_that_were_there_when_it_happened(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "a" / "b" / "log")
    cursor: LogCursor[str] = LogCursor(mirror)
    cursor.note("started", at=0)
    mirror.write(0, b"one\n")
    cursor.grew(4)
    cursor.note("incident")
    mirror.write(4, b"two\n")
    cursor.grew(8)
    assert everything(cursor) == ["started", b"one\n", "incident", b"two\n"]
    assert everything(cursor) == []
    cursor.close()


def test_what_was_there_before_is_read_first_gaps_included(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "a" / "b" / "log")
    mirror.write(0, b"one\n")
    mirror.skip_to(100)
    mirror.write(100, b"two\n")
    again = Mirror(mirror.path)
    cursor: LogCursor[str] = LogCursor(again)
    again.skip_to(200)
    cursor.gap(104, 200)
    again.write(200, b"three\n")
    cursor.grew(206)
    assert everything(cursor) == [b"one\n", Gap(100), b"two\n", Gap(200), b"three\n"]
    cursor.close()
    later: LogCursor[str] = LogCursor(again, 102)
    assert everything(later) == [b"o\n", Gap(200), b"three\n"]
    later.close()


def test_a_log_that_begins_anew_is_read_to_its_end_before(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "a" / "b" / "log")
    mirror.write(0, b"old\n")
    cursor: LogCursor[str] = LogCursor(mirror)
    cursor.restarts()
    mirror.start_over()
    mirror.write(0, b"new log\n")
    cursor.grew(8)
    cursor.note("ended")
    assert everything(cursor) == [b"old\n", Restart(), b"new log\n", "ended"]
    cursor.close()


def test_what_was_skipped_or_found_no_room_is_asked_of_the_host(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "a" / "b" / "log", 20_000)
    mirror.write(0, b"one\n")
    mirror.skip_to(100, "skipped")
    mirror.write(100, b"two\n")
    cursor: LogCursor[str] = LogCursor(mirror)
    mirror.write(104, b"x" * 30_000)
    cursor.grew(30_104)
    cursor.note("incident")
    cursor.gap(30_104, 30_200, "skipped")
    assert everything(cursor) == [
        b"one\n",
        Missing(4, 100),
        b"two\n",
        Missing(104, 30_104),
        "incident",
        Missing(30_104, 30_200),
    ]
    later: LogCursor[str] = LogCursor(mirror, 50)
    assert later.next(1000) == Missing(50, 100)
    cursor.close()
    later.close()


def test_what_a_job_cut_away_before_it_was_read_is_gone(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "a" / "b" / "log", 10)
    cursor: LogCursor[str] = LogCursor(mirror)
    mirror.write(0, b"x" * 30)
    cursor.grew(30)
    cursor.restarts()
    mirror.start_over()
    assert everything(cursor) == [Gap(30), Restart()]
    cursor.close()
