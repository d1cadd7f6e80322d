"""Filter and search of a log: which lines, found a slice at a time."""

from __future__ import annotations

import pytest

from cockpit.widgets.log_index import FilteredLines, Found, Hits
from cockpit.widgets.log_search import Level, Pattern
from tests.screens.fake_engine import FakeLog
from tests.screens.logs import CountingLog, texts

TRACEBACK = (
    "step 1",
    "Traceback (most recent call last):",
    '  File "train.py", line 1, in <module>',
    "    main()",
    "ValueError: no",
    "step 2",
)


def pattern(typed: str) -> Pattern:
    found = Pattern.parse(typed)
    assert found is not None
    return found


def run_to_end(found: Found) -> None:
    while not found.complete:
        found.advance(3)


def shown(lines: FilteredLines) -> list[int]:
    return [lines.at(place) for place in range(len(lines))]


def test_a_search_looks_at_each_line_once_and_a_slice_at_a_time() -> None:
    log = CountingLog(10)
    hits = Hits(log, pattern("line 1"))
    hits.advance(budget=4)
    assert (len(log.read), hits.complete) == (4, False)
    run_to_end(hits)
    hits.advance()
    assert len(log.read) == 10
    assert list(hits.numbers) == [1, 10]


def test_a_search_goes_on_into_what_arrives() -> None:
    log = texts("a", "b")
    hits = Hits(log, pattern("c"))
    run_to_end(hits)
    log.append("c")
    assert hits.advance()
    assert (hits.after(0), hits.rank(3), len(hits)) == (3, 1, 1)


def test_hits_in_lines_that_were_dropped_do_not_count() -> None:
    log = texts("x", "x", "x")
    hits = Hits(log, pattern("x"))
    run_to_end(hits)
    log.drop_oldest(2)
    assert (len(hits), hits.rank(3), hits.before(3)) == (1, 1, None)


@pytest.mark.parametrize(
    ("floor", "typed", "context", "numbers"),
    [
        (Level.ERROR, "", 0, [2, 3, 4, 5]),
        (Level.ALL, "ValueError", 0, [2, 3, 4, 5]),
        (Level.ALL, "step 2", 1, [5, 6]),
        (Level.WARNING, "step", 0, []),
    ],
    ids=["a traceback is one message", "a match shows its message", "context", "both must hold"],
)
def test_filtered_lines(floor: Level, typed: str, context: int, numbers: list[int]) -> None:
    lines = FilteredLines(texts(*TRACEBACK), floor, Pattern.parse(typed), context)
    run_to_end(lines)
    assert shown(lines) == numbers


def test_a_filter_keeps_the_line_that_is_being_written() -> None:
    log = texts("a", "b")
    log.open_text = " 10%|"
    lines = FilteredLines(log, Level.ALL, pattern("b"), 0)
    run_to_end(lines)
    assert shown(lines) == [2, 3]
    assert lines.place_of(3) == 1


def test_a_message_without_end_is_bounded() -> None:
    log = FakeLog(["start", *(" indented" for _ in range(2000)), " indented needle"])
    lines = FilteredLines(log, Level.ALL, pattern("needle"), 0)
    run_to_end(lines)
    assert len(lines) <= 402
