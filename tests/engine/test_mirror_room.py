"""Copies of logs within their room: the oldest give way, living ones stay, a full disk costs the copy alone."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cockpit.config.paths import Home
from cockpit.domain.models import HostName, RunId
from cockpit.engine.mirror import Mirror, mirror_path
from cockpit.engine.mirror_room import make_room, mirror_limit_bytes
from cockpit.errors import StorageError

MIB = 1 << 20


def copied(home: Home, run: str, changed_s: float, size: int = MIB) -> Path:
    mirror = Mirror(mirror_path(home, HostName("box"), RunId(run)))
    mirror.write(0, os.urandom(size))
    mirror.close()
    os.utime(mirror.path, (changed_s, changed_s))
    return mirror.path


def test_the_oldest_copies_go_first_and_living_ones_stay(tmp_path: Path) -> None:
    home = Home(tmp_path)
    paths = {
        name: copied(home, name, at) for at, name in enumerate(("a-1", "b-1", "c-1", "d-1"), 1000)
    }
    (paths["b-1"].parent / "code.diff").write_text("kept")
    assert make_room(home, 2 * MIB + 65536, {RunId("a-1")}) == 2
    assert [name for name, path in paths.items() if path.exists()] == ["a-1", "d-1"]
    assert (paths["b-1"].parent / "code.diff").exists()
    assert make_room(home, 2 * MIB + 65536, ()) == 0


def test_a_hole_takes_no_room(tmp_path: Path) -> None:
    home = Home(tmp_path)
    mirror = Mirror(mirror_path(home, HostName("box"), RunId("a-1")))
    mirror.skip_to(100 * MIB)
    mirror.write(100 * MIB, b"x")
    mirror.close()
    assert make_room(home, MIB, ()) == 0


def test_beyond_its_limit_a_log_is_watched_and_not_copied(tmp_path: Path) -> None:
    told: list[StorageError] = []
    path = mirror_path(Home(tmp_path), HostName("box"), RunId("a-1"))
    mirror = Mirror(path, 10, told.append)
    assert mirror.write(0, b"12345678") == b"12345678"
    assert mirror.write(8, b"9abcdef") == b"9abcdef"
    assert mirror.write(15, b"more") == b"more"
    assert mirror.size == 19 and [error.code for error in told] == ["mirror_limit"]
    assert mirror.read(0, 100) == b"12345678" and mirror.read(12, 5) == b""
    mirror.close()
    assert Mirror(path).size == 8


def test_what_was_skipped_takes_none_of_the_limit(tmp_path: Path) -> None:
    path = mirror_path(Home(tmp_path), HostName("box"), RunId("a-1"))
    mirror = Mirror(path, 100_000)
    mirror.skip_to(100 * MIB, "skipped")
    mirror.write(100 * MIB, b"x" * 50_000)
    assert mirror.full is None and mirror.read(100 * MIB, 10) == b"x" * 10


def test_a_full_disk_that_takes_no_note_of_a_gap_costs_the_copy_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[StorageError] = []
    path = mirror_path(Home(tmp_path), HostName("box"), RunId("a-1"))
    mirror = Mirror(path, None, told.append)
    mirror.write(0, b"before ")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    mirror.skip_to(50, "skipped")
    assert (mirror.size, [error.code for error in told]) == (50, ["mirror_disk_full"])
    assert mirror.write(50, b"after") == b"after" and mirror.size == 55
    mirror.close()
    monkeypatch.undo()
    assert (Mirror(path).size, Mirror(path).gaps) == (7, ())


def test_on_a_full_disk_the_copy_ends_and_goes_on_from_there_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[StorageError] = []
    path = mirror_path(Home(tmp_path), HostName("box"), RunId("a-1"))
    mirror = Mirror(path, None, told.append)
    mirror.write(0, b"before ")
    real = os.pwrite

    def half(fd: int, data: bytes, offset: int) -> int:
        if offset >= 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, bytes(data)[: 10 - offset], offset)

    monkeypatch.setattr(os, "pwrite", half)
    assert mirror.write(7, b"and after") == b"and after"
    assert mirror.write(16, b"!") == b"!"
    assert (mirror.size, [error.code for error in told]) == (17, ["mirror_disk_full"])
    assert mirror.read(0, 100) == b"before and"
    mirror.close()
    monkeypatch.undo()
    again = Mirror(path)
    assert again.size == 10
    again.write(10, b" after!")
    assert path.read_bytes() == b"before and after!"


def test_another_failure_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = Mirror(mirror_path(Home(tmp_path), HostName("box"), RunId("a-1")))

    def broken(fd: int, data: bytes, offset: int) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pwrite", broken)
    with pytest.raises(StorageError):
        mirror.write(0, b"x")


def test_the_setting_and_its_default(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert mirror_limit_bytes(home) == 4096 * MIB
    home.settings_toml.write_text('logs = "1 GiB"\n')
    assert mirror_limit_bytes(home) == 1024 * MIB
    home.settings_toml.write_text("logs = [")
    assert mirror_limit_bytes(home) == 4096 * MIB
