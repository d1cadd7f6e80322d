"""The bench's hosts: one private sshd on loopback under several ports, simulated cards behind real NVML calls."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cockpit.config.paths import Home
from tests.endpoints import free_port
from tests.nvml.double import Driver, healthy, make_driver
from tests.servers import Laptop, OpenSshServer, openssh

WORK = Path(__file__).parent / ".work"
PREFIX = "cockpit-lab-"
"""Folders of labs; the bench's process id follows."""
PORTS = 10
"""An sshd listens on 16 sockets at most; beyond this, hosts share ports and are hosts of their own all the same."""
SYSTEM_PYTHON = "/usr/bin/python3"
PEERS = ("mnvitop==1.0.0", "clustop==0.1.0", "gpustat==1.1.1")


@dataclass(frozen=True, slots=True)
class LabHost:
    """A host as cockpit knows it by hosts.toml, and everyone else by an `ssh` of the lab's."""

    name: str
    port: int
    python: Path | None
    """Where hosts.toml names one; cockpit looks for one itself otherwise, as on any image."""


@dataclass(frozen=True, slots=True)
class Lab:
    """A laptop and its hosts, h0, h1, …"""

    home: Home
    laptop: Laptop
    sshd: OpenSshServer
    driver: Driver
    hosts: tuple[LabHost, ...]
    ssh_folder: Path

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(host.port for host in self.hosts)

    def environ(self) -> dict[str, str]:
        """For any program: cockpit's home, and an `ssh` that knows the hosts and checks their key."""
        return {
            **os.environ,
            "COCKPIT_HOME": str(self.home.root),
            "PATH": f"{self.ssh_folder}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }


def changing(cards: int, which: Iterable[int] | None = None) -> list[str]:
    """Cards of which all, or `which`, show other numbers in every second."""
    lines = healthy(cards)
    for card in range(cards) if which is None else which:
        period_s = 7.1 + 1.3 * card
        lines += [
            f"gpu {card} util wave 20 99 {period_s}",
            f"gpu {card} mem_util wave 10 80 {period_s}",
            f"gpu {card} mem_used wave 9000 71000 {4 * period_s}",
            f"gpu {card} temp wave 45 82 {2 * period_s}",
            f"gpu {card} power wave 180 695 {period_s}",
            f"gpu {card} sm_clock wave 1200 1980 {period_s}",
        ]
    return lines


@asynccontextmanager
async def lab(
    hosts: int = 8, cards: int = 8, *, changing_cards: int | None = None
) -> AsyncIterator[Lab]:
    """`hosts` hosts of `cards` cards; all of them change, or one on each of as many hosts, evenly spread."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    try:
        async with _lab(folder, hosts, cards, changing_cards) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """End the servers of benches that were killed, and remove their folders."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            for process in Path("/proc").iterdir():
                with suppress(OSError):
                    if process.name.isdecimal() and _belongs(process, folder):
                        os.kill(int(process.name), signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)


def _belongs(process: Path, folder: Path) -> bool:
    """Whether a process serves this lab: by its command or by the mark that sshd puts in what it starts."""
    said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    return f"{folder}/".encode() in said


@asynccontextmanager
async def _lab(
    folder: Path, hosts: int, cards: int, changing_cards: int | None
) -> AsyncIterator[Lab]:
    driver = make_driver(folder, changing(cards) if changing_cards is None else healthy(cards))
    laptop = Laptop(folder / "laptop")
    more = [free_port() for _ in range(min(hosts, PORTS) - 1)]
    path = f"{driver.bin}:{Path(sys.executable).parent}:{peers_bin()}:/usr/local/bin:/usr/bin:/bin"
    server = folder / "sshd"
    options = [
        # sshd takes the first SetEnv only, and its end finds what it started by this mark.
        f"SetEnv COCKPIT_TEST_SSHD={server} LD_LIBRARY_PATH={driver.library}"
        f" NVML_DOUBLE={driver.scenario.path} PATH={path}",
        "MaxStartups 100:30:200",
        *(f"Port {port}" for port in more),
    ]
    async with openssh(server, authorized=[laptop.identity], options=options) as sshd:
        pythons = _pythons(folder, hosts, cards, changing_cards or 0)
        ports = (sshd.port, *more)
        known = tuple(
            LabHost(f"h{number}", ports[number % len(ports)], python)
            for number, python in enumerate(pythons)
        )
        _write_hosts(laptop, sshd, known)
        yield Lab(laptop.home, laptop, sshd, driver, known, _write_ssh(folder, laptop, sshd, known))


def _pythons(folder: Path, hosts: int, cards: int, changing_cards: int) -> list[Path | None]:
    """The Python of each host; that of a host with a changing card points at a scenario of its own."""
    found: list[Path | None] = [None] * hosts
    if changing_cards:
        scenario = folder / "changing"
        scenario.write_text("\n".join(changing(cards, [cards // 2])) + "\n")
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nNVML_DOUBLE="{scenario}" exec "{SYSTEM_PYTHON}" "$@"\n')
        python.chmod(0o755)
        for number in range(changing_cards):
            found[number * hosts // changing_cards] = python
    return found


def _write_hosts(laptop: Laptop, sshd: OpenSshServer, hosts: Sequence[LabHost]) -> None:
    tables = [
        f'[hosts.{host.name}]\nhost = "127.0.0.1"\nport = {host.port}\nuser = "{sshd.user}"\n'
        f'identity = "{laptop.identity.file}"\n'
        + (f'python = "{host.python}"\n' if host.python else "")
        for host in hosts
    ]
    laptop.home.hosts_toml.write_text("\n".join(tables))
    key = sshd.known_hosts_line.split(" ", 1)[1]
    known = [f"[127.0.0.1]:{port} {key}" for port in sorted({host.port for host in hosts})]
    laptop.home.known_hosts.write_text("".join(known))


def _write_ssh(folder: Path, laptop: Laptop, sshd: OpenSshServer, hosts: Sequence[LabHost]) -> Path:
    """A folder with an `ssh` for the peers, which take host names and no options."""
    config = folder / "ssh_config"
    blocks = [f"Host {host.name}\n  HostName 127.0.0.1\n  Port {host.port}\n" for host in hosts]
    blocks.append(
        f"Host *\n  User {sshd.user}\n  IdentityFile {laptop.identity.file}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {laptop.home.known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
    )
    config.write_text("\n".join(blocks))
    bin_folder = folder / "client-bin"
    bin_folder.mkdir()
    ssh = bin_folder / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F "{config}" "$@"\n')
    ssh.chmod(0o755)
    return bin_folder


def peers_bin() -> Path:
    """The peers' programs, installed when first asked for."""
    venv = WORK / "peers"
    if not (venv / "installed").exists():
        WORK.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, "--disable-pip-version-check", *PEERS], check=True)
        (venv / "installed").touch()
    return venv / "bin"
