"""The transport against real servers."""

from __future__ import annotations

from pathlib import Path

from tests.servers import Laptop, openssh


async def test_runs_a_command(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path / "laptop")
    async with openssh(tmp_path / "sshd", authorized=[laptop.identity]) as sshd:
        laptop.trust(sshd)
        transport = laptop.transport(sshd)
        facts = await transport.connect()
        done = await transport.run(b"echo hello; echo oops >&2; cat; exit 3", stdin=b"\xff\x00x")
        await transport.close()
    assert done.exit_code == 3
