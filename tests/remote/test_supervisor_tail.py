"""Following a log: every byte once, whatever it holds and whoever is cut off; and the long logs."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.engine.agent import Data, End, Hole, TailFrame, Truncated
from cockpit.errors import LinkLost, RunError, RunUnknown
from tests.remote.supervised import Runs, poke, shell, spec, until

RUN = RunId("a-1")
MIB = 1 << 20

NOISE = """
import os, random, sys
dice = random.Random(int(sys.argv[1]))
left = int(sys.argv[2])
out = sys.stdout.buffer
while left > 0:
    kind = dice.randrange(6)
    if kind == 0:
        piece = b"".join(b"\\r%3d%%|%s" % (n, b"\\xe2\\x96\\x88" * (n // 4)) for n in range(100))
    elif kind == 1:
        piece = b"\\x1b[31mred\\x1b[0m \\x1b[A\\x1b[K\\x1b]0;title\\x07\\n" * 50
    elif kind == 2:
        piece = "\\u8bad\\u7ec3\\u635f\\u5931 \\U0001f600\\n".encode() * 99
    elif kind == 3:
        piece = bytes([dice.randrange(256)]) * (2 << 20 if dice.random() < 0.1 else 5000) + b"\\n"
    elif kind == 4:
        piece = dice.getrandbits(8 * 70000).to_bytes(70000, "big")
    else:
        piece = b"\\0" * dice.randrange(1, 9000)
    out.write(piece)
    out.flush()
    left -= len(piece)
"""


async def everything(frames: object) -> bytes:
    taken = b""
    async for frame in frames:  # type: ignore[attr-defined]
        taken += frame.data if isinstance(frame, Data) else b""
    return taken


@pytest.mark.parametrize("seed", range(3))
async def test_no_byte_is_lost_or_repeated_over_cut_links(runs: Runs, seed: int) -> None:
    dice = random.Random(seed)
    await runs.agent.start(spec(RUN, sys.executable, "-c", NOISE, str(seed), str(8 * MIB)))
    mirror, cuts, ended = bytearray(), 0, False
    while not ended:
        cut_at = len(mirror) + dice.randrange(1, MIB) if cuts < 8 else 1 << 40
        try:
            async for frame in runs.agent.tail(RUN, len(mirror)):
                if isinstance(frame, Data):
                    assert frame.offset == len(mirror)
                    mirror += frame.data
                ended = isinstance(frame, End)
                if len(mirror) >= cut_at:
                    runs.transport.kill()
                    cut_at = 1 << 40
        except LinkLost:
            cuts += 1
            await runs.new_agent()
    log = (runs.folder(RUN) / "log").read_bytes()
    assert cuts >= 3 and len(log) >= 8 * MIB
    assert hashlib.sha256(mirror).digest() == hashlib.sha256(log).digest()


async def test_the_end_comes_after_the_last_byte_and_says_how(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "sleep 0.2; printf 'no newline'; exit 4"))
    frames = [frame async for frame in runs.agent.tail(RUN)]
    assert frames[-2] == Data(0, b"no newline")
    assert isinstance(frames[-1], End)
    assert (frames[-1].offset, frames[-1].record.code) == (10, 4)


async def test_the_end_is_told_when_the_supervisor_is_dead(runs: Runs) -> None:
    os.mkfifo(runs.home / "go")
    await runs.agent.start(
        shell(RUN, "exec 5<> $HOME/go; echo $$ > $HOME/job; read x <&5; echo last; exit 4")
    )
    await runs.pid_of("job")
    os.kill(runs.supervisor_pid(RUN), 9)
    waiting = asyncio.ensure_future(everything(runs.agent.tail(RUN)))
    poke(runs.home / "go")
    assert await waiting == b"last\n"


async def test_a_line_arrives_as_it_is_written(runs: Runs) -> None:
    os.mkfifo(runs.home / "go")
    await runs.agent.start(
        shell(RUN, "exec 5<> $HOME/go; echo $$ > $HOME/job; while read x <&5; do echo $x; done")
    )
    await runs.pid_of("job")
    async with aclosing(runs.agent.tail(RUN)) as frames:
        for word in ("one", "two", "three"):
            poke(runs.home / "go", word + "\n")
            frame = await anext(frames)
            assert isinstance(frame, Data) and frame.data == word.encode() + b"\n"
    await runs.agent.stop(RUN)


async def test_a_tail_nobody_reads_holds_up_no_other(runs: Runs) -> None:
    noisy = "head -c 20000000 /dev/zero; sleep 600"
    await runs.agent.start(shell(RUN, noisy))
    await runs.agent.start(shell("a-2", "echo hello; exit 3"))
    async with aclosing(runs.agent.tail(RUN)) as unread:
        await anext(unread)
        assert await everything(runs.agent.tail(RunId("a-2"))) == b"hello\n"
        assert (await runs.agent.status(RunId("a-2"))).code == 3
    outcome = await runs.agent.stop(RUN)
    assert outcome.left == ()


async def test_many_tails_at_once(runs: Runs) -> None:
    for number in range(8):
        await runs.agent.start(shell(f"a-{number}", f"seq {number} 20000"))
    texts = await asyncio.gather(
        *(everything(runs.agent.tail(RunId(f"a-{number}"))) for number in range(8))
    )
    for number, text in enumerate(texts):
        assert text == b"".join(b"%d\n" % line for line in range(number, 20001))


async def test_a_flood_leaves_a_quiet_log_its_turn(runs: Runs) -> None:
    """Counted in bytes: before a line that is on the disk comes what is under way already, and no more."""
    os.mkfifo(runs.home / "go")
    await runs.agent.start(shell(RUN, "head -c 20000000 /dev/zero"))
    await runs.agent.start(shell("a-2", "exec 5<> $HOME/go; while read x <&5; do echo $x; done"))
    await runs.ended(RUN)
    quiet, flood = runs.folder("a-2") / "log", [0]

    async def drink() -> None:
        """The same log again and again, as fast as it comes."""
        while True:
            async with aclosing(runs.agent.tail(RUN)) as frames:
                async for frame in frames:
                    flood.append(len(frame.data) if isinstance(frame, Data) else 0)

    drinking = asyncio.ensure_future(drink())
    try:
        async with aclosing(runs.agent.tail(RunId("a-2"))) as frames:
            for number in range(1, 6):
                poke(runs.home / "go", "line\n")
                size = 5 * number
                await until(lambda size=size: quiet.stat().st_size == size, "it is there")  # type: ignore[misc]
                before = len(flood)
                frame = await anext(frames)
                assert isinstance(frame, Data) and frame.data == b"line\n"
                assert sum(flood[before:]) <= 6 * MIB
        assert sum(flood) > 0
    finally:
        drinking.cancel()
        await asyncio.gather(drinking, return_exceptions=True)
    await runs.agent.stop(RunId("a-2"))


async def test_a_budget_slows_a_tail_down(runs: Runs) -> None:
    """Counted, not timed: of what is at hand a tail with a budget sends its allowance and no more."""
    await runs.agent.start(shell(RUN, "head -c 3000000 /dev/zero"))
    await runs.ended(RUN)
    async with aclosing(runs.agent.tail(RUN, budget_bytes_s=50_000)) as slow:
        first = await anext(slow)
        assert isinstance(first, Data) and len(first.data) <= 50_000
        fast = await everything(runs.agent.tail(RUN))
        assert len(fast) == 3_000_000
    assert len(await everything(runs.agent.tail(RUN, 2_990_000, budget_bytes_s=500_000))) == 10_000


async def test_who_wants_to_keep_up_skips(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "head -c 3000000 /dev/zero; echo end"))
    await runs.ended(RUN)
    frames = [frame async for frame in runs.agent.tail(RUN, keep_up_bytes=100_000)]
    hole = frames[0]
    assert isinstance(hole, Hole)
    assert (hole.start, hole.end, hole.why) == (0, 3_000_004 - 50_000, "skipped")
    assert sum(len(frame.data) for frame in frames if isinstance(frame, Data)) == 50_000


async def test_a_log_that_its_job_truncates_begins_again(runs: Runs) -> None:
    os.mkfifo(runs.home / "go")
    script = 'exec 5<> $HOME/go; echo first; read x <&5; : > "$COCKPIT_DIR/log"; echo 2'
    await runs.agent.start(shell(RUN, script))
    frames: list[TailFrame] = []
    async for frame in runs.agent.tail(RUN):
        frames.append(frame)
        if frame == Data(0, b"first\n"):
            poke(runs.home / "go")
    assert frames[:-1] == [Data(0, b"first\n"), Truncated(0), Data(0, b"2\n")]


async def test_the_middle_of_a_long_log_is_given_back(runs: Runs) -> None:
    """Offsets stay, the start and the end are kept, and no zero of the hole is taken for text."""
    script = "exec 5<> $HOME/go; yes 0123456789abcde | head -c 12000000; read x <&5"
    os.mkfifo(runs.home / "go")
    await runs.agent.start(shell(RUN, script, log_max_mib=1))
    log = runs.folder(RUN) / "log"
    await until(lambda: log.stat().st_size == 12_000_000)
    await until(lambda: log.stat().st_blocks * 512 < 2 * MIB, "the middle is given back")
    poke(runs.home / "go")
    assert log.stat().st_size == 12_000_000
    record = await runs.ended(RUN)
    assert record.log_hole is not None
    frames = [frame async for frame in runs.agent.tail(RUN)]
    holes = [frame for frame in frames if isinstance(frame, Hole)]
    assert holes == [Hole(*record.log_hole, "dropped")]
    text = b"".join(frame.data for frame in frames if isinstance(frame, Data))
    assert b"\0" not in text and MIB <= len(text) < 2 * MIB
    within = [frame async for frame in runs.agent.tail(RUN, record.log_hole[0] + 5)]
    assert within[0] == Hole(record.log_hole[0] + 5, record.log_hole[1], "dropped")


async def test_a_range_of_a_log(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "printf 0123456789"))
    await runs.ended(RUN)
    piece = await runs.agent.read(RUN, 3, 4)
    assert (piece.offset, piece.data, piece.size) == (3, b"3456", 10)
    assert (await runs.agent.read(RUN, 50, 4)).data == b""
    for unknown in (RunId("a-2"), RunId("../a-1")):
        with pytest.raises(RunUnknown):
            await runs.agent.read(unknown, 0, 1)
        with pytest.raises(RunUnknown):
            await anext(runs.agent.tail(unknown))


async def test_a_job_that_writes_on_after_its_end(runs: Runs) -> None:
    """What comes within the moment that stragglers have is still part of the tail."""
    await runs.agent.start(shell(RUN, "(sleep 0.3; echo late) & echo early; exit 0"))
    assert await everything(runs.agent.tail(RUN)) == b"early\nlate\n"


def test_the_noise_is_what_it_should_be(tmp_path: Path) -> None:
    import subprocess

    made = subprocess.run(
        [sys.executable, "-c", NOISE, "0", str(8 * MIB)], capture_output=True, check=True
    ).stdout
    assert max(map(len, made.split(b"\n"))) > 2 * MIB
    for piece in (b"\r", b"\x1b[", "训练".encode(), b"\0", b"\xff"):
        assert piece in made


async def test_tails_and_stops_that_fail_leave_no_file_open(runs: Runs) -> None:
    await runs.agent.start(shell(RUN, "true"))
    await runs.ended(RUN)
    (runs.folder(RUN) / "exit.shim").unlink()
    held = f"/proc/{runs.transport.channels[-1].process.pid}/fd"
    before = len(os.listdir(held))
    for _try in range(5):
        with pytest.raises(RunError):
            await anext(runs.agent.tail(RUN))
        await runs.agent.stop(RUN)
        await runs.agent.list()
    assert len(os.listdir(held)) == before
