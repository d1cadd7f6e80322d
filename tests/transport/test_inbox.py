from __future__ import annotations

import asyncio

import pytest

from cockpit.transport.inbox import PAUSE_AT, RESUME_AT, Inbox, Tail


class Valve:
    def __init__(self) -> None:
        self.states: list[str] = []
        self.inbox = Inbox(
            lambda: self.states.append("pause"), lambda: self.states.append("resume")
        )


async def test_a_reader_waits_for_bytes_and_for_the_end() -> None:
    inbox = Valve().inbox
    reading = asyncio.ensure_future(inbox.take(10))
    await asyncio.sleep(0)
    inbox.feed(b"hello")
    assert await reading == b"hello"
    inbox.feed(b"last")
    inbox.end()
    inbox.feed(b"too late")
    assert [await inbox.take(10), await inbox.take(10), await inbox.take(10)] == [b"last", b"", b""]


async def test_what_arrived_before_an_error_can_be_read() -> None:
    inbox = Valve().inbox
    inbox.feed(b"abc")
    inbox.end(OSError("gone"))
    assert await inbox.take(2) == b"ab"
    assert await inbox.take(2) == b"c"
    with pytest.raises(OSError, match="gone"):
        await inbox.take(2)


async def test_limits_hold_and_small_pieces_are_joined() -> None:
    inbox = Valve().inbox
    for piece in (b"aa", b"bb", b"c" * 10):
        inbox.feed(piece)
    assert [await inbox.take(5), await inbox.take(5), await inbox.take(9)] == [
        b"aabb",
        b"ccccc",
        b"ccccc",
    ]


async def test_the_wire_is_paused_when_full_and_resumed_when_drained() -> None:
    valve = Valve()
    while not valve.states:
        valve.inbox.feed(b"x" * 65536)
    held = 0
    while valve.states == ["pause"]:
        held += len(await valve.inbox.take(65536))
    assert valve.states == ["pause", "resume"]
    assert PAUSE_AT - RESUME_AT <= held <= PAUSE_AT


async def test_two_readers_at_once_are_a_mistake() -> None:
    inbox = Valve().inbox
    first = asyncio.ensure_future(inbox.take(1))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await inbox.take(1)
    inbox.end()
    assert await first == b""


def test_a_tail_keeps_the_end_and_counts_everything() -> None:
    tail = Tail(limit=8)
    for piece in (b"0123", b"4567", b"89ab", b"c" * 100, b"xyz"):
        tail.feed(piece)
    assert tail.bytes() == b"cccccxyz"
    assert tail.total == 115
