"""remote/runs.sh over plain pipes, by a shell of one's choice and with no Python in its PATH."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import cast

from cockpit.domain.models import HostName
from cockpit.engine.sh_agent import ShAgent
from cockpit.transport.base import ByteChannel, HostTransport
from tests.agents import PipeChannel

SHELLS: Mapping[str, Sequence[str]] = {
    name: argv
    for name, argv in {
        "dash": ("dash",),
        "bash": ("bash", "--posix"),
        "busybox": ("busybox", "sh"),
    }.items()
    if shutil.which(argv[0])
}
TOOLS = (
    "sh", "basename", "cat", "chmod", "cut", "date", "dd", "df", "env", "head", "id", "kill", "mkdir", "mv", "printf",
    "rm", "sha256sum", "sleep", "sort", "stat", "tail", "test", "timeout", "touch", "tr", "true", "uname", "wc",
    "yes", "seq", "grep", "setsid", "flock",
)  # fmt: skip
"""coreutils, and what may be missing: grep, setsid and flock."""


@lru_cache(maxsize=8)
def toolbox(without: tuple[str, ...] = ()) -> Path:
    """A folder of links to the tools of a small host; there is no Python among them."""
    folder = Path(tempfile.mkdtemp(prefix="toolbox-"))
    for name in TOOLS:
        place = shutil.which(name)
        if place is not None and name not in without:
            (folder / name).symlink_to(Path(place).resolve())
    return folder


class ShTransport:
    """As much of a HostTransport as an agent by sh needs."""

    host = HostName("here")

    def __init__(
        self, home: Path, shell: str, env: Mapping[str, str] = {}, *, without: tuple[str, ...] = ()
    ) -> None:
        self.home = home
        self._argv = SHELLS[shell]
        self._argv = (shutil.which(self._argv[0]) or "", *self._argv[1:])
        self.env = {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "PATH": str(toolbox(without)),
            **env,
        }
        self.channels: list[PipeChannel] = []

    async def open_shell(self, _transport: object, script: bytes) -> ByteChannel:
        process = await asyncio.create_subprocess_exec(
            *self._argv, "-c", script,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=self.env, cwd=self.home,
        )  # fmt: skip
        channel = PipeChannel(process)
        self.channels.append(channel)
        return channel

    def agent(self, run_root: str | None = None) -> ShAgent:
        return ShAgent(cast(HostTransport, self), run_root=run_root, open_shell=self.open_shell)

    def kill(self) -> None:
        """What happens to an agent whose link is cut."""
        for channel in self.channels:
            if channel.process.returncode is None:
                channel.process.kill()
