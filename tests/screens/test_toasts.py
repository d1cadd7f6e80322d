"""Speak once, loudly only where it matters, and not at all in a storm."""

from __future__ import annotations

from dataclasses import replace

from cockpit.domain.incidents import Incident
from cockpit.engine.events import IncidentChanged
from cockpit.widgets.toasts import ToastRules
from tests.screens.fake_engine import leak_incident, oom_incident


def change(
    incident: Incident, before: Incident | None = None, at_s: float = 0.0
) -> IncidentChanged:
    return IncidentChanged(incident, before, at_s)


def test_new_ones_are_told_once() -> None:
    rules, oom = ToastRules(), oom_incident()

    first = rules.decide(change(oom))
    again = rules.decide(change(replace(oom, count=2), oom, 1.0))

    assert first is not None and (first.kind, first.severity) == ("new", "error")
    assert again is None


def test_a_warning_is_quieter_and_shorter_than_a_fatal_one() -> None:
    rules = ToastRules()
    warning, fatal = rules.decide(change(leak_incident())), rules.decide(change(oom_incident()))

    assert warning is not None and fatal is not None
    assert warning.severity == "warning" and fatal.lasts_s > warning.lasts_s


def test_notices_say_nothing() -> None:
    notice = leak_incident()
    notice = replace(notice, finding=replace(notice.finding, severity="notice"))

    assert ToastRules().decide(change(notice)) is None


def test_growing_worse_is_told() -> None:
    warning = leak_incident()
    fatal = replace(warning, finding=replace(warning.finding, severity="fatal"))

    order = ToastRules().decide(change(fatal, warning))

    assert order is not None and order.kind == "worse"


def test_only_what_was_fatal_is_told_as_over() -> None:
    oom, leak = oom_incident(), leak_incident()
    rules = ToastRules()

    over = rules.decide(change(replace(oom, state="recovered"), oom))
    quiet = rules.decide(change(replace(leak, state="recovered"), leak))

    assert over is not None and (over.kind, over.severity) == ("recovered", "information")
    assert quiet is None


def test_the_fourth_at_once_becomes_a_count() -> None:
    rules = ToastRules()
    orders = [rules.decide(change(oom_incident(f"k{n}"), at_s=0.1 * n)) for n in range(5)]

    assert [order.kind for order in orders if order] == ["new", "new", "new", "more", "more"]
    assert orders[4] is not None and orders[4].count == 2


def test_a_storm_is_one_line_a_minute() -> None:
    rules = ToastRules()
    orders = [rules.decide(change(oom_incident(f"k{n}"), at_s=float(n))) for n in range(59)]

    storms = [order for order in orders if order and order.kind == "storm"]
    assert len(storms) == 1 and storms[0].count == 6
    assert all(order is None for order in orders[6:])
