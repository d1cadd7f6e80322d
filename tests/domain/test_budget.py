"""Budgets: shares, deadlines, and what cannot be measured."""

from __future__ import annotations

import pytest

from cockpit.domain.budget import (
    Limits,
    Price,
    due_in_s,
    finding_of_budget,
    unmeasured,
    used_pct,
)

USD = Price(2.0, "USD")


@pytest.mark.parametrize(
    ("limits", "price", "seconds", "pct"),
    [
        (Limits(max_hours=2), Price(), 3600, 50.0),
        (Limits(max_cost=4, currency="USD"), USD, 3600, 50.0),
        (Limits(max_cost=4, currency="USD", max_hours=1), USD, 3600, 100.0),
        (Limits(max_cost=4, currency="EUR"), USD, 3600, None),
        (Limits(max_cost=4, currency="EUR", max_hours=4), USD, 3600, 25.0),
        (Limits(max_cost=4, currency="USD"), Price(), 3600, None),
        (Limits(max_hours=0), Price(), 1, 100.0),
        (Limits(), USD, 1e9, None),
    ],
    ids=[
        "hours",
        "cost",
        "nearer",
        "currency",
        "hours-only",
        "no-price",
        "none-at-all",
        "no-limit",
    ],
)
def test_the_larger_share_counts(
    limits: Limits, price: Price, seconds: float, pct: float | None
) -> None:
    assert used_pct(limits, price, seconds) == pct


def test_the_next_mark_is_known_before_it_comes() -> None:
    limits = Limits(max_cost=4, currency="USD")
    assert due_in_s(limits, USD, 3600, 80) == pytest.approx(2160)
    assert due_in_s(limits, USD, 7300, 100) == 0
    assert due_in_s(Limits(), USD, 1, 80) is None


def test_what_keeps_cost_from_being_measured_has_a_code() -> None:
    limits = Limits(max_cost=4, currency="USD")
    assert unmeasured(limits, Price()) == "budget_no_price"
    assert unmeasured(limits, Price(1, "EUR")) == "budget_other_currency"
    assert unmeasured(limits, USD) is None
    assert unmeasured(Limits(max_hours=1), Price()) is None


def test_four_fifths_are_a_notice_and_all_of_it_is_a_warning_with_the_numbers() -> None:
    limits = Limits(max_cost=4, currency="USD")
    near = finding_of_budget(limits, USD, 5760, 80)
    assert (near.severity, near.cause) == ("notice", "budget_near")
    reached = finding_of_budget(limits, USD, 7200, 100)
    assert (reached.family, reached.severity, reached.cause) == (
        "cost",
        "warning",
        "budget_reached",
    )
    assert reached.facts == {
        "hours": 2.0, "used_pct": 100, "cost": 4.0, "currency": "USD", "max_cost": 4,
    }  # fmt: skip
    stopping = finding_of_budget(Limits(max_hours=1, stops=True), USD, 7200, 100)
    assert stopping.cause == "budget_stop" and not stopping.remedies
