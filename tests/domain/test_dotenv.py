"""A .env file is data: quotes and comments are understood, and nothing in it is ever run."""

from __future__ import annotations

import pytest

from cockpit.domain.dotenv import parse_dotenv


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("export A=plain", "plain"),
        ("A = spaced ", "spaced"),
        ("A=", ""),
        ("A=with # comment", "with"),
        ("A=with#no-comment", "with#no-comment"),
        ("A='single # $HOME'", "single # $HOME"),
        ('A="double # x" # comment', "double # x"),
        (r'A="line\nbreak \"q\""', 'line\nbreak "q"'),
        ("A=$(rm -rf /)", "$(rm -rf /)"),
        ("A=`id`", "`id`"),
        ("A=${B}", "${B}"),
        ("A=键", "键"),
    ],
)
def test_values(line: str, value: str) -> None:
    assert parse_dotenv(line) == ({"A": value}, [])


@pytest.mark.parametrize(
    "line", ["no equals", "1A=x", "A-B=x", 'A="open', "A='open", "A='x' y", "A=\0"]
)
def test_bad_lines_are_named_by_their_number(line: str) -> None:
    variables, bad = parse_dotenv(f"# comment\n\n{line}\nB=2")
    assert variables == {"B": "2"}
    assert [item.line for item in bad] == [3]


def test_the_last_of_two_wins() -> None:
    assert parse_dotenv("A=1\nA=2")[0] == {"A": "2"}
