"""What a line says about itself, and whether it matches what was typed."""

from __future__ import annotations

import re

import pytest

from cockpit.widgets.log_search import Level, Pattern, level_of


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("INFO 12:04 loaded", Level.ALL),
        ("WARNING: slow tokenizer", Level.WARNING),
        ("UserWarning: will be removed", Level.WARNING),
        ("ERROR 12:04 engine.py:10", Level.ERROR),
        ("Traceback (most recent call last):", Level.ERROR),
        ("torch.OutOfMemoryError: CUDA out of memory", Level.ERROR),
        ("grad_error 0.1, no errors", Level.ALL),
    ],
)
def test_levels_are_read_from_words(text: str, level: Level) -> None:
    assert level_of(text) is level


@pytest.mark.parametrize(
    ("typed", "text", "matches"),
    [
        ("oom", "CUDA OOM here", True),
        ("OOM", "cuda oom here", False),
        ("[rank0]", "[rank0]: hello", True),
        ("a.c", "abc", False),
        ("~a.c", "abc", True),
        ("~A.c", "abc", False),
        ("显存", "显存占用 18.9", True),
    ],
)
def test_plain_text_unless_a_tilde_asks_for_more(typed: str, text: str, matches: bool) -> None:
    pattern = Pattern.parse(typed)
    assert pattern is not None
    assert pattern.matches(text) is matches


def test_nothing_typed_is_no_pattern() -> None:
    assert Pattern.parse("") is None
    assert Pattern.parse("~") is None


def test_a_mistake_in_a_regular_expression_is_told() -> None:
    with pytest.raises(re.error):
        Pattern.parse("~(")


def test_an_empty_match_paints_nothing() -> None:
    pattern = Pattern.parse("~x*")
    assert pattern is not None
    assert list(pattern.spans("axxb")) == [(1, 3)]
