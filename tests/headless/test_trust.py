"""`cockpit hosts trust` as a person and as a script calls it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pexpect
import pytest

from tests.servers import Laptop, Server, misbehaving_server


@pytest.fixture
async def server(laptop: Laptop) -> AsyncIterator[Server]:
    async with misbehaving_server() as running:
        laptop.home.hosts_toml.write_text(
            f'[hosts.box]\nssh = "ssh -p {running.port} root@127.0.0.1"\n'
        )
        yield running


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path / "laptop")


def environment(laptop: Laptop) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    return kept | {"HOME": str(laptop.folder), "COCKPIT_HOME": str(laptop.home.root)}


async def cockpit(laptop: Laptop, *words: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cockpit",
        *words,
        env=environment(laptop),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode or 0, out.decode(), err.decode()


def recorded(laptop: Laptop) -> str:
    file = laptop.home.known_hosts
    return file.read_text() if file.exists() else ""


async def test_the_right_fingerprint_is_recorded(laptop: Laptop, server: Server) -> None:
    code, out, err = await cockpit(
        laptop, "hosts", "trust", "box", "--fingerprint", server.fingerprint
    )
    assert (code, out) == (0, "")
    assert server.fingerprint in err
    assert recorded(laptop) == server.known_hosts_line
    assert laptop.home.known_hosts.stat().st_mode & 0o777 == 0o600


async def test_another_fingerprint_is_77_and_nothing_is_recorded(
    laptop: Laptop, server: Server
) -> None:
    other = "SHA256:" + "A" * 43
    code, out, err = await cockpit(laptop, "hosts", "trust", "box", "--fingerprint", other)
    assert (code, out, recorded(laptop)) == (77, "", "")
    assert server.fingerprint in err


async def test_a_changed_key_is_replaced_by_the_one_compared(
    laptop: Laptop, server: Server
) -> None:
    async with misbehaving_server() as other:
        laptop.home.known_hosts.write_text(f"[127.0.0.1]:{server.port} {other.public_key}\n")
    code, _, _ = await cockpit(laptop, "hosts", "trust", "box", "--fingerprint", server.fingerprint)
    assert (code, recorded(laptop)) == (0, server.known_hosts_line)


async def test_without_a_fingerprint_the_key_is_shown_and_not_taken(
    laptop: Laptop, server: Server
) -> None:
    code, out, err = await cockpit(laptop, "hosts", "trust", "box", "--json")
    assert (code, recorded(laptop)) == (77, "")
    assert json.loads(out) == {
        "host": "box",
        "hop": None,
        "fingerprint": server.fingerprint,
        "key_type": "ED25519",
        "known": None,
        "trusted": False,
    }
    assert f"cockpit hosts trust box --fingerprint {server.fingerprint}" in err


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("", 77), ("n", 77)])
async def test_at_a_terminal_a_person_decides_and_the_default_is_no(
    laptop: Laptop, server: Server, answer: str, code: int
) -> None:
    def talk() -> int:
        child = pexpect.spawn(
            sys.executable,
            ["-m", "cockpit", "hosts", "trust", "box"],
            env=environment(laptop),
            timeout=20,
            encoding="utf-8",
        )
        child.expect_exact(server.fingerprint)
        child.expect_exact("[y/N]")
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.close()
        return int(child.exitstatus if child.exitstatus is not None else -1)

    assert await asyncio.to_thread(talk) == code
    assert (recorded(laptop) != "") is (code == 0)


async def test_a_host_that_is_down_is_69(laptop: Laptop, server: Server) -> None:
    laptop.home.hosts_toml.write_text('[hosts.box]\nssh = "ssh -p 1 root@127.0.0.1"\n')
    code, out, _ = await cockpit(
        laptop, "hosts", "trust", "box", "--fingerprint", server.fingerprint
    )
    assert (code, out) == (69, "")


@pytest.mark.parametrize(
    "words",
    [
        ("nobody", "--fingerprint", "SHA256:" + "A" * 43),
        ("box", "--fingerprint", "nonsense"),
        ("box", "--fingerprint", "SHA256:" + "A" * 43, "--hop", "1"),
    ],
)
async def test_what_cannot_be_meant_is_64(
    laptop: Laptop, server: Server, words: tuple[str, ...]
) -> None:
    code, out, err = await cockpit(laptop, "hosts", "trust", *words)
    assert (code, out) == (64, "")
    assert err
