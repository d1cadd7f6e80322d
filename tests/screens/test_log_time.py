"""Stamps before lines, and going to a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView
from cockpit.engine.api import LogLine
from cockpit.widgets.log_time import Moment, Step, clock, line_at, parse_place, stamp
from cockpit.widgets.run_words import cost, elapsed_s
from tests.screens.logs import CountingLog, stamped

NOON_S = 1_700_049_600.0
"""2023-11-15 12:00:00 UTC."""


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("11:58", Moment(NOON_S - 120)),
        ("11:58:30", Moment(NOON_S - 90)),
        ("12:01", Moment(NOON_S - 86_400 + 60)),
        ("-10m", Moment(NOON_S - 600)),
        ("-1.5 h", Moment(NOON_S - 5_400)),
        ("+41:12", Moment(NOON_S - 7_200 + 41 * 60 + 12)),
        ("+1:00:00", Moment(NOON_S - 3_600)),
        ("step 812", Step(812)),
        ("25:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_places_in_time(typed: str, place: object) -> None:
    assert parse_place(typed, NOON_S, started_s=NOON_S - 7_200) == place


def test_since_the_start_needs_a_start() -> None:
    assert parse_place("+41:12", NOON_S, started_s=None) is None


@pytest.mark.parametrize(
    ("mode", "text"),
    [("off", ""), ("clock", "12:00:00"), ("start", "+2:00:00"), ("last", "+2.9s")],
)
def test_stamps(mode: str, text: str) -> None:
    line = LogLine(2, 10, "x", (), NOON_S)
    before = LogLine(1, 0, "x", (), NOON_S - 2.9)
    assert stamp(mode, line, before, NOON_S - 7_200) == text  # type: ignore[arg-type]


def test_a_line_without_a_time_has_no_stamp() -> None:
    line = LogLine(2, 10, "x")
    assert stamp("clock", line, None, NOON_S) == ""
    assert stamp("last", LogLine(2, 10, "x", (), NOON_S), line, NOON_S) == ""


@pytest.mark.parametrize(("at_s", "number"), [(5.0, 3), (15.0, 4), (20.0, 4), (99.0, 5)], ids=str)
def test_the_first_line_at_or_after_a_time(at_s: float, number: int) -> None:
    assert line_at(stamped(None, None, 10.0, 20.0, 30.0), at_s) == number


def test_a_log_without_times_has_no_such_line() -> None:
    assert line_at(stamped(None, None), 10.0) is None
    assert line_at(stamped(), 10.0) is None


def test_a_time_is_found_by_reading_a_few_lines() -> None:
    log = CountingLog(4096)
    line_at(log, 1.0)
    assert len(log.read) <= 14


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (" 41%|██  | 812/2000 [41:12<59:40]", True),
        ("step 812: loss 1.2", True),
        ("{'global_step': 812}", True),
        ("iteration 812", True),
        ("step 8120", False),
        ("1812/2000", False),
    ],
)
def test_a_step_is_found_as_training_loops_write_it(text: str, found: bool) -> None:
    from cockpit.widgets.log_search import Pattern

    pattern = Pattern.parse(Step(812).regex)
    assert pattern is not None
    assert pattern.matches(text) is found


@pytest.mark.parametrize("at_s", [-2e11, 1e12, float("nan")], ids=["before", "after", "nan"])
def test_a_time_of_a_host_that_no_calendar_has_is_none(at_s: float) -> None:
    assert clock(at_s) == "--:--:--"


def test_how_long_a_run_takes_is_told_by_its_hosts_clock() -> None:
    """Its host is three hours behind; its price is not that of three hours."""
    view = RunView(RunId("a-1"), "a", "command", HostName("h"), "running", started_s=10.0)
    behind = replace(view, ahead_s=-10_800.0)
    assert elapsed_s(behind, 10_840.0) == 30.0 and cost(behind, 3.6, 10_840.0) == pytest.approx(
        0.03
    )
    assert elapsed_s(view, 40.0) == 30.0
    assert behind.here_s(10.0) == 10_810.0
