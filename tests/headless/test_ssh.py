"""`cockpit ssh HOST` becomes the system's ssh, which takes only the key that was trusted."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.servers import Laptop, need, openssh

pytestmark = pytest.mark.sshd


async def shell_on(laptop: Laptop, host: str, typed: bytes) -> tuple[int, bytes]:
    kept = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cockpit",
        "ssh",
        host,
        env=kept | {"HOME": str(laptop.folder), "COCKPIT_HOME": str(laptop.home.root)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await asyncio.wait_for(process.communicate(typed), 30)
    return process.returncode or 0, out


async def test_a_shell_opens_once_the_key_is_trusted(tmp_path: Path) -> None:
    need("ssh", "openssh-client")
    laptop = Laptop(tmp_path / "laptop")
    async with openssh(tmp_path / "sshd", authorized=[laptop.identity]) as sshd:
        pasted = f"ssh -p {sshd.port} {sshd.user}@127.0.0.1 -i {laptop.identity.file}"
        laptop.home.hosts_toml.write_text(f'[hosts.box]\nssh = "{pasted}"\n')
        assert (await shell_on(laptop, "box", b"echo in; exit 5\n"))[0] == 255
        laptop.trust(sshd)
        assert await shell_on(laptop, "box", b"echo in; exit 5\n") == (5, b"in\n")
        assert (await shell_on(laptop, "nobody", b""))[0] == 64
