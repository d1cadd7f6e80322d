"""A run that prints without end beside one that prints a line now and then, followed by one client on one agent."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from cockpit.domain.lines import Line
from cockpit.domain.models import RunId
from cockpit.engine.follow import RunFollower
from cockpit.engine.mirror import Mirror
from tests.builders.clock import FakeClock
from tests.engine.test_follow import Listener
from tests.remote.supervised import Runs, poke, shell, until

NOISY, QUIET = RunId("a-1"), RunId("a-2")
MIB = 1 << 20
FLOOD_BYTES = 4 << 30
UNDER_WAY_BYTES = 6 * MIB
"""What a tail's window, the agent's queue, the pipe and our mailbox can hold of the noisy one before a line's turn."""


class Counted(Listener):
    """Counts what came of the noisy run, also between one turn and the next."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0
        self.longest = 0

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None:
        self.taken += len(data)
        self.longest = max(self.longest, len(data))


class Waiting(Listener):
    """Notes how much of the noisy run had come when a line of the quiet one did."""

    def __init__(self, noisy: Counted) -> None:
        super().__init__()
        self._noisy = noisy
        self.noise_at: list[int] = []

    def log_lines(self, lines: list[Line]) -> None:
        self.noise_at += [self._noisy.taken] * len(lines)


def follower(folder: Path, run: RunId) -> RunFollower:
    mirror = Mirror(folder / "runs" / "here" / run / "log", 2 * MIB)
    return RunFollower(run, mirror, FakeClock(lambda: 1.0))


async def test_a_noisy_run_leaves_the_lines_of_a_quiet_one_their_turn(
    runs: Runs, tmp_path: Path
) -> None:
    """Counted in bytes: before a line that is on the host's disk comes what is under way already, and no more."""
    os.mkfifo(runs.home / "go")
    await runs.agent.start(shell(NOISY, "true"))
    await runs.agent.start(shell(QUIET, "exec 5<> $HOME/go; while read x <&5; do echo $x; done"))
    await runs.ended(NOISY)
    os.truncate(
        runs.folder(NOISY) / "log", FLOOD_BYTES
    )  # as fast as it can be read, and takes no room
    quiet_log = runs.folder(QUIET) / "log"
    noisy, quiet = follower(tmp_path, NOISY), follower(tmp_path, QUIET)
    counted = Counted()
    waiting = Waiting(counted)
    noisy.listen(counted)
    quiet.listen(waiting)
    following = [asyncio.ensure_future(one.follow(runs.agent)) for one in (noisy, quiet)]
    try:
        await until(lambda: counted.taken > 8 * MIB, "the flood runs")
        for number in range(1, 6):
            poke(runs.home / "go", "line\n")
            size = 5 * number
            await until(lambda size=size: quiet_log.stat().st_size == size, "it is there")  # type: ignore[misc]
            before = counted.taken
            await until(lambda number=number: len(waiting.noise_at) == number, "it is here")  # type: ignore[misc]
            assert waiting.noise_at[-1] - before <= UNDER_WAY_BYTES
        assert 8 * MIB < counted.taken < FLOOD_BYTES, "the noisy one was not done before"
        assert counted.longest <= 128 * 1024, "bytes of a turn"
    finally:
        for one in following:
            one.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        await noisy.close()
        await quiet.close()
    await runs.agent.stop(QUIET)
