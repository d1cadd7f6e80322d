"""What a run has used of its budget, and when it will have used more of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cockpit.domain.incidents import FactValue, Finding, Remedy

NEAR_PCT: Final = 80
REACHED_PCT: Final = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """`[budget]` of a profile. Without both it limits nothing."""

    max_cost: float | None = None
    currency: str | None = None
    max_hours: float | None = None
    stops: bool = False
    """At the limit the run is stopped; else it is told."""


@dataclass(frozen=True, slots=True)
class Price:
    per_h: float | None = None
    currency: str | None = None


def unmeasured(limits: Limits, price: Price) -> str | None:
    """Why the cost cannot be measured, as a code; None when it can, or when only time is limited."""
    if limits.max_cost is None:
        return None
    if price.per_h is None:
        return "budget_no_price"
    return None if price.currency == limits.currency else "budget_other_currency"


def used_pct(limits: Limits, price: Price, seconds: float) -> float | None:
    """The larger share, in percent; None where nothing can be measured."""
    full_s = _full_s(limits, price)
    return None if full_s is None else 100.0 * seconds / full_s if full_s else 100.0


def due_in_s(limits: Limits, price: Price, seconds: float, pct: int) -> float | None:
    """Until that share is used; 0 when it is already."""
    full_s = _full_s(limits, price)
    return None if full_s is None else max(0.0, full_s * pct / 100 - seconds)


def finding_of_budget(limits: Limits, price: Price, seconds: float, pct: int) -> Finding:
    """80 % is worth knowing; at 100 % money burns that was not meant to."""
    facts: dict[str, FactValue] = {"hours": round(seconds / 3600, 2), "used_pct": pct}
    if price.per_h is not None:
        facts["cost"] = round(price.per_h * seconds / 3600, 2)
        facts["currency"] = price.currency or ""
    facts |= _limit_facts(limits)
    if pct < REACHED_PCT:
        return Finding("cost", "budget-near", "notice", facts, cause="budget_near")
    cause = "budget_stop" if limits.stops else "budget_reached"
    remedies = () if limits.stops else (Remedy("stop_or_raise_budget"),)
    return Finding("cost", "budget-reached", "warning", facts, cause=cause, remedies=remedies)


def _limit_facts(limits: Limits) -> Mapping[str, FactValue]:
    said = {"max_cost": limits.max_cost, "max_hours": limits.max_hours}
    return {name: value for name, value in said.items() if value is not None}


def _full_s(limits: Limits, price: Price) -> float | None:
    """Seconds until the nearer limit."""
    ends = []
    if limits.max_hours is not None:
        ends.append(limits.max_hours * 3600)
    if limits.max_cost is not None and unmeasured(limits, price) is None and price.per_h:
        ends.append(limits.max_cost / price.per_h * 3600)
    return min(ends, default=None)
