"""What is printed of a run: JSON, bytes into a pipe, harmless text on a terminal; nothing slow holds up the loop."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from cockpit.domain.masking import Masker
from cockpit.headless.run_report import JsonReport, PlainReport, TerminalReport
from cockpit.headless.streams import OutStream, ReaderGone, TalkStream


class Pipes:
    """stdout and stderr of a report, and what arrived there."""

    def __init__(self) -> None:
        self.out_end, self.out = os.pipe()
        self.err_end, self.err = os.pipe()
        os.set_blocking(self.out_end, False)
        os.set_blocking(self.err_end, False)

    @property
    def streams(self) -> tuple[OutStream, TalkStream]:
        return OutStream(self.out), TalkStream(self.err)

    def text(self) -> str:
        try:
            return os.read(self.out_end, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]

    def close(self) -> None:
        for fd in (self.out_end, self.out, self.err_end, self.err):
            with suppress(OSError):
                os.close(fd)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


async def test_a_bars_states_are_told_now_and_then_and_its_end_as_a_line(pipes: Pipes) -> None:
    report = JsonReport(*pipes.streams)
    report.about("q-1", "a", Masker())
    await report.output(b"\r10%", 1.0)
    await report.output(b"\r20%", 2.0)
    assert pipes.events() == []
    await report.tick(5.0)
    await report.tick(6.0)
    (state,) = pipes.events()
    assert (state["text"], state["offset"], state["progress"]) == ("20%", 0, True)
    await report.output(b"\r100%\nnext\n", 7.0)
    lines = pipes.events()
    assert [(one["text"], one["offset"], "progress" in one) for one in lines] == [
        ("100%", 0, False),
        ("next", 14, False),
    ]


async def test_nested_bars_do_not_flood_the_stream(pipes: Pipes) -> None:
    report = JsonReport(*pipes.streams)
    report.about("q-1", "a", Masker())
    await report.output(b"outer 0%\n", 0.0)
    for step in range(1, 100):
        await report.output(b"\rinner %d%%\x1b[A\router %d%%\n" % (step, step), 0.0)
    assert [event["text"] for event in pipes.events()] == ["outer 0%"]
    await report.tick(5.0)
    assert [event["text"] for event in pipes.events()] == ["outer 99%", "inner 99%"]


async def test_an_unfinished_line_without_a_bar_waits_for_its_end(pipes: Pipes) -> None:
    report = JsonReport(*pipes.streams)
    await report.output(b"Loading ...", 0.0)
    await report.tick(5.0)
    assert pipes.events() == []
    await report.finish(6.0)
    assert [event["text"] for event in pipes.events()] == ["Loading ..."]


async def test_what_our_events_quote_is_covered_and_their_own_words_are_not(pipes: Pipes) -> None:
    report = JsonReport(*pipes.streams)
    report.about("running-1", "fatal-box", Masker(["running", "fatal-", "hunter2-hunter2"]))
    await report.event(
        "incident",
        0.0,
        {"state": "running", "summary": "hunter2-hunter2", "facts": {"path": "running"}},
    )
    (event,) = pipes.events()
    assert (event["run"], event["host"], event["state"]) == ("running-1", "fatal-box", "running")
    assert event["summary"] == "*" * 15 and event["facts"]["path"] == "*******"


async def test_a_pipe_gets_bytes_and_stderr_gets_harmless_words(pipes: Pipes) -> None:
    report = PlainReport(*pipes.streams)
    report.about("q-1", "a", Masker(["hunter2-hunter2"]))
    await report.output(b"\xff\x1b[31m", 0.0)
    await report.event("incident", 0.0, {}, "bad \x1b]0;x\x07 hunter2-hunter2\nsecond")
    assert os.read(pipes.out_end, 100) == b"\xff\x1b[31m"
    said = os.read(pipes.err_end, 1000).decode()
    assert "\x1b" not in said and "hunter2" not in said and said.endswith("second\n")


async def test_a_terminal_shows_a_bar_as_one_line_that_is_wiped_for_what_follows(
    pipes: Pipes,
) -> None:
    report = TerminalReport(*pipes.streams)
    await report.output(b"\x1b]0;evil\x07start\n\r10%", 0.0)
    await report.tick(0.2)
    assert pipes.text() == "start\n10%"
    await report.output(b"\r20%", 0.3)
    await report.tick(0.4)
    assert pipes.text() == "\r\x1b[K20%"
    await report.output(b"\r100%\nend\n", 0.5)
    assert pipes.text() == "\r\x1b[K100%\nend\n"


async def test_a_reader_that_is_slow_does_not_hold_up_the_loop(pipes: Pipes) -> None:
    stream = OutStream(pipes.out)
    data = os.urandom(1 << 20)
    writing = asyncio.ensure_future(stream.write(data))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not writing.done()
    got = b""
    while len(got) < len(data):
        try:
            got += os.read(pipes.out_end, 1 << 16)
        except BlockingIOError:
            await asyncio.sleep(0)
    await asyncio.wait_for(writing, 10)
    assert got == data


async def test_a_reader_that_is_gone_is_told_apart_from_talk_that_nobody_hears(
    pipes: Pipes,
) -> None:
    out, err = pipes.streams
    os.close(pipes.out_end)
    os.close(pipes.err_end)
    with pytest.raises(ReaderGone):
        await out.write(b"x")
    with pytest.raises(ReaderGone):
        await out.write(b"x" * 100_000)
    await err.write("nobody hears this")
    with pytest.raises(ReaderGone):
        await OutStream(-1).write(b"x")
