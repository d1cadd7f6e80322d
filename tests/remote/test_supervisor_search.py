"""Work on a whole log on its host: holes passed over, any alphabet, lines counted, and always an end to it."""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import Json
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.log_search import LineCount, LogSearch, over_lost_links
from cockpit.errors import CockpitError, LinkLost, RunError
from tests.agents import SUPERVISOR, PipeTransport
from tests.remote.supervised import Runs, shell, until

RUN = RunId("a-1")
MIB = 1 << 20
END = 1 << 61
PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
HOSTILE = r"(a+)+$"


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SUPERVISOR.parent))
    return importlib.import_module("supervisor_blocks")


@pytest.fixture
def match(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SUPERVISOR.parent))
    return importlib.import_module("supervisor_match")


async def with_log(runs: Runs, *parts: bytes | int) -> Path:
    """A run whose log has these bytes; a number is a hole of that size."""
    await runs.agent.start(shell(RUN, "true"))
    await runs.ended(RUN)
    log = runs.folder(RUN) / "log"
    with log.open("wb") as file:
        for part in parts:
            if isinstance(part, int):
                file.seek(part, os.SEEK_CUR)
                file.truncate()
            else:
                file.write(part)
        file.truncate(max(file.tell(), log.stat().st_size))
    return log


async def find(
    agent: HostAgent, text: str, offset: int, *, backward: bool = False, is_regex: bool = False
) -> int | None:
    search = LogSearch(
        RUN, text, offset, backward=backward, on_progress=lambda _share: None, is_regex=is_regex
    )
    hit = await search.by(agent)
    return None if hit is None else hit.offset


async def all_of(
    agent: HostAgent, text: str, *, backward: bool = False, is_regex: bool = False
) -> list[int]:
    found: list[int] = []
    offset = END if backward else 0
    while (at := await find(agent, text, offset, backward=backward, is_regex=is_regex)) is not None:
        found.append(at)
        offset = at if backward else at + 1
    return found


# -- holes -----------------------------------------------------------------------------------


def test_slices_cover_every_byte_that_there_is_and_pass_over_the_rest(
    blocks: ModuleType, tmp_path: Path
) -> None:
    """Data at the start, in the middle of nothing and at the end of 64 GiB: a handful of slices in each direction."""
    path = tmp_path / "log"
    places = (0, 5 * MIB + 123, 40 << 30, (64 << 30) - 10)
    with path.open("wb") as file:
        for place in places:
            file.seek(place)
            file.write(b"0123456789")
    size = path.stat().st_size
    fd = os.open(path, os.O_RDONLY)
    try:
        forth, at = [], 0
        while at < size:
            start, at = blocks.slice_behind(fd, at, size)
            forth.append((start, at))
        back, at = [], size
        while at > 0:
            at, end = blocks.slice_before(fd, at)
            back.append((at, end))
    finally:
        os.close(fd)
    for place in places:
        assert any(start <= place and place + 10 <= end for start, end in forth), place
        assert any(start <= place < end for start, end in back), place
    assert len(forth) < 20 and len(back) < 20
    assert all(0 < end - start <= MIB for start, end in [*forth, *back])


async def test_a_log_with_a_hole_of_a_terabyte_is_searched_in_one_request(runs: Runs) -> None:
    hole = 1 << 40
    await with_log(runs, b"first nan\n", hole, b"second nan\n")
    shares: list[float] = []
    search = LogSearch(RUN, "first", END, backward=True, on_progress=shares.append)
    hit = await search.by(runs.agent)
    assert hit is not None and hit.offset == 0 and shares == []
    assert await all_of(runs.agent, "nan") == [6, 10 + hole + 7]
    assert await all_of(runs.agent, "nan", backward=True) == [10 + hole + 7, 6]
    assert await all_of(runs.agent, "n.n$", is_regex=True) == [6, 10 + hole + 7]


# -- letters and lines -----------------------------------------------------------------------


async def test_any_case_of_any_alphabet_to_the_byte(runs: Runs) -> None:
    text = "ÜBER über\nΣΊΣΥΦΟΣ сбой СБОЙ \u2c65\u023a 训练\n".encode()
    await with_log(runs, text, b"\xff\xc3", "über\n".encode())
    first, second = text.index("ÜBER".encode()), text.index("über".encode())
    third = len(text) + 2
    assert await all_of(runs.agent, "über") == [first, second, third]
    assert await all_of(runs.agent, "über", backward=True) == [third, second, first]
    assert await all_of(runs.agent, "Über") == []
    russian = [text.index("сбой".encode()), text.index("СБОЙ".encode())]
    assert await all_of(runs.agent, "сбой") == russian
    longer = text.index("\u2c65".encode())
    assert await all_of(runs.agent, "\u2c65") == [longer, longer + 3]
    assert await all_of(runs.agent, "训练") == [text.index("训练".encode())]


