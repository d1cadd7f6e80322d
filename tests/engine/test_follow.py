"""A log followed over lost links: no byte lost or repeated, in the mirror and for who listens."""

from __future__ import annotations

import hashlib
import random
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from cockpit.config.paths import Home
from cockpit.domain.incidents import Finding
from cockpit.domain.lines import Line
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import Progress
from cockpit.engine.agent_frames import Data, End, Hole, TailFrame, Truncated
from cockpit.engine.follow import RunFollower
from cockpit.engine.mirror import KEPT_COPIES, Mirror, mirror_path
from cockpit.errors import CockpitError, LinkLost
from tests.builders.clock import FakeClock

RUN = RunId("qwen-1")
END = RunRecord(run=RUN, state="exited", now_s=1.0, code=0)


class FakeAgent:
    """Sends the log from any offset in odd pieces, and loses the link after so many bytes."""

    def __init__(self, log: bytes, *, lost_after: int | None = None, seed: int = 0) -> None:
        self._log = log
        self._lost_after = lost_after
        self._random = random.Random(seed)

    async def tail(
        self, run: RunId, offset: int, *, keep_up_bytes: int | None = None
    ) -> AsyncIterator[TailFrame]:
        sent = 0
        while offset < len(self._log):
            if self._lost_after is not None and sent >= self._lost_after:
                raise LinkLost(host="a")
            size = self._random.randint(1, 5000)
            back = min(offset, self._random.randint(0, 40))
            piece = self._log[offset - back : offset + size]
            yield Data(offset - back, piece)
            offset += size
            sent += size
        yield End(len(self._log), END)


class Listener:
    def __init__(self) -> None:
        self.data = b""
        self.lines: list[Line] = []
        self.findings: list[Finding] = []
        self.gaps = False
        self.gap_list: list[tuple[int, int]] = []
        self.restarts = 0

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None:
        assert self.gaps or offset == len(self.data), "pieces come in order, without gaps"
        self.data += data

    def log_lines(self, lines: list[Line]) -> None:
        self.lines += lines

    def finding(self, finding: Finding) -> None:
        self.findings.append(finding)

    def log_gap(self, start: int, end: int, why: str) -> None:
        self.gap_list.append((start, end))

    def log_restarts(self) -> None:
        self.restarts += 1

    def progress(self, progress: Progress) -> None: ...

    def failed(self, error: CockpitError) -> None: ...


def follower(home: Path, masker: Masker | None = None) -> tuple[RunFollower, Listener]:
    mirror = Mirror(mirror_path(Home(home), HostName("a"), RUN))

    async def find_masker() -> Masker:
        return masker or Masker()

    made = RunFollower(RUN, mirror, FakeClock(lambda: 1.0), find_masker)
    listener = Listener()
    made.listen(listener)
    return made, listener


def noisy_log(seed: int, size: int = 400_000) -> bytes:
    source = random.Random(seed)
    pieces: list[Callable[[], bytes]] = [
        lambda: b"step %d loss 1.0\n" % source.randint(0, 9999),
        lambda: b"\r 41%|####      | 812/2000",
        lambda: b"\x1b[31mred\x1b[0m \xe6\x98\xbe\xe5\xad\x98\n",
        lambda: source.randbytes(300),
        lambda: b"x" * 30_000,
    ]
    log = b""
    while len(log) < size:
        log += source.choice(pieces)()
    return log


@pytest.mark.parametrize("seed", range(4))
async def test_ten_lost_links_lose_and_repeat_no_byte(tmp_path: Path, seed: int) -> None:
    log = noisy_log(seed)
    followed, listener = follower(tmp_path)
    for cut in range(10):
        with pytest.raises(LinkLost):
            await followed.follow(FakeAgent(log, lost_after=20_000, seed=seed * 100 + cut))
    assert await followed.follow(FakeAgent(log, seed=seed)) == END
    assert followed.ended.is_set()
    mirrored = followed.mirror.path.read_bytes()
    assert hashlib.sha256(mirrored).digest() == hashlib.sha256(log).digest()
    assert listener.data == log


async def test_a_new_client_goes_on_where_the_mirror_ends(tmp_path: Path) -> None:
    log = b"".join(b"line %d\n" % number for number in range(5000))
    first, _ = follower(tmp_path)
    with pytest.raises(LinkLost):
        await first.follow(FakeAgent(log, lost_after=9000))
    await first.close()
    second, listener = follower(tmp_path)
    await second.follow(FakeAgent(log))
    assert second.mirror.path.read_bytes() == log
    assert [line.number for line in listener.lines] == list(range(1, 5001))
    assert second.window.total_lines == 5000


