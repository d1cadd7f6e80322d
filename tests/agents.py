"""An on-host agent over plain pipes: the real program under a Python of one's choice, without SSH."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from cockpit.domain.models import HostName
from cockpit.engine.agent import RunAgent
from cockpit.errors import LinkLost
from cockpit.transport.base import ByteChannel, HostTransport

SUPERVISOR = Path(__file__).parents[1] / "cockpit" / "remote" / "supervisor.py"


class PipeChannel:
    """A ByteChannel on a child process."""

    noise = b""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self.received = 0
        self._stdin, self._stdout = process.stdin, process.stdout

    async def read(self, limit: int = 65536) -> bytes:
        data = await self._stdout.read(limit)
        self.received += len(data)
        return data

    async def write(self, data: bytes) -> None:
        try:
            self._stdin.write(data)
            await self._stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise LinkLost(host="here", why="pipe") from error

    async def write_eof(self) -> None:
        self._stdin.write_eof()

    def stderr_tail(self) -> bytes:
        return b""

    @property
    def signal(self) -> str | None:
        return None

    async def wait(self) -> int | None:
        return await self.process.wait()

    async def close(self) -> None:
        self._stdin.close()
        await self.process.wait()
        while await self._stdout.read(65536):
            pass  # a pipe with bytes in it would keep its transport open


class PipeTransport:
    """As much of a HostTransport as an agent needs that starts its program by itself."""

    host = HostName("here")

    def __init__(
        self, home: Path, python: str = sys.executable, env: Mapping[str, str] = {}
    ) -> None:
        self.home = home
        self.python = python
        self.env = {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "PATH": os.environ["PATH"],
            **env,
        }
        self.channels: list[PipeChannel] = []

    async def open_agent(self, _transport: object, _python: str) -> ByteChannel:
        process = await asyncio.create_subprocess_exec(
            self.python, "-sSE", str(SUPERVISOR), "serve",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=self.env,
        )  # fmt: skip
        channel = PipeChannel(process)
        self.channels.append(channel)
        return channel

    def agent(self, run_root: str | None = None) -> RunAgent:
        return RunAgent(cast(HostTransport, self), run_root=run_root, open_agent=self.open_agent)

    def kill(self) -> None:
        """What happens to an agent whose link is cut."""
        for channel in self.channels:
            if channel.process.returncode is None:
                channel.process.kill()