@pytest.mark.parametrize("seed", range(4))
def test_letters_across_the_border_of_two_slices(match: ModuleType, seed: int) -> None:
    """Whatever slices a text is cut into, the same places are found, forwards and backwards."""
    dice = random.Random(seed)
    data = "".join(dice.choice("aßÄä\u023a\u2c65训\n") for _ in range(400)).encode()
    for text in ("ä", "\u2c65a", "ä训"):
        request = {"text": text, "ignore_case": True}
        one = match.matcher_of(request)
        whole = data.decode()
        expected = [
            len(whole[: hit.start()].encode())
            for hit in re.finditer(f"(?={re.escape(text)})", whole, re.IGNORECASE)
        ]
        assert _places(one, data, dice) == expected


@pytest.mark.parametrize("seed", range(4))
def test_lines_across_the_border_of_two_slices(match: ModuleType, seed: int) -> None:
    dice = random.Random(seed)
    data = "\n".join("x" * dice.randrange(9) + f"ä{dice.randrange(99)}" for _ in range(60))
    one = match.matcher_of({"text": r"^x*ä\d$", "regex": True})
    expected = [
        len(data[: hit.start()].encode()) for hit in re.finditer(r"^x*ä\d$", data, re.MULTILINE)
    ]
    assert expected and _places(one, data.encode(), dice) == expected


def _places(one: object, data: bytes, dice: random.Random) -> list[int]:
    """Everything that a matcher finds, a slice at a time; the same in both directions."""
    forth, back = [], []
    at = 0
    while at < len(data):
        end = min(len(data), at + dice.randrange(1, 40))
        base = max(0, at - one.before)  # type: ignore[attr-defined]
        piece = data[base : end + one.behind]  # type: ignore[attr-defined]
        start, found = at, None
        while (found := one.find(piece, start - base, end - base, False)) is not None:  # type: ignore[attr-defined]
            forth.append(base + found)
            start = base + found + 1
        stop = end
        some = []
        while (found := one.find(piece, at - base, stop - base, True)) is not None:  # type: ignore[attr-defined]
            some.append(base + found)
            stop = base + found
        back += reversed(some)
        at = end
    assert forth == back
    return forth


async def test_a_line_is_found_by_its_number(runs: Runs) -> None:
    lines = b"".join(b"%d\n" % number for number in range(1, 400_001))
    await with_log(runs, lines, b"no newline")
    for number in (1, 2, 9999, 400_000, 400_001):
        place = await LineCount(RUN, number, lambda _share: None).by(runs.agent)
        told = await runs.agent.read(RUN, place.offset, 10)
        assert told.data.split(b"\n")[0] == (
            b"%d" % number if number <= 400_000 else b"no newline"
        ), number
        assert (place.missing, place.uncounted_bytes) == (0, 0)
    beyond = await LineCount(RUN, 500_000, lambda _share: None).by(runs.agent)
    assert beyond.missing == 99_999 and beyond.offset == beyond.size


async def test_lines_in_a_hole_count_for_nothing_and_that_is_said(runs: Runs) -> None:
    await with_log(runs, b"1\n" * 2048, 100 * MIB, b"2\n" * 10)
    place = await LineCount(RUN, 2050, lambda _share: None).by(runs.agent)
    assert 99 * MIB < place.uncounted_bytes <= 100 * MIB
    assert (await runs.agent.read(RUN, place.offset, 2)).data == b"2\n"


# -- an end to it ----------------------------------------------------------------------------


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parts[-3])
async def test_a_hostile_pattern_is_stopped_under_every_python(
    tmp_path: Path, python: Path
) -> None:
    """And the agent answers on, finds what a decent pattern asks for, and leaves no alarm set."""
    transport = PipeTransport(tmp_path, str(python), {"LC_ALL": "C"})
    runs = Runs(transport, transport.agent())
    await runs.agent.open()
    try:
        await with_log(
            runs, b"fine ends\n" * 3000, b"a" * 4000 + b"!\n", "fine über end\n".encode()
        )
        with pytest.raises(RunError) as caught:
            await find(runs.agent, HOSTILE, 0, is_regex=True)
        assert caught.value.code == "pattern_too_slow"
        assert (await runs.agent.status(RUN)).code == 0
        assert await find(runs.agent, r"ÜBER\s+end$".lower(), 0, is_regex=True) == 30_000 + 4002 + 5
        process = transport.channels[-1].process.pid
        status = Path(f"/proc/{process}/status").read_text()
        caught_signals = int(re.findall(r"SigCgt:\s*([0-9a-f]+)", status)[0], 16)
        assert not caught_signals & 1 << 13, "SIGALRM is as it was"
    finally:
        await runs.agent.close()


async def test_what_is_no_pattern_is_refused_here_and_there(runs: Runs) -> None:
    await with_log(runs, b"x\n")
    with pytest.raises(RunError) as caught:
        await find(runs.agent, "(", 0, is_regex=True)
    assert caught.value.code == "bad_pattern"
    fields: dict[str, Json] = {"run": RUN, "text": "(", "regex": True, "offset": 0}
    with pytest.raises(RunError) as caught:
        await runs.agent.search(fields)
    assert caught.value.code == "bad_pattern"
    assert await find(runs.agent, "x*", 1, is_regex=True) is None, "nothing is no hit"


def descriptors(runs: Runs) -> int:
    return len(os.listdir(f"/proc/{runs.transport.channels[-1].process.pid}/fd"))


