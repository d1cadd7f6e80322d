"""What the tests of the supervisor share: a home, its agent, and proof that nothing outlives a test."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cockpit.domain.models import RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import RunSpec
from cockpit.engine.agent import RunAgent
from tests.agents import SUPERVISOR, PipeTransport

LIMIT_S = 60.0


async def until(holds: Callable[[], object], what: str = "condition") -> None:
    """Wait for something to hold; fail after LIMIT_S."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, f"never: {what}"
        await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text[text.rindex(")") + 2] not in "ZX"


def start_of(pid: int) -> int:
    """When a process started, in ticks: field 22 of its stat."""
    text = Path(f"/proc/{pid}/stat").read_text()
    return int(text[text.rindex(")") + 2 :].split()[19])


def environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


@contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that belongs to no run."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def spec(run: str, *argv: str, **more: Any) -> RunSpec:
    return RunSpec(run=RunId(run), profile="test", kind="command", argv=argv, **more)


def shell(run: str, script: str, **more: Any) -> RunSpec:
    return spec(run, "sh", "-c", script, **more)


@dataclass
class Runs:
    """One host's home, its agent, and what a test wants to know of both."""

    transport: PipeTransport
    agent: RunAgent
    watched: list[int] = field(default_factory=list)
    """Pids that wiped their environment: the test must name them for the last look."""

    @property
    def home(self) -> Path:
        return self.transport.home

    def folder(self, run: str) -> Path:
        (found,) = self.home.glob(f"**/v1/*/{run}")
        return found

    @staticmethod
    def folder_in(root: Path, run: str) -> Path:
        (found,) = root.glob(f"v1/*/{run}")
        return found

    def pid_in(self, name: str) -> int:
        return int((self.home / name).read_text())

    async def pid_of(self, name: str) -> int:
        """A pid that the job writes into a file of its home."""
        path = self.home / name
        await until(lambda: path.exists() and path.read_text().endswith("\n"), name)
        self.watched.append(self.pid_in(name))
        return self.watched[-1]

    async def ended(self, run: str) -> RunRecord:
        return await self.reaches(run, "exited", "lost")

    async def reaches(self, run: str, *states: str) -> RunRecord:
        end = time.monotonic() + LIMIT_S
        while True:
            record = await self.agent.status(RunId(run))
            if record.state in states:
                return record
            assert time.monotonic() < end, record
            await asyncio.sleep(0.02)

    def supervisor_pid(self, run: str) -> int:
        return int(json.loads((self.folder(run) / "sup.json").read_text())["pid"])

    async def new_agent(self) -> RunAgent:
        await self.agent.close()
        self.agent = self.transport.agent()
        await self.agent.open()
        return self.agent


def of_home(home: Path) -> list[int]:
    """Live processes that carry this home in their environment."""
    mark = f"HOME={home}".encode()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if mark in environment_of(pid) and alive(pid)]


def poke(fifo: Path, text: str = "\n") -> None:
    """Write into a fifo that a job holds open; an error, and no wait, when none does."""
    fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, text.encode())
    os.close(fd)


def write_record(path: Path, value: object) -> None:
    """A record of a run's folder, as long as it was."""
    path.write_bytes(json.dumps(value).encode().ljust(path.stat().st_size - 1) + b"\n")


def grow_old(heartbeat: Path, age_s: float) -> None:
    """Put a sign of life into the past."""
    life = json.loads(heartbeat.read_text())
    life["mono_s"] -= age_s
    write_record(heartbeat, life)


def patched(folder: Path, module: str, old: str, new: str) -> str:
    """A Python that runs the supervisor with one line of it changed."""
    remote = folder / "remote"
    shutil.copytree(SUPERVISOR.parent, remote)
    text = (remote / f"{module}.py").read_text()
    assert old in text
    (remote / f"{module}.py").write_text(text.replace(old, new))
    python = folder / "python-patched"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$1" {remote}/supervisor.py "$3"\n')
    python.chmod(0o700)
    return str(python)


async def killed(
    runs: Runs, run: str, script: str = "echo $$ > $HOME/job; exec sleep 600", **more: Any
) -> Path:
    """The folder of a run whose supervisor and job were both killed."""
    await runs.agent.start(shell(run, script, **more))
    job = await runs.pid_of("job")
    record = await runs.agent.status(RunId(run))
    for pid in (runs.supervisor_pid(run), record.job_pid or 0, job):
        os.kill(pid, signal.SIGKILL)
    await runs.ended(run)
    return runs.folder(run)


async def assert_nothing_left(runs: Runs) -> None:
    def left() -> list[int]:
        return of_home(runs.home) + [pid for pid in runs.watched if alive(pid)]

    try:
        await until(lambda: not left(), "no process is left")
    finally:
        for pid in left():
            os.kill(pid, signal.SIGKILL)
