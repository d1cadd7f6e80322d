"""Ids name folders and sort by time within a profile."""

from __future__ import annotations

import pytest

from cockpit.domain.run_ids import is_run_id, new_run_id

NOW_S = 1_796_000_000.0


@pytest.mark.parametrize(
    "name", ["Qwen 7B (LoRA)", "训练", "", "-x-", "..", "a" * 300, "Ünïcode/../..", "x\n"]
)
def test_any_profile_name_makes_an_id(name: str) -> None:
    assert is_run_id(new_run_id(name, NOW_S, 12345))


def test_ids_of_one_profile_sort_by_their_second() -> None:
    moments = [NOW_S + step for step in (0, 1, 59, 3600, 86_400 * 365)]
    ids = [new_run_id("lora", at_s, 31) for at_s in moments]
    assert ids == sorted(ids) and ids[0].startswith("lora-") and len(ids[0]) == len("lora-") + 9


def test_launches_of_the_same_second_differ_by_chance() -> None:
    assert len({new_run_id("lora", NOW_S, random) for random in range(1 << 15)}) == 1 << 15


@pytest.mark.parametrize("text", ["", "-a", "A", "a/b", "../a", "a\n", "a" * 65, "a b", "ä"])
def test_what_is_no_id(text: str) -> None:
    assert not is_run_id(text)
