"""Which incidents a rule keeps quiet, and which it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.incidents import Family, Finding, Incident, Severity
from cockpit.domain.models import HostName, RunId
from cockpit.domain.mutes import (
    DAY_S,
    HOUR_S,
    Mute,
    kind_of,
    may_last,
    mute_for,
    mute_of,
    next_end_s,
    scopes,
)

NOW_S = 1000.0


def incident(
    family: Family = "near_full", severity: Severity = "warning", signature: str = "near-full",
    run: str | None = "r-1", host: str | None = "a", gpu: int | None = 0,
) -> Incident:  # fmt: skip
    return Incident(
        key=f"{run}/{host}/{gpu}/{family}/{signature}",
        finding=Finding(family, signature, severity),
        opened_s=NOW_S,
        last_s=NOW_S,
        host=None if host is None else HostName(host),
        gpu=gpu,
        run=None if run is None else RunId(run),
    )


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        ("run", {"same", "other-card"}),
        ("card", {"same", "other-run"}),
        ("host", {"same", "other-card", "other-run"}),
        ("everywhere", {"same", "other-card", "other-run", "other-host"}),
    ],
)
def test_a_rule_holds_at_its_place_and_for_its_kind(scope: str, covered: set[str]) -> None:
    rule = mute_for(incident(), scope, NOW_S, HOUR_S)  # type: ignore[arg-type]
    others = {
        "same": incident(),
        "other-card": incident(gpu=1),
        "other-run": incident(run="r-2"),
        "other-host": incident(host="b", run="r-3"),
        "other-kind": incident(signature="full-soon"),
        "other-family": incident(family="leak"),
    }
    assert {name for name, one in others.items() if rule.covers(one, NOW_S)} == covered
    assert rule.scope == scope


def test_what_grows_worse_is_heard() -> None:
    rule = mute_for(incident(severity="warning"), "host", NOW_S, None)
    assert rule.covers(incident(severity="notice"), NOW_S)
    assert not rule.covers(incident(severity="fatal"), NOW_S)


def test_it_ends_at_its_time_and_else_never() -> None:
    hour = mute_for(incident(), "host", NOW_S, HOUR_S)
    ever = mute_for(incident(), "everywhere", NOW_S, None)
    assert hour.covers(incident(), NOW_S + HOUR_S - 1)
    assert not hour.covers(incident(), NOW_S + HOUR_S)
    assert ever.covers(incident(), NOW_S + 1000 * DAY_S)
    assert next_end_s([ever, hour]) == NOW_S + HOUR_S
    assert next_end_s([ever]) == float("inf")


def test_the_same_rule_again_takes_the_place_of_the_first() -> None:
    first = mute_for(incident(), "host", NOW_S, HOUR_S)
    again = mute_for(incident(), "host", NOW_S + 9, DAY_S)
    assert first.id == again.id
    assert len({mute_for(incident(), one, NOW_S, None).id for one in scopes(incident())}) == 4


def test_a_pid_is_no_part_of_a_kind_and_an_xid_is() -> None:
    assert kind_of(incident("leak", signature="memory-trend-4121").finding)[1] == "memory-trend"
    assert kind_of(incident("hardware", signature="xid-79").finding)[1] == "xid-79"


def test_scopes_are_those_that_the_incident_has() -> None:
    assert scopes(incident()) == ("run", "card", "host", "everywhere")
    assert scopes(incident(run=None, gpu=None)) == ("host", "everywhere")
    assert scopes(incident(run=None, gpu=None, host=None)) == ("everywhere",)


def test_a_card_that_breaks_is_not_muted_for_ever() -> None:
    assert not may_last(incident("hardware", "fatal"))
    assert may_last(incident("hardware", "warning")) and may_last(incident("gpu_oom", "fatal"))


def test_the_rule_that_covers_is_named() -> None:
    rules = [Mute("nan", "x", "fatal", 0.0), mute_for(incident(), "run", NOW_S, None)]
    assert mute_of(incident(), rules, NOW_S) == "run:r-1/near_full/near-full"
    assert mute_of(replace(incident(), run=RunId("r-9")), rules, NOW_S) == ""
