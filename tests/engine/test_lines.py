"""Chunks into lines, with a limit."""

from __future__ import annotations

import pytest

from cockpit.engine.lines import LineSplitter, LineTooLong


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_the_same_however_they_are_cut(size: int) -> None:
    data = b"one\n\ntwo\r\nthree\xff\nrest"
    splitter = LineSplitter()
    lines = [
        line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])
    ]
    assert lines == [b"one", b"", b"two\r", b"three\xff"]
    assert splitter.feed(b"\n") == [b"rest"]


def test_a_line_of_the_limit_passes_and_one_byte_more_does_not() -> None:
    assert LineSplitter(10).feed(b"x" * 10 + b"\n") == [b"x" * 10]
    with pytest.raises(LineTooLong):
        LineSplitter(10).feed(b"x" * 11 + b"\n")
    splitter = LineSplitter(10)
    splitter.feed(b"x" * 10)
    with pytest.raises(LineTooLong):
        splitter.feed(b"x\n")
    with pytest.raises(LineTooLong):
        LineSplitter(10).feed(b"ok\n" + b"x" * 11)
