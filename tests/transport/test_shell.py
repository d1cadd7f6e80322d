"""The system's ssh with our options: as strict as we are, through the same jumps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.transport.shell import shell_argv
from tests.servers import Laptop, need, openssh

pytestmark = pytest.mark.sshd


async def ran(laptop: Laptop, spec: HostSpec, command: str = "echo in") -> tuple[int, str]:
    need("ssh", "openssh-client")
    argv = shell_argv(spec, laptop.home, ssh_config=laptop.ssh_config)
    process = await asyncio.create_subprocess_exec(
        *argv,
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 20)
    return process.returncode or 0, out.decode(errors="replace")


async def test_it_takes_the_key_that_we_trust_and_no_other(tmp_path: Path, laptop: Laptop) -> None:
    async with openssh(tmp_path / "s", authorized=[laptop.identity]) as sshd:
        spec = laptop.spec(sshd)
        code, out = await ran(laptop, spec)
        assert (code, "Host key verification failed" in out) == (255, True)
        laptop.user_known_hosts.write_text(f"127.0.0.1 {sshd.public_key}\n")
        assert (await ran(laptop, spec))[0] == 255, "an entry without the port does not vouch"
        laptop.trust(sshd)
        assert await ran(laptop, spec) == (0, "in\n")


async def test_a_config_that_switches_checking_off_does_not(tmp_path: Path, laptop: Laptop) -> None:
    laptop.write_config("Host *\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n")
    async with openssh(tmp_path / "s", authorized=[laptop.identity]) as sshd:
        assert (await ran(laptop, laptop.spec(sshd)))[0] == 255
        assert not laptop.home.known_hosts.exists()


async def test_it_goes_through_the_same_jumps(tmp_path: Path, laptop: Laptop) -> None:
    keys = [laptop.identity]
    async with (
        openssh(tmp_path / "outer", authorized=keys) as outer,
        openssh(tmp_path / "inner", authorized=keys) as inner,
        openssh(tmp_path / "target", authorized=keys) as target,
    ):
        hops = (laptop.spec(outer, "outer"), laptop.spec(inner, "inner"))
        spec = laptop.spec(target, hops=hops)
        laptop.trust(outer, target)
        assert (await ran(laptop, spec))[0] == 255, "each hop is checked"
        laptop.trust(inner)
        code, out = await ran(laptop, spec, "echo $SSH_CONNECTION")
        assert (code, out.split()[3:]) == (0, [str(target.port)])


def test_this_machine_has_its_own_shell(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/zsh")
    assert shell_argv(HostSpec(HostName("here"), local=True), laptop.home) == ["/bin/zsh"]
