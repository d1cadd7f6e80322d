"""The agent's client against hosts that keep to no rule: bounded, typed, and over at the first nonsense."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_spec import RunSpec, encode_spec
from cockpit.engine.agent import MAX_JUMPS, WINDOW_BYTES, Data, End, RunAgent
from cockpit.engine.agent_frames import HEADER, MAGIC, MAX_FRAME_BYTES, Frame, FrameReader
from cockpit.engine.agent_link import AgentLink, Mailbox
from cockpit.errors import CockpitError, LaunchFailed, LinkLost, NotNow, ProtocolError, RunUnknown
from cockpit.transport.base import ByteChannel, HostTransport

RUN = RunId("a-1")
RECORD = {"run": "a-1", "state": "running", "now_s": 5.0}
ENDED = {**RECORD, "state": "exited", "code": 3, "reason": "exited", "by": "job"}
HELLO = {"protocol": 1, "version": "1", "python": "3.11.7"}
Answer = Callable[[dict[str, Any]], bytes]


def frame(kind: bytes, number: int, payload: bytes | dict[str, object]) -> bytes:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return HEADER.pack(kind, number, len(data)) + data


def data(number: int, offset: int, text: bytes) -> bytes:
    return frame(b"D", number, struct.pack(">Q", offset) + text)


class ScriptedChannel:
    """A host whose every answer the test writes."""

    noise = b""
    signal = None

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, Answer] = {
            "open": lambda asked: frame(b"R", asked["id"], {"host_id": "h-1", "now_s": 5.0}),
            "untail": lambda asked: frame(b"R", asked["id"], {}),
            "acknowledge": lambda asked: b"",
            "tail": lambda asked: frame(b"R", asked["id"], {"record": RECORD}),
        }
        self.taken = 0
        self._bytes = bytearray()
        self._changed = asyncio.Event()
        self._ended = False

    def say(self, data: bytes) -> None:
        self._bytes += data
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    def of(self, op: str) -> list[dict[str, Any]]:
        return [request for request in self.requests if request["op"] == op]

    async def read(self, limit: int = 65536) -> bytes:
        while not self._bytes and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        piece = bytes(self._bytes[:limit])
        del self._bytes[:limit]
        self.taken += len(piece)
        return piece

    async def write(self, data: bytes) -> None:
        for line in data.splitlines():
            request = json.loads(line)
            self.requests.append(request)
            self.say(self.answers[request["op"]](request))

    async def write_eof(self) -> None: ...

    def stderr_tail(self) -> bytes:
        return b"last \x1b[31mwords"

    async def wait(self) -> int | None:
        return None

    async def close(self) -> None:
        self.end()


class Nowhere:
    host = HostName("h")


def agent_on(channel: ScriptedChannel) -> RunAgent:
    async def opened(_transport: HostTransport, _python: str) -> ByteChannel:
        return channel

    return RunAgent(cast(HostTransport, Nowhere()), open_agent=opened)


@pytest.fixture
async def channel() -> ScriptedChannel:
    channel = ScriptedChannel()
    channel.say(frame(b"H", MAGIC, HELLO))
    return channel


@pytest.fixture
async def agent(channel: ScriptedChannel) -> AsyncIterator[RunAgent]:
    agent = agent_on(channel)
    await agent.open()
    yield agent
    await agent.close()


def spec(**more: Any) -> RunSpec:
    return RunSpec(run=RUN, profile="p", kind="command", argv=("true",), **more)


@pytest.mark.parametrize(
    "first",
    [
        b"Welcome to Ubuntu 22.04\r\n",
        frame(b"H", 7, HELLO),
        frame(b"H", MAGIC, {**HELLO, "protocol": 2}),
        frame(b"H", MAGIC, b"[" * 100_000),
        frame(b"H", MAGIC, b"[1]"),
        frame(b"R", 1, {}),
        HEADER.pack(b"H", MAGIC, MAX_FRAME_BYTES + 1),
        HEADER.pack(b"?", MAGIC, 2) + b"{}",
    ],
)
async def test_whatever_is_not_our_agent_is_refused(first: bytes) -> None:
    channel = ScriptedChannel()
    channel.say(first)
    with pytest.raises(ProtocolError):
        await agent_on(channel).open()


async def test_an_agent_that_ends_at_once_leaves_its_last_words() -> None:
    channel = ScriptedChannel()
    channel.end()
    with pytest.raises(LinkLost) as lost:
        await agent_on(channel).open()
    assert "words" in str(lost.value.facts["stderr"]) and "\x1b" not in str(lost.value)


def test_frames_come_out_whole_however_they_are_cut() -> None:
    sent = b"".join(data(n, n, b"x" * n) for n in range(50))
    for size in (1, 7, 1000, len(sent)):
        reader = FrameReader()
        got: list[Frame] = []
        for start in range(0, len(sent), size):
            got.extend(reader.feed(sent[start : start + size]))
        assert [found.request for found in got] == list(range(50))


async def test_refusals_become_errors_of_ours(agent: RunAgent, channel: ScriptedChannel) -> None:
    def refusing(code: object, **facts: object) -> Answer:
        return lambda asked: frame(b"R", asked["id"], {"error": code, "facts": facts})

    channel.answers["start"] = refusing("disk_full", path="/\x1b[2J", free_mib=3, why="odd")
    with pytest.raises(LaunchFailed) as failed:
        await agent.start(spec())
    facts = failed.value.facts
    assert (facts["why"], facts["free_mib"], facts["detail"]) == ("disk_full", 3, "odd")
    assert "\x1b" not in str(facts["path"])
    channel.answers["start"] = refusing("no_free_gpu", holders="GPU 0: b-1")
    with pytest.raises(NotNow):
        await agent.start(spec())
    channel.answers["status"] = refusing("unknown_run")
    with pytest.raises(RunUnknown):
        await agent.status(RUN)
    channel.answers["stop"] = refusing(["x"], **{"a b": 1, "host": "liar"})
    with pytest.raises(CockpitError) as refused:
        await agent.stop(RUN)
    assert refused.value.facts["why"] == "unknown" and refused.value.facts["host"] == "h"


async def test_secrets_travel_beside_the_spec_and_are_in_no_text_of_ours(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    job = spec(secrets={"TOKEN": "hunter2"}, env={"A": "1"})
    assert "hunter2" not in repr(job) and "hunter2" not in json.dumps(encode_spec(job))
    channel.answers["start"] = lambda asked: frame(b"R", asked["id"], {"record": RECORD})
    await agent.start(job)
    (asked,) = channel.of("start")
    assert asked["secrets"] == {"TOKEN": "hunter2"}
    assert asked["spec"]["secret_names"] == ["TOKEN"]


@pytest.mark.parametrize(
    "record", [None, 5, {}, {**RECORD, "run": "../x"}, {**RECORD, "state": "dancing"}]
)
async def test_a_record_of_no_sense_is_an_error_alone_and_left_out_of_a_list(
    agent: RunAgent, channel: ScriptedChannel, record: object
) -> None:
    channel.answers["status"] = lambda asked: frame(b"R", asked["id"], {"record": record})
    with pytest.raises(ProtocolError):
        await agent.status(RUN)
    runs = [record, RECORD, RECORD]
    channel.answers["list"] = lambda asked: frame(b"R", asked["id"], {"runs": runs, "now_s": 9.0})
    assert [found.run for found in await agent.list()] == ["a-1"]


async def test_an_answer_about_another_run_is_refused(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    other: dict[str, object] = {"record": {**RECORD, "run": "b-1"}}
    for op in ("status", "stop", "start"):
        channel.answers[op] = lambda asked: frame(b"R", asked["id"], other)
    for asking in (agent.status(RUN), agent.stop(RUN), agent.start(spec())):
        with pytest.raises(ProtocolError):
            await asking


def telling(**told: object) -> Answer:
    return lambda asked: frame(b"R", asked["id"], {"now_s": 9.0, **told})


async def test_a_list_tells_what_changed(agent: RunAgent, channel: ScriptedChannel) -> None:
    older, newer = {**RECORD, "claimed_s": 1.0}, {**RECORD, "run": "b-1", "claimed_s": 2.0}
    channel.answers["list"] = telling(runs=[older, newer])
    assert [record.run for record in await agent.list()] == ["b-1", "a-1"]
    channel.answers["list"] = telling(runs=[{**older, "state": "exited"}], gone=["b-1", 7, [], {}])
    (record,) = await agent.list()
    assert (record.run, record.state, record.now_s) == ("a-1", "exited", 9.0)
    assert [asked["fresh"] for asked in channel.of("list")] == [True, False]


async def test_a_list_that_was_cut_short_is_asked_for_anew(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    channel.answers["list"] = telling(runs=[RECORD])
    await agent.list()
    channel.answers["list"] = lambda asked: b""
    cut = asyncio.ensure_future(agent.list())
    while len(channel.of("list")) < 2:
        await asyncio.sleep(0)
    cut.cancel()
    channel.answers["list"] = telling(runs=[])
    assert await agent.list() == []
    assert [asked["fresh"] for asked in channel.of("list")] == [True, False, True]


async def test_a_list_without_end_is_cut_off(agent: RunAgent, channel: ScriptedChannel) -> None:
    channel.answers["list"] = telling(runs=[RECORD], more=True)
    assert len(await agent.list()) == 1 and len(channel.of("list")) == 100
    many = iter(range(1 << 30))
    channel.answers["list"] = lambda asked: telling(
        runs=[{**RECORD, "run": f"a-{next(many)}"} for _record in range(1000)], more=True
    )(asked)
    with pytest.raises(ProtocolError):
        await agent.list()


async def test_a_tail_gives_what_came_before_the_link_was_lost(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    channel.answers["tail"] = lambda asked: (
        frame(b"R", asked["id"], {"record": RECORD}) + data(asked["id"], 5, b"abc")
    )
    frames = agent.tail(RUN, 5)
    assert await anext(frames) == Data(5, b"abc")
    channel.end()
    with pytest.raises(LinkLost):
        await anext(frames)
    with pytest.raises(LinkLost):
        await agent.status(RUN)
    assert (await agent.closed()).code == "link_lost"


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda number: data(number, 9, b"gap"),
        lambda number: data(number, 0, b"again"),
        lambda number: frame(b"D", number, b"\0" * 7),
        lambda number: frame(b"G", number, struct.pack(">QQB", 3, 3, 0)),
        lambda number: frame(b"G", number, b"short"),
        lambda number: frame(b"E", number, b"short"),
        lambda number: frame(b"X", number, struct.pack(">Q", 3) + b"{}"),
        lambda number: frame(b"X", number, struct.pack(">Q", 4) + json.dumps(ENDED).encode()),
        lambda number: frame(b"B", number, b"what"),
        lambda number: frame(b"G", number, struct.pack(">QQB", 3, 1 << 62, 0)),
        lambda number: frame(b"G", number, struct.pack(">QQB", 3, (1 << 64) - 1, 0)),
        lambda number: frame(b"E", number, struct.pack(">Q", 1 << 40)),
        lambda number: frame(
            b"X", number, struct.pack(">Q", 3) + json.dumps({**ENDED, "run": "b-1"}).encode()
        ),
    ],
)
async def test_a_gap_an_overlap_or_a_broken_frame_ends_a_tail(
    agent: RunAgent, channel: ScriptedChannel, nonsense: Callable[[int], bytes]
) -> None:
    channel.answers["tail"] = lambda asked: (
        frame(b"R", asked["id"], {"record": RECORD})
        + data(asked["id"], 0, b"abc")
        + nonsense(asked["id"])
    )
    frames = agent.tail(RUN)
    assert await anext(frames) == Data(0, b"abc")
    with pytest.raises(ProtocolError):
        await anext(frames)


async def test_a_tail_acknowledges_what_it_took_and_says_when_it_stops(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    piece, pieces = 65536, WINDOW_BYTES // 65536
    channel.answers["tail"] = lambda asked: (
        frame(b"R", asked["id"], {"record": RECORD})
        + b"".join(data(asked["id"], n * piece, b"x" * piece) for n in range(pieces))
    )
    async with aclosing(agent.tail(RUN)) as frames:
        for _piece in range(pieces):
            await anext(frames)
            if channel.of("acknowledge"):
                break
    acknowledged = sum(asked["bytes"] for asked in channel.of("acknowledge"))
    assert acknowledged == WINDOW_BYTES // 4
    (stopped,) = channel.of("untail")
    assert stopped["tail"] == channel.of("tail")[0]["id"]


async def test_a_host_that_ignores_the_window_is_cut_off(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    """Memory stays bounded: the link ends long before all of it was read."""
    flood = 64 << 20

    def pour(asked: dict[str, Any]) -> bytes:
        number, piece = asked["id"], b"x" * 500_000
        return frame(b"R", number, {"record": RECORD}) + b"".join(
            data(number, offset, piece) for offset in range(0, flood, len(piece))
        )

    channel.answers["tail"] = pour
    async with aclosing(agent.tail(RUN)) as frames:
        await anext(frames)
        assert (await agent.closed()).code == "protocol"
    assert channel.taken < 4 * WINDOW_BYTES


async def test_a_tail_of_nothing_but_jumps_is_cut_off(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    channel.answers["tail"] = lambda asked: (
        frame(b"R", asked["id"], {"record": RECORD})
        + frame(b"E", asked["id"], struct.pack(">Q", 0)) * (MAX_JUMPS + 1)
    )
    taken = 0
    with pytest.raises(ProtocolError):
        async for _frame in agent.tail(RUN):
            taken += 1
    assert taken == MAX_JUMPS


async def test_a_flood_of_small_frames_is_read_slowly(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    """They cost the host little and us much: other hosts must not notice."""
    flood = frame(b"R", 999, b"") * 500_000
    channel.say(flood)
    for _turn in range(200):
        await asyncio.sleep(0)
    assert channel.taken < len(flood) // 2


async def test_empty_frames_cannot_pile_up_either() -> None:
    box = Mailbox(1, 10_000)
    frames = list(FrameReader().feed(frame(b"E", 1, b"") * 1000))
    with pytest.raises(ProtocolError):
        for empty in frames:
            box.put(empty)


async def test_answers_to_what_nobody_asked_are_dropped(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    channel.say(frame(b"R", 999, {}) + data(998, 0, b"x") * 1000)
    channel.answers["disk"] = lambda asked: frame(
        b"R", asked["id"], {"free_mib": 7, "total_mib": "x"}
    )
    space = await agent.disk("/")
    assert (space.free_mib, space.total_mib, space.inodes_free_pct) == (7, None, None)


async def test_a_silent_agent_is_a_lost_link(channel: ScriptedChannel) -> None:
    channel.answers["status"] = lambda asked: b""
    link = AgentLink(channel, HostName("h"))
    await link.hello()
    with pytest.raises(LinkLost) as lost:
        await link.ask("status", {}, limit_s=0.01)
    assert lost.value.facts["why"] == "no answer"
    await link.close()


async def test_two_tails_and_a_question_do_not_mix(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    def tail(asked: dict[str, Any]) -> bytes:
        text = asked["run"].encode()
        end = struct.pack(">Q", len(text)) + json.dumps({**ENDED, "run": asked["run"]}).encode()
        number = asked["id"]
        return (
            frame(b"R", number, {"record": RECORD})
            + data(number, 0, text)
            + frame(b"X", number, end)
        )

    async def text_of(run: str) -> bytes:
        frames = [found async for found in agent.tail(RunId(run))]
        assert isinstance(frames[-1], End) and frames[-1].record.code == 3
        return b"".join(found.data for found in frames if isinstance(found, Data))

    channel.answers["tail"] = tail
    first, second = await asyncio.gather(text_of("a-1"), text_of("b-2"))
    assert (first, second) == (b"a-1", b"b-2")


async def test_a_piece_longer_than_was_asked_for_is_refused(
    agent: RunAgent, channel: ScriptedChannel
) -> None:
    channel.answers["read"] = lambda asked: frame(
        b"B", asked["id"], struct.pack(">QQ", 0, 100) + b"x" * 11
    )
    with pytest.raises(ProtocolError):
        await agent.read(RUN, 0, 10)
    assert (await agent.read(RUN, 0, 11)).size == 100
