from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cockpit.domain.gang import (
    GANG_NOTE,
    Member,
    culprit,
    gang_note,
    has_failed,
    member_id,
    member_of,
)
from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView

HOSTS = (HostName("h1"), HostName("h2"))
GANG = RunId("ddp-1skaaaaaa")


def rank(number: int, **more: object) -> RunView:
    member = Member(GANG, number, HOSTS)
    view = RunView(
        run=member_id(GANG, number),
        profile="ddp",
        kind="torchrun",
        host=HOSTS[number],
        state="exited",
        by="job",
        notes=((GANG_NOTE, gang_note(member)),),
    )
    return replace(view, **more)  # type: ignore[arg-type]


def test_a_member_knows_its_family() -> None:
    member = member_of(rank(1))
    assert member == Member(GANG, 1, HOSTS)
    assert member is not None and member.ids == (GANG, RunId(f"{GANG}-r1"))


@pytest.mark.parametrize(
    "note",
    [
        "", "[]", "{", "1", json.dumps({"gang": "../x", "rank": 0, "hosts": ["h1", "h2"]}),
        json.dumps({"gang": GANG, "rank": 1, "hosts": ["h1", "h2"]}),
        json.dumps({"gang": GANG, "rank": 0, "hosts": ["h2", "h1"]}),
        json.dumps({"gang": GANG, "rank": 0, "hosts": ["h1"]}),
        json.dumps({"gang": GANG, "rank": 9, "hosts": ["h1", "h2"]}),
        json.dumps({"gang": GANG, "rank": 0, "hosts": [1, 2]}), "[" * 100_000,
    ],
    ids=range(11),
)  # fmt: skip
def test_a_note_that_does_not_fit_its_run_is_none(note: str) -> None:
    view = replace(rank(0), notes=((GANG_NOTE, note),))
    assert member_of(view) is None


def test_who_failed_first_by_clocks_that_differ() -> None:
    one = rank(0, code=1, ended_s=1000.0)
    two = rank(1, code=7, ended_s=1060.0)  # its host's clock is two minutes ahead
    assert culprit([one, two], {HOSTS[1]: 120.0}) == two
    assert culprit([one, two], {}) == one


def test_what_counts_as_a_failure() -> None:
    assert has_failed(rank(0, code=3)) and has_failed(rank(0, signal=9))
    assert has_failed(rank(0, state="lost", by=None))
    assert not has_failed(rank(0, code=0))
    assert not has_failed(rank(0, code=3, by="cockpit"))
    assert not has_failed(rank(0, state="running"))
    assert culprit([rank(0, code=0), rank(1, state="running")], {}) is None
