from __future__ import annotations

import pytest

from cockpit.domain.lasting import Lasting


def changes(holds: list[bool], tau_s: float = 60.0) -> list[tuple[int, str]]:
    lasting = Lasting(tau_s)
    told = [(at, lasting.feed(one, 1.0)) for at, one in enumerate(holds)]
    return [(at, change) for at, change in told if change is not None]


def test_it_opens_after_most_of_its_time_and_closes_when_hardly_any_is_left() -> None:
    [(opened, first), (closed, second)] = changes([True] * 300 + [False] * 300)
    assert (first, second) == ("open", "close")
    assert 50 <= opened <= 60 and 300 + 130 <= closed <= 300 + 145


@pytest.mark.parametrize(
    "holds",
    [[True] * 40 + [False] * 400, [True, False] * 300, [False] * 600],
    ids=["short", "half the time", "never"],
)
def test_what_does_not_last_says_nothing(holds: list[bool]) -> None:
    assert changes(holds) == []


def test_what_flickers_most_of_the_time_is_one_condition() -> None:
    assert [change for _, change in changes([True, True, True, True, False] * 200)] == ["open"]


def test_a_condition_that_comes_back_opens_again() -> None:
    story = [True] * 200 + [False] * 300 + [True] * 200
    assert [change for _, change in changes(story)] == ["open", "close", "open"]
