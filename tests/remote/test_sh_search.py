"""Whole logs on a host without Python, by the tools that it has."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.engine import sh_search
from cockpit.engine.log_search import LineCount, LogSearch
from cockpit.engine.sh_agent import ShAgent
from cockpit.errors import CockpitError, RunError
from tests.remote.supervised import shell
from tests.remote.test_runs_sh import Bench, left_alone, opened
from tests.shells import SHELLS

RUN = RunId(f"sf-{os.getpid()}")
END = 1 << 61


async def with_log(bench: Bench, data: bytes) -> None:
    await bench.agent.start(shell(RUN, "true"))
    await bench.ended(RUN)
    (bench.folder(RUN) / "log").write_bytes(data)


@pytest.fixture(params=sorted(SHELLS))
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await opened(tmp_path, request.param)
    yield bench
    await left_alone(bench)


async def all_of(agent: ShAgent, text: str, *, backward: bool) -> list[int]:
    found: list[int] = []
    offset = END if backward else 0
    while True:
        search = LogSearch(RUN, text, offset, backward=backward, on_progress=lambda _share: None)
        hit = await search.by(agent)
        if hit is None:
            return found
        found.append(hit.offset)
        offset = hit.offset if backward else hit.offset + 1


async def test_text_in_both_directions_across_blocks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sh_search, "BLOCK_BYTES", 70_000)
    odd = "100% 'über' \\n $HOME -e nan"
    data = b"Nan\n" + b"x" * 69_994 + b"nan" + b"\0\xff\r\n" * 40_000 + odd.encode() + b"\nNaN"
    await with_log(bench, data)
    places = [at for at in range(len(data)) if data[at : at + 3].lower() == b"nan"]
    assert 69_997 < places[1] < 70_000 < places[1] + 3, "one lies across two blocks"
    assert await all_of(bench.agent, "nan", backward=False) == places
    assert await all_of(bench.agent, "nan", backward=True) == places[::-1]
    assert await all_of(bench.agent, "NaN", backward=True) == places[-1:]
    assert await all_of(bench.agent, odd, backward=False) == [data.index(odd.encode())]
    assert await all_of(bench.agent, "absent", backward=True) == []


async def test_a_line_by_its_number(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sh_search, "BLOCK_BYTES", 70_000)
    await with_log(bench, b"".join(b"%d\n" % n for n in range(1, 30_001)) + b"end")
    for number in (1, 2, 15_000, 30_001):
        place = await LineCount(RUN, number, lambda _share: None).by(bench.agent)
        told = (await bench.agent.read(RUN, place.offset, 8)).data.split(b"\n")[0]
        assert told == (b"%d" % number if number <= 30_000 else b"end")
    beyond = await LineCount(RUN, 30_011, lambda _share: None).by(bench.agent)
    assert (beyond.missing, beyond.offset) == (10, beyond.size)


async def test_what_cannot_be_done_without_python_or_grep_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    bench = await opened(tmp_path / "a", "dash", without=("grep",))
    try:
        await with_log(bench, b"x\n")
        with pytest.raises(RunError) as caught:
            await all_of(bench.agent, "x", backward=False)
        assert caught.value.code == "search_needs_grep"
        search = LogSearch(
            RUN, "x.", 0, backward=False, on_progress=lambda _share: None, is_regex=True
        )
        with pytest.raises(RunError) as caught:
            await search.by(bench.agent)
        assert caught.value.code == "pattern_needs_python"
        for text in ("", "x" * 600, "a\nb"):
            with pytest.raises(CockpitError):
                await all_of(bench.agent, text, backward=False)
        assert (await LineCount(RUN, 2, lambda _share: None).by(bench.agent)).offset == 2
    finally:
        await left_alone(bench)
