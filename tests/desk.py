"""A person's desk for tests of commands: a home for cockpit, a user's home, profiles, and the real program.

Whatever a test starts here carries the desk's HOME in its environment; the fixture `desk` fails when any of it
is still there at the end, and ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: bytes
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """stdout as JSON lines; anything else on it is an error."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def names(self) -> list[str]:
        """What happened, in order; samples come when they come."""
        return [event["event"] for event in self.events if event["event"] != "sample"]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == name]


class Desk:
    """`cockpit` as a person at one computer runs it."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.home = folder / "cockpit"
        self.user = folder / "user"
        for each in (self.home, self.user):
            each.mkdir(parents=True, exist_ok=True)
        self.environ = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(self.user),
            "XDG_STATE_HOME": str(self.user / "state"),
            "COCKPIT_HOME": str(self.home),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            **environ,
        }

    def hosts(self, text: str) -> None:
        (self.home / "hosts.toml").write_text(text)

    def this_machine(self, **keys: object) -> None:
        """One host, `here`, which is this machine."""
        lines = [f"{key} = {json.dumps(value)}" for key, value in {"local": True, **keys}.items()]
        self.hosts("[hosts.here]\n" + "\n".join(lines) + "\n")

    def profile(self, name: str, script: str, more: str = "") -> str:
        """A profile of kind command; returns its path. `more` is TOML after its tables."""
        text = (
            f'name = "{name}"\nkind = "command"\n[command]\nscript = {json.dumps(script)}\n{more}'
        )
        return self.file(f"{name}.toml", text)

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    async def start(
        self, *args: str, env: Mapping[str, str] | None = None, **options: Any
    ) -> asyncio.subprocess.Process:
        pipes: dict[str, Any] = {
            "stdin": asyncio.subprocess.DEVNULL,
            "stdout": asyncio.subprocess.PIPE,
            "stderr": asyncio.subprocess.PIPE,
            "limit": 1 << 26,
        }
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cockpit", *args,
            cwd=self.folder, env={**self.environ, **(env or {})}, **(pipes | options),
        )  # fmt: skip

    async def call(self, *args: str, env: Mapping[str, str] | None = None) -> Done:
        return await self.end_of(await self.start(*args, env=env))

    async def end_of(self, process: asyncio.subprocess.Process) -> Done:
        out, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
        assert process.returncode is not None
        return Done(process.returncode, out or b"", (err or b"").decode())

    async def detached(self, path: str, *more: str) -> str:
        """Start a run and leave it; returns its id."""
        done = await self.call("run", path, "--detach", *more)
        assert done.code == 0, done.err
        return done.out.decode().strip()

    def run_folder(self, run: str) -> Path:
        (found,) = self.user.glob(f"**/v1/*/{run}")
        return found

    def runs(self, name: str) -> list[str]:
        """Ids of the runs of a profile that are on disk here as a host."""
        return [path.name for path in self.user.glob(f"**/v1/*/{name}-*")]

    def supervisor_pid(self, run: str) -> int:
        return int(json.loads((self.run_folder(run) / "sup.json").read_bytes())["pid"])

    def processes(self) -> list[int]:
        return _with_environ(f"HOME={self.user}")

    def of_run(self, run: str) -> list[int]:
        return _with_environ(f"COCKPIT_RUN={run}")

    async def clear(self) -> list[int]:
        """Wait until nothing of this desk runs; what still does is ended, and returned."""
        with suppress(AssertionError):
            await until(lambda: not self.processes(), "everything is over", 10.0)
        left = self.processes()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left


async def until(
    holds: Callable[[], object], what: str = "condition", limit_s: float = LIMIT_S
) -> None:
    """Wait for something to hold; fail after `limit_s`."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + limit_s
    while not holds():
        assert loop.time() < deadline_s, f"never: {what}"
        await asyncio.sleep(0.02)


def _with_environ(entry: str) -> list[int]:
    mark, found = entry.encode(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                environ = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                if mark in environ and state not in "ZX":
                    found.append(int(name))
    return found
