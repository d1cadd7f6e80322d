"""Bytes and events of a run in one order, over gaps and a log that begins anew."""

from __future__ import annotations

from pathlib import Path

from cockpit.engine.mirror import Mirror
from cockpit.headless.log_cursor import Bytes, Gap, LogCursor, Restart


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
