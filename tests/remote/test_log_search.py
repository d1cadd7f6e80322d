"""A text in a log of any size is found where it lies, between everything else that the agent does."""

from __future__ import annotations

import asyncio

import pytest

from cockpit.domain.masking import Masker
from cockpit.domain.models import RunId
from cockpit.engine.api import LogPart
from cockpit.engine.log_part import HostSource, read_part
from cockpit.engine.log_search import search_log
from cockpit.errors import CockpitError
from tests.remote.supervised import Runs, shell

RUN = RunId("a-1")
END = 1 << 61


async def ended(runs: Runs, script: str) -> None:
    await runs.agent.start(shell("a-1", script))
    await runs.ended("a-1")


async def places(runs: Runs, text: str, offset: int, *, backward: bool) -> list[int]:
    """Every hit from there on, the nearest first."""
    found: list[int] = []
    while True:
        hit = await search_log(
            runs.agent, RUN, text, offset, backward=backward, on_progress=lambda _share: None
        )
        if hit is None:
            return found
        found.append(hit.offset)
        offset = hit.offset if backward else hit.offset + 1


async def around(runs: Runs, offset: int, masker: Masker) -> LogPart:
    return await read_part(HostSource(runs.agent, RUN), offset, "around", masker)


async def test_every_place_in_both_directions(runs: Runs) -> None:
    await ended(runs, "printf 'Loss nan\\nloss 2\\nfine\\nLOSS 3'")
    assert await places(runs, "loss", 0, backward=False) == [0, 9, 21]
    assert await places(runs, "loss", END, backward=True) == [21, 9, 0]
    assert await places(runs, "LOSS", END, backward=True) == [21]
    assert await places(runs, "none", 0, backward=False) == []


async def test_hits_across_slices_of_a_large_log_and_other_requests_meanwhile(runs: Runs) -> None:
    """A word on the border of two slices, in a log of 40 MiB, with progress, while the agent answers others."""
    script = (
        "head -c 1048570 /dev/zero | tr '\\0' x; printf 'needle one';"
        " head -c 41000000 /dev/zero | tr '\\0' y; printf '\\nneedle two\\n'"
    )
    await ended(runs, script)
    shares: list[float] = []
    searching = asyncio.ensure_future(
        search_log(runs.agent, RUN, "needle one", END, backward=True, on_progress=shares.append)
    )
    answers = [await runs.agent.status(RUN) for _ in range(5)]
    assert all(record.code == 0 for record in answers)
    hit = await searching
    assert hit is not None and hit.offset == 1_048_570
    assert await places(runs, "needle", 0, backward=False) == [1_048_570, 42_048_581]
    assert await places(runs, "xn", 0, backward=False) == [1_048_569]


async def test_a_log_of_more_than_one_request(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request takes two seconds at most and is followed by the next; a sparse log is as good as a full one."""
    await ended(runs, "printf start")
    log = runs.folder("a-1") / "log"
    with log.open("r+b") as file:
        file.truncate(300 << 20)
        file.seek(290 << 20)
        file.write(b"far away")
    shares: list[float] = []
    hit = await search_log(runs.agent, RUN, "start", END, backward=True, on_progress=shares.append)
    assert hit is not None and hit.offset == 0
    assert shares == sorted(shares)
    assert await places(runs, "far away", 0, backward=False) == [290 << 20]


async def test_lines_around_a_place_are_masked_and_whole(runs: Runs) -> None:
    await ended(runs, "seq 1 20000; echo token-123456; seq 1 20000")
    hit = await search_log(
        runs.agent, RUN, "token", END, backward=True, on_progress=lambda _share: None
    )
    assert hit is not None
    part = await around(runs, hit.offset, Masker(["token-123456"]))
    texts = {line.offset: line.text for line in part.lines}
    assert texts[hit.offset] == "*" * 12
    offsets = [line.offset for line in part.lines]
    assert offsets == sorted(offsets) and part.lines[0].text.isdigit()
    first = await around(runs, 0, Masker())
    assert first.lines[0].text == "1" and first.lines[0].offset == 0


async def test_a_secret_across_the_edge_of_what_is_read_is_covered(runs: Runs) -> None:
    """A log without newlines, full of one secret: whatever is cut out of it shows none of it."""
    secret = "sekret-ABCDEFGHIJ"
    await ended(runs, f"i=0; while [ $i -lt 9000 ]; do printf {secret}; i=$((i+1)); done")
    part = await around(runs, 70_000, Masker([secret]))
    assert part.lines and all(set(line.text.split(" ")[0]) <= set("*.") for line in part.lines)
    assert set(part.excerpt) == {"*"}


async def test_what_a_bar_has_overwritten_is_shown_as_it_stood(runs: Runs) -> None:
    await ended(runs, "printf 'step 1 nan\\rstep 2 fine\\rstep 3 fine\\n'")
    (place,) = await places(runs, "nan", END, backward=True)
    assert (await around(runs, place, Masker())).excerpt == "step 1 nan"


async def test_nonsense_is_refused_and_ends_nothing(runs: Runs) -> None:
    await ended(runs, "echo on")
    assert runs.agent is not None
    for text, offset in (("", 0), ("x" * 600, 0)):
        with pytest.raises(CockpitError):
            await search_log(
                runs.agent, RUN, text, offset, backward=False, on_progress=lambda _share: None
            )
    with pytest.raises(CockpitError):
        await search_log(
            runs.agent, RunId("b-1"), "x", 0, backward=False, on_progress=lambda _share: None
        )
    assert await places(runs, "on", 0, backward=False) == [0]