async def test_the_mirror_is_private(tmp_path: Path) -> None:
    followed, _ = follower(tmp_path / "home")
    assert stat.S_IMODE(followed.mirror.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(followed.mirror.path.parent.stat().st_mode) == 0o700


async def test_a_secret_stays_in_the_mirror_and_is_shown_nowhere(tmp_path: Path) -> None:
    log = b"token hf_abcdefGHIJ here\nnext\n"
    followed, listener = follower(tmp_path, Masker(["hf_abcdefGHIJ"]))
    await followed.follow(FakeAgent(log))
    assert followed.mirror.path.read_bytes() == log
    shown = "".join(line.text for line in listener.lines)
    assert "hf_abcdefGHIJ" not in shown
    assert [line.offset for line in listener.lines] == [0, log.index(b"next")]


async def test_dropped_bytes_leave_a_hole_and_offsets_stay_true(tmp_path: Path) -> None:
    class Dropping:
        async def tail(
            self, run: RunId, offset: int, *, keep_up_bytes: int | None = None
        ) -> AsyncIterator[TailFrame]:
            yield Data(0, b"one\n")
            yield Hole(4, 1000, "dropped")
            yield Data(1000, b"two\n")
            yield End(1004, END)

    followed, listener = follower(tmp_path)
    listener.gaps = True
    await followed.follow(Dropping())
    assert followed.mirror.path.read_bytes() == b"one\n" + b"\0" * 996 + b"two\n"
    rows = [followed.window.line(index) for index in range(len(followed.window))]
    assert [(row.offset, row.text) for row in (rows[0], rows[2])] == [(0, "one"), (1000, "two")]
    assert "996 B" in rows[1].text
    assert listener.gap_list == [(4, 1000)]
    await followed.close()
    again, replayed = follower(tmp_path)
    replayed.gaps = True
    await again.prepare()
    assert replayed.data == b"one\ntwo\n" and replayed.gap_list == [(4, 1000)]


async def test_a_log_that_its_job_truncated_starts_over_and_keeps_the_old_copy(
    tmp_path: Path,
) -> None:
    class Truncating:
        async def tail(
            self, run: RunId, offset: int, *, keep_up_bytes: int | None = None
        ) -> AsyncIterator[TailFrame]:
            yield Data(0, b"old old old\n")
            yield Truncated(0)
            yield Data(0, b"new\n")
            yield End(4, END)

    followed, listener = follower(tmp_path)
    listener.gaps = True
    await followed.follow(Truncating())
    assert followed.mirror.path.read_bytes() == b"new\n"
    assert followed.mirror.path.with_name("log.1").read_bytes() == b"old old old\n"
    assert listener.restarts == 1


def test_copies_and_gaps_of_a_log_are_bounded(tmp_path: Path) -> None:
    """A host can state as many as it likes."""
    mirror = Mirror(tmp_path / "a" / "b" / "log")
    for number in range(3 * KEPT_COPIES):
        mirror.write(0, b"%d" % number)
        mirror.start_over()
        mirror.start_over()
    copies = sorted(path.name for path in mirror.path.parent.iterdir())
    assert copies == ["log", *(f"log.{number}" for number in range(1, KEPT_COPIES + 1))]
    assert mirror.path.with_name("log.1").read_bytes() == b"0"
    assert mirror.path.with_name(f"log.{KEPT_COPIES}").read_bytes() == b"23"
    for end in range(1, 100):
        mirror.skip_to(end)
    assert mirror.gaps == ((0, 99),)
    mirror.close()


async def test_an_oom_in_the_log_is_found_and_its_line_marked(tmp_path: Path) -> None:
    oom = (
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total"
        b" capacity of 23.64 GiB of which 808.00 MiB is free. Process 1 has 22.80 GiB memory in use."
        b" Of the allocated memory 21.00 GiB is allocated by PyTorch, and 1.20 GiB is reserved by"
        b" PyTorch but unallocated.\n"
    )
    followed, listener = follower(tmp_path)
    await followed.follow(FakeAgent(b"start\n" + oom))
    assert [finding.family for finding in listener.findings] == ["gpu_oom"]
    assert followed.window.line(1).severity == "fatal"
