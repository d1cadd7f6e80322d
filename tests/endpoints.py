"""What the tests' servers and clients have in common: ports, waiting, keys, and what a client knows of a server."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Wait for something that another process does; fails when it does not happen."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + timeout_s
    while not condition():
        assert loop.time() < give_up_at, "it did not happen"
        await asyncio.sleep(0.01)


def need(program: str, package: str) -> str:
    """The program's path, or a skip that says how to get it."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian: apt-get install {package})")
    return found


@dataclass(frozen=True, slots=True)
class Identity:
    """A client key as a file, with its public half beside it."""

    file: Path

    @classmethod
    def make(
        cls, file: Path, *, passphrase: str | None = None, kind: str = "ssh-ed25519"
    ) -> Identity:
        file.parent.mkdir(parents=True, exist_ok=True)
        key = asyncssh.generate_private_key(kind)
        key.write_private_key(str(file), passphrase=passphrase, rounds=4, ignore_few_rounds=True)
        key.write_public_key(str(file) + ".pub")
        file.chmod(0o600)
        return cls(file)

    @property
    def public(self) -> str:
        return Path(str(self.file) + ".pub").read_text().strip()


@dataclass(slots=True)
class Server:
    """What a client needs to know of a server."""

    port: int
    user: str
    host_key: asyncssh.SSHKey
    address: str = "127.0.0.1"

    @property
    def fingerprint(self) -> str:
        return self.host_key.get_fingerprint("sha256")

    @property
    def public_key(self) -> str:
        """keytype base64, without a comment."""
        return " ".join(self.host_key.export_public_key().decode().split()[:2])

    @property
    def known_hosts_line(self) -> str:
        return f"[{self.address}]:{self.port} {self.public_key}\n"
