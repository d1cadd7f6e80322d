"""Keys as input methods send them, and the person's own map."""

from __future__ import annotations

import pytest
from textual import events

from cockpit.screens.keys import (
    APP_BINDINGS,
    ESSENTIAL_IDS,
    binding_ids,
    checked_keymap,
    is_foreign_letter,
    normalised,
)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("ｑ", "q"), ("１", "1"), ("／", "slash"), ("？", "question_mark"), ("：", "colon"),
        ("、", "slash"), ("。", "full_stop"), ("【", "left_square_bracket"), ("！", "exclamation_mark"),
        ("·", "grave_accent"),
    ],
)  # fmt: skip
def test_full_width_twins_are_the_plain_keys(sent: str, meant: str) -> None:
    assert normalised(events.Key(sent, sent)).key == meant


@pytest.mark.parametrize("key", ["q", "escape", "ctrl+q", "f1", "é", "显"])
def test_other_keys_pass_as_they_are(key: str) -> None:
    event = events.Key(key, key if len(key) == 1 else None)

    assert normalised(event) is event


def test_letters_of_another_script_are_noticed() -> None:
    assert is_foreign_letter(events.Key("й", "й"))
    assert is_foreign_letter(events.Key("显", "显"))
    assert not is_foreign_letter(events.Key("q", "q"))
    assert not is_foreign_letter(events.Key("escape", None))


def test_every_app_binding_has_id_words_and_tooltip() -> None:
    ids = binding_ids(APP_BINDINGS)

    assert len(set(ids)) == len(APP_BINDINGS)
    assert all(one.description and one.tooltip for one in APP_BINDINGS)
    assert set(ESSENTIAL_IDS) <= set(ids)


def test_a_map_is_taken_as_far_as_it_goes() -> None:
    keys = {"help": "f2", "quit": " ", "nonsense": "x", "leave": "f2"}

    taken, problems = checked_keymap(keys, binding_ids(APP_BINDINGS))

    assert taken == {"help": "f2", "leave": "f2"}
    assert len(problems) == 3
    assert any("quit" in one for one in problems) and any("nonsense" in one for one in problems)
    assert any("f2" in one and "leave" in one for one in problems)
