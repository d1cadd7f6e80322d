"""`cockpit help CODE`: every code that a person can come across is explained, exit codes too."""

from __future__ import annotations

import pytest

from cockpit.errors import ExitCode, UsageError
from cockpit.headless.help_code import lines


@pytest.mark.parametrize("code", list(ExitCode))
def test_an_exit_code_of_ours_is_told(code: ExitCode) -> None:
    (told,) = lines(str(int(code)))
    assert told.startswith(f"{int(code)}: ") and "own code" not in told


@pytest.mark.parametrize(("code", "words"), [("130", "Signal 2 "), ("42", "own code")])
def test_a_run_s_exit_code_is_told(code: str, words: str) -> None:
    assert words in lines(code)[0]


def test_a_family_comes_with_what_usually_helps() -> None:
    told = lines("gpu_oom")
    assert told[0].startswith("gpu_oom: ")
    assert told[-5].startswith("  1. ") and told[-1].startswith("  5. ")


def test_a_family_that_no_log_shows_says_more_than_its_title() -> None:
    assert len(lines("near_full")) > 1


def test_an_unknown_code_is_a_mistake_of_the_command_line() -> None:
    with pytest.raises(UsageError):
        lines("1234")
