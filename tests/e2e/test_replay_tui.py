"""`cockpit replay FILE` in a real terminal: the incident at its moment, and errors after no screen at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect

from tests.builders.recordings import story


def replaying(folder: Path, file: Path) -> pexpect.spawn[str]:
    environ = {
        **os.environ, "COCKPIT_HOME": str(folder / "home"), "HOME": str(folder), "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    return pexpect.spawn(
        sys.executable, ["-m", "cockpit", "replay", str(file)], env=environ, dimensions=(40, 120),
        timeout=60, encoding="utf-8", codec_errors="replace",
    )  # fmt: skip


def end_of(program: pexpect.spawn[str]) -> int | None:
    program.expect(pexpect.EOF)
    program.close()
    code: int | None = program.exitstatus
    return code


def test_a_recording_plays_on_a_computer_that_knows_no_host(tmp_path: Path) -> None:
    program = replaying(tmp_path, story(tmp_path / "s.cockpit.gz"))
    program.expect("REPLAY")
    program.expect("vast-a")
    program.send("I")
    program.expect("gpu_oom")
    program.send("q")
    assert end_of(program) == 0
    assert not (tmp_path / "home" / "recordings").exists()


def test_a_file_that_is_no_recording_ends_with_65_and_why(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"hello\n")
    program = replaying(tmp_path, tmp_path / "bad")
    assert end_of(program) == 65
    assert "line 1: no JSON" in (program.before or "")
