from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.config.paths import Home
from cockpit.own_log import MAX_BYTES, append, keep_log

quiet = logging.getLogger("cockpit.engine.test")


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:]
    yield
    root.handlers[:] = before


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_warnings_go_to_the_log_and_not_to_the_screen(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_log(home)
    try:
        raise ZeroDivisionError("of a host: \x1b]0;x\x07 \u202e")
    except ZeroDivisionError:
        quiet.exception("link of %s", "a\x1b[31m\x9b1m")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    text = home.log.read_text()
    assert "ERROR cockpit.engine.test: link of a" in text
    assert "ZeroDivisionError: of a host" in text
    assert [char for char in text if char in "\x1b\x07\x9b\u202e"] == []
    assert stat.S_IMODE(home.log.stat().st_mode) == 0o600


def test_there_is_one_log_at_a_time(home: Home, tmp_path: Path) -> None:
    keep_log(home)
    keep_log(Home(tmp_path / "other"))
    quiet.warning("once")
    assert not home.log.exists()
    assert (tmp_path / "other" / "cockpit.log").read_text().count("once") == 1


def test_a_log_that_cannot_be_written_is_no_failure(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.root.write_text("a file in the way")
    keep_log(home)
    quiet.warning("lost")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_the_log_does_not_grow_for_ever(home: Home) -> None:
    home.ensure()
    with home.log.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    append("new", home)
    assert home.log.read_text() == "new\n"
    assert (home.root / "cockpit.log.1").stat().st_size == MAX_BYTES + 1