@contextmanager
def all_turns_taken(runs: Runs) -> Iterator[list[int]]:
    """By other clients of the host."""
    folder = runs.folder(RUN).parent
    held = [
        os.open(folder / f"search.{number}", os.O_RDWR | os.O_CREAT, 0o600) for number in range(4)
    ]
    try:
        for fd in held:
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield held
    finally:
        for fd in held:
            os.close(fd)


async def test_a_cancelled_search_ends_on_the_host_at_once(runs: Runs) -> None:
    """When the next question is answered, nothing of it is open any more."""
    await with_log(runs, b"x")
    before = descriptors(runs)
    with all_turns_taken(runs):
        searching = asyncio.ensure_future(find(runs.agent, "x", 0))
        await until(lambda: descriptors(runs) > before, "it has come")
        searching.cancel()
        await asyncio.wait({searching})
        await runs.agent.status(RUN)
        assert descriptors(runs) == before
    assert await find(runs.agent, "x", 0) == 0


async def test_a_new_search_takes_the_place_of_the_one_before(runs: Runs) -> None:
    await with_log(runs, b"x" * MIB)
    before = descriptors(runs)
    with all_turns_taken(runs):
        first = asyncio.ensure_future(find(runs.agent, "x", 0))
        await until(lambda: descriptors(runs) > before, "it has come")
        second = asyncio.ensure_future(find(runs.agent, "x", END, backward=True))
        with pytest.raises(RunError) as caught:
            await first
        assert caught.value.code == "search_replaced"
    assert await second == MIB - 1
    assert descriptors(runs) == before


async def test_clients_of_a_host_take_turns(runs: Runs) -> None:
    """The fifth waits, while its agent answers others, and has its turn when one of the four is done."""
    await with_log(runs, b"x")
    before = descriptors(runs)
    with all_turns_taken(runs) as held:
        waiting = asyncio.ensure_future(find(runs.agent, "x", 0))
        await until(lambda: descriptors(runs) > before, "it has come")
        assert (await runs.agent.status(RUN)).code == 0
        told = await runs.agent.search({"run": RUN, "text": "x", "offset": 0})
        assert told["waits"] is True, "a request for a turn has an end too"
        with pytest.raises(RunError):
            await waiting
        again = asyncio.ensure_future(find(runs.agent, "x", 0))
        fcntl.flock(held[2], fcntl.LOCK_UN)
        assert await again == 0


async def test_one_client_searches_a_few_logs_at_once(runs: Runs) -> None:
    await with_log(runs, b"x")
    names = [RunId(f"b-{number}") for number in range(4)]
    for name in names:
        await runs.agent.start(shell(name, "echo x"))
        await runs.ended(name)
    before = descriptors(runs)
    with all_turns_taken(runs):
        searching = [
            asyncio.ensure_future(runs.agent.search({"run": name, "text": "x", "offset": 0}))
            for name in names
        ]
        await until(lambda: descriptors(runs) >= before + 4, "they have come")
        with pytest.raises(RunError) as caught:
            await runs.agent.search({"run": RUN, "text": "x", "offset": 0})
        assert caught.value.code == "too_many_searches"
    answers = await asyncio.gather(*searching)
    assert [one.get("hit") for one in answers] == [0] * 4 or any(
        one.get("waits") for one in answers
    )
    assert descriptors(runs) == before


async def test_a_search_goes_on_after_a_lost_link_from_where_it_was(runs: Runs) -> None:
    await with_log(runs, b"needle\n", *(b"y" * MIB for _ in range(4)))
    asked: list[int] = []

    class Cut:
        """Answers once, as if its time were over, and is lost with the second question."""

        async def search(self, fields: dict[str, object]) -> dict[str, object]:
            asked.append(int(str(fields["offset"])))
            if len(asked) > 1:
                raise LinkLost(host="here", why="cut")
            return {"at": 2 * MIB, "size": 4 * MIB + 7}

    class Noted:
        async def search(self, fields: dict[str, object]) -> dict[str, object]:
            asked.append(int(str(fields["offset"])))
            return await runs.agent.search(fields)  # type: ignore[arg-type]

    agents: list[object] = [Cut(), Noted()]

    async def next_agent(lost: object) -> HostAgent:
        assert lost is None or lost is not agents[0]
        return agents.pop(0)  # type: ignore[return-value]

    shares: list[float] = []
    search = LogSearch(RUN, "needle", END, backward=True, on_progress=shares.append)
    hit = await over_lost_links(next_agent, search.by)
    assert hit is not None and hit.offset == 0
    assert asked[:3] == [END, 2 * MIB, 2 * MIB] and shares[0] == pytest.approx(0.5, abs=0.01)


async def test_a_host_that_gets_nowhere_is_given_up(runs: Runs) -> None:
    class Stuck:
        async def search(self, _fields: object) -> dict[str, object]:
            return {"at": 5, "size": 10}

    with pytest.raises(CockpitError) as caught:
        await LogSearch(RUN, "x", 5, backward=False, on_progress=lambda _share: None).by(Stuck())  # type: ignore[arg-type]
    assert caught.value.code == "protocol"
