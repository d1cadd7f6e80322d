"""The terminal program as a person meets it, in a real pseudo-terminal: few tests, whole paths."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

TIMEOUT_S = 60


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "hosts.toml").write_text("[hosts.here]\nlocal = true\n")
    return tmp_path


@pytest.fixture
def started(home: Path) -> Iterator[pexpect.spawn[str]]:
    environ = {
        **os.environ, "COCKPIT_HOME": str(home), "TERM": "xterm-256color", "SHELL": "/bin/sh",
        "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PS1": "in-a-shell$ ", "ENV": "",
    }  # fmt: skip
    for name in ("NO_COLOR", "LINES", "COLUMNS"):  # a parallel run sets a size of its own
        environ.pop(name, None)
    child = pexpect.spawn(
        sys.executable, ["-m", "cockpit"], env=environ, dimensions=(30, 110), timeout=TIMEOUT_S,
        encoding="utf-8", codec_errors="replace",
    )  # fmt: skip
    yield child
    child.close(force=True)


def test_this_machine_shows_and_ctrl_q_ends(started: pexpect.spawn[str]) -> None:
    started.expect("here")
    started.expect("cpu")
    started.send("\x11")
    started.expect(pexpect.EOF)
    started.wait()

    assert started.exitstatus == 0


def test_a_shell_is_visited_and_the_fleet_comes_back(started: pexpect.spawn[str]) -> None:
    started.expect("cpu")
    started.send("v")
    started.expect_exact("\x1b[?1049l")
    started.sendline("echo visited-$((40 + 2))")
    started.expect("visited-42")
    started.sendline("exit")
    started.expect_exact("\x1b[?1049h")
    started.expect("1 Fleet")
    started.send("q")
    started.expect(pexpect.EOF)
    started.wait()

    assert started.exitstatus == 0


def test_a_terminal_that_vanishes_ends_the_program(started: pexpect.spawn[str]) -> None:
    started.expect("here")
    started.kill(signal.SIGHUP)
    started.expect(pexpect.EOF)
    started.wait()

    assert started.signalstatus is None


def test_mistakes_of_hosts_toml_are_said_after_the_screen_is_gone(home: Path) -> None:
    (home / "hosts.toml").write_text('[hosts.a]\nhost = "x"\nprot = 22\n')
    child = pexpect.spawn(
        sys.executable, ["-m", "cockpit"], timeout=TIMEOUT_S, encoding="utf-8",
        env={**os.environ, "COCKPIT_HOME": str(home), "TERM": "xterm-256color"},
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.wait()

    assert child.exitstatus == 78
    last = str(child.before).rpartition("\x1b[?1049l")[2]
    assert "prot" in last and "port" in last
