"""Short runs while links are cut, supervisors and clients killed: every code right, every log exact, nothing left.

COCKPIT_SOAK_RUNS=200 makes it long; COCKPIT_SOAK_SEED gives other accidents.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.desk import Done, until
from tests.rented import Rented, rented_box

pytestmark = pytest.mark.sshd

RUNS = int(os.environ.get("COCKPIT_SOAK_RUNS", "10"))
SEED = os.environ.get("COCKPIT_SOAK_SEED", "1")
AT_ONCE = 3
UNAVAILABLE = 69
TRIES = 5
ACCIDENTS = ("none", "link", "supervisor", "client", "supervisor and client")
ENDS = (0, 1, 3, 42, 255, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGSEGV)

JOB = """
import os, random, resource, signal, sys, time
seed, end = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
source = random.Random(seed)
for step in range(12):
    piece = source.randbytes(source.randrange(1, 30000)) + b"\\r%d%%|##" % step + b"\\x1b[31m\\n"
    while piece:
        piece = piece[os.write(1, piece):]
    time.sleep(0.08)
if end < 0:
    os.kill(os.getpid(), -end)
sys.exit(end)
"""


def printed(seed: str) -> bytes:
    """What the job of that seed prints."""
    source = random.Random(seed)
    pieces = []
    for step in range(12):
        noise = source.randbytes(source.randrange(1, 30000))
        pieces.append(noise + b"\r%d%%|##" % step + b"\x1b[31m\n")
    return b"".join(pieces)


@dataclass(frozen=True, slots=True)
class Short:
    """One run of the soak: how it should end, and what befalls it."""

    name: str
    end: int
    accident: str

    @property
    def code(self) -> int:
        return self.end if self.end >= 0 else 128 - self.end


@pytest.fixture
async def rented(tmp_path: Path) -> AsyncIterator[Rented]:
    async with rented_box(tmp_path) as made:
        yield made


def drawn(count: int) -> list[Short]:
    dice = random.Random(SEED)
    return [
        Short(
            f"soak{number}",
            dice.choice(ENDS),
            ACCIDENTS[number] if number < len(ACCIDENTS) else dice.choice(ACCIDENTS),
        )
        for number in range(count)
    ]


async def test_runs_keep_code_and_log_whatever_dies(rented: Rented) -> None:
    job = rented.desk.file("job.py", JOB)
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(short: Short) -> str:
        async with turns:
            try:
                return await judged(rented, short, job)
            except (AssertionError, asyncio.TimeoutError, OSError, ValueError) as error:
                return f"{short}: {type(error).__name__} {error}"

    problems = await asyncio.gather(*(one(short) for short in drawn(RUNS)))
    assert [problem for problem in problems if problem] == []
    listed = await rented.desk.call("ps", "--json")
    assert [event for event in listed.events if event["state"] != "exited"] == []


async def judged(rented: Rented, short: Short, job: str) -> str:
    """What is wrong with one run; nothing is."""
    argv = json.dumps([sys.executable, job, short.name, str(short.end)])
    path = rented.desk.file(f"{short.name}.toml", f'kind = "command"\n[command]\nargv = {argv}\n')
    for _ in range(TRIES):
        process = await rented.desk.start("run", path)
        ending = asyncio.ensure_future(rented.desk.end_of(process))
        await until(lambda: rented.is_on_disk(short.name) or ending.done(), f"{short} is on disk")  # noqa: B023
        if rented.is_on_disk(short.name) or (await ending).code != UNAVAILABLE:
            break  # else another run's accident met it while it logged in: nothing began
    await befall(rented, short, process)
    done = await ending
    (folder,) = rented.runs(short.name)
    if "client" in short.accident:
        done = await asked(rented, "wait", folder.name)
    return await verdict(rented, short, folder, done)


async def asked(rented: Rented, command: str, run: str) -> Done:
    """Another run's accident may meet this command while it logs in: that is 69, and one asks again."""
    for _ in range(TRIES):
        done = await rented.desk.call(command, run)
        if done.code != UNAVAILABLE:
            break
    return done


async def befall(rented: Rented, short: Short, client: asyncio.subprocess.Process) -> None:
    if "link" in short.accident:
        rented.sshd.kill_connections()
    if "supervisor" in short.accident:
        (folder,) = rented.runs(short.name)
        record = json.loads((folder / "sup.json").read_bytes())
        with suppress(ProcessLookupError):
            os.kill(record["pid"], signal.SIGKILL)
    if "client" in short.accident:
        with suppress(ProcessLookupError):
            client.kill()


async def verdict(rented: Rented, short: Short, folder: Path, done: Done) -> str:
    expected = printed(short.name)
    if done.code != short.code:
        return f"{short}: code {done.code}, {done.err[-300:]}"
    if (folder / "log").read_bytes() != expected:
        return f"{short}: the host's log is not what was printed"
    if "client" not in short.accident and _sha(done.out) != _sha(expected):
        return f"{short}: stdout has {len(done.out)} bytes of {len(expected)}"
    again = await asked(rented, "logs", folder.name)
    if _sha(again.out) != _sha(expected):
        return f"{short}: logs gave {len(again.out)} bytes of {len(expected)}"
    mirror = rented.desk.home / "runs" / "box" / folder.name / "log"
    if mirror.exists() and not expected.startswith(mirror.read_bytes()):
        return f"{short}: the mirror differs"
    await until(lambda: not rented.left_of(folder.name), f"nothing is left of {short}")
    return ""


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
