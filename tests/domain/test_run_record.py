"""Records of a host that keeps to no form: what makes no sense is missing, and nothing harmful passes."""

from __future__ import annotations

import pytest

from cockpit.domain.models import HostName
from cockpit.domain.run_record import Leftover, NotARecord, decode_record

RECORD = {"run": "a-1", "state": "running", "now_s": 5}


def test_a_full_record() -> None:
    record = decode_record(
        {
            **RECORD,
            "state": "exited",
            "profile": "lora",
            "argv": ["python", "train.py"],
            "tags": ["sft"],
            "gpus": [0, 3],
            "code": None,
            "signal": 9,
            "reason": "oom_killed",
            "by": "job",
            "started_s": 1.5,
            "log_bytes": 12,
            "log_hole": [4, 8],
            "leftovers": [{"pid": 7, "started_ticks": 8, "command": "sleep"}, {"pid": "x"}, 5],
            "signals": ["INT"],
        }
    )
    assert record.leftovers == (Leftover(7, 8, "sleep"),) and record.log_hole == (4, 8)
    view = record.view(HostName("h"))
    assert (view.state, view.gpus, view.exit_status, view.reason) == (
        "exited",
        (0, 3),
        137,
        "oom_killed",
    )
    assert view.leftover_pids == (7,) and view.command == ("python", "train.py")


@pytest.mark.parametrize(
    "answer",
    [None, [], {}, {**RECORD, "run": "A/../b"}, {**RECORD, "state": 3}, {**RECORD, "now_s": "5"},
     {**RECORD, "now_s": float("nan")}, {**RECORD, "run": None}],
)  # fmt: skip
def test_what_is_no_record(answer: object) -> None:
    with pytest.raises(NotARecord):
        decode_record(answer)


def test_wrong_types_count_as_missing() -> None:
    record = decode_record(
        {
            **RECORD,
            "argv": "rm -rf",
            "gpus": [True, 1.5, "2", 3, 1 << 80],
            "code": "0",
            "signal": True,
            "by": "magic",
            "started_s": float("inf"),
            "log_hole": [9, 3],
            "tags": {"a": 1},
            "leftovers": {"pid": 1},
            "notes": [1],
        }
    )
    assert (record.command, record.gpus, record.code, record.signal) == ((), (3,), None, None)
    assert (record.by, record.started_s, record.log_hole, record.tags) == (None, None, None, ())


def test_text_is_harmless_and_lists_are_bounded() -> None:
    hostile = "\x1b]0;owned\x07\u202ename\n" + "x" * 100_000
    record = decode_record(
        {**RECORD, "profile": hostile, "argv": [hostile] * 5000, "notes": {hostile: hostile}}
    )
    for text in (record.profile, *record.command, *record.notes[0]):
        assert not set("\x1b\x07\n\u202e") & set(text) and len(text) <= 4096
    assert len(record.command) == 256


@pytest.mark.parametrize(("code", "signal"), [(256, 0), (-1, 1000), (1 << 40, -9), (None, True)])
def test_an_end_that_no_process_can_have_is_not_known(code: object, signal: object) -> None:
    """Taken as it is, 256 would be the success of `cockpit run`."""
    answer = {"run": "a-1", "state": "exited", "now_s": 5.0, "code": code, "signal": signal}
    assert decode_record(answer).view(HostName("h")).exit_status is None


@pytest.mark.parametrize(
    "value", [-1.0, 3e11, 9e11, float("inf")], ids=["before", "late", "later", "never"]
)
def test_a_moment_that_no_calendar_has_is_not_known(value: float) -> None:
    record = decode_record({**RECORD, "started_s": value, "ended_s": value, "claimed_s": value})
    assert (record.started_s, record.ended_s, record.claimed_s) == (None, None, None)
