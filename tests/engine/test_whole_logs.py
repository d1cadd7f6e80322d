"""Whole logs through the engine: from the copy here where it has the part, else from the host, over lost links."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.engine import runs_logs
from cockpit.errors import HostUnreachable, RunUnknown
from tests.builders.runs import Bench, make_bench, until
from tests.remote.supervised import of_home

LINES = 40_000


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """An engine that copies a log when it is looked at, and not before."""
    made = make_bench(tmp_path, follow_live=False)
    made.connect()
    yield made
    await made.runs.close()
    with suppress(AssertionError):
        await until(lambda: not of_home(made.host_home), "all is over", 10.0)
    left = of_home(made.host_home)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], "the test left processes"


async def a_long_log(bench: Bench) -> RunId:
    view = await bench.launched("long", f"seq -f %07g 1 {LINES}")
    await bench.ended(view)
    return view.run


def text_at(offset: int) -> str:
    return f"{offset // 8 + 1:07}"


async def test_any_part_of_a_log_that_is_not_copied_comes_from_its_host(bench: Bench) -> None:
    run = await a_long_log(bench)
    hit = await bench.runs.search_log(
        run, "0031415", 1 << 61, backward=True, on_progress=lambda _share: None
    )
    assert hit is not None and hit.offset == 8 * 31_414
    part = await bench.runs.log_around(run, hit.offset)
    assert part.start < hit.offset < part.end and part.size == 8 * LINES
    older = await bench.runs.log_page(run, part.start, older=True)
    newer = await bench.runs.log_page(run, part.end, older=False)
    for one in (older, part, newer):
        assert all(line.text == text_at(line.offset) for line in one.lines)
    assert older.end == part.start and newer.start == part.end
    place = await bench.runs.line_place(run, 12_345, on_progress=lambda _share: None)
    assert place.offset == 8 * 12_344
    pattern = await bench.runs.search_log(
        run, r"^00..777$", 0, backward=False, on_progress=lambda _share: None, is_regex=True
    )
    assert pattern is not None and text_at(pattern.offset) == "0000777"
    with pytest.raises(RunUnknown):
        await bench.runs.log_page(RunId("none-1"), 0, older=False)


async def test_what_is_copied_needs_no_host(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the link gone: parts that are here are shown, and a search waits for its host no longer than it should."""
    monkeypatch.setattr(runs_logs, "RECONNECT_S", 0.2)
    run = await a_long_log(bench)
    log = bench.runs.log(run)
    await until(lambda: log.ended, "its log is here")
    log.close()
    bench.cut()
    part = await bench.runs.log_around(run, 100_000)
    assert part.size == 8 * LINES and part.lines[0].text == text_at(part.start)
    end = await bench.runs.log_around(run, 1 << 61)
    assert end.end == 8 * LINES and end.lines[-1].text == text_at(8 * LINES - 8)
    with pytest.raises(HostUnreachable):
        await bench.runs.search_log(run, "1", 0, backward=False, on_progress=lambda _share: None)


async def test_a_search_that_loses_its_link_is_answered_on_the_next_one(bench: Bench) -> None:
    run = await a_long_log(bench)
    bench.cut()
    searching = asyncio.ensure_future(
        bench.runs.search_log(
            run, "0000007", 1 << 61, backward=True, on_progress=lambda _share: None
        )
    )
    await asyncio.sleep(0)
    assert not searching.done()
    bench.connect()
    hit = await searching
    assert hit is not None and hit.offset == 48
