"""The bench's hosts: one private sshd on loopback under several ports, eight simulated cards behind real NVML calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cockpit.config.paths import Home
from tests.endpoints import free_port
from tests.nvml.double import Driver, healthy, make_driver
from tests.servers import Laptop, OpenSshServer, openssh

WORK = Path(__file__).parent / ".work"
PORTS = 10
"""An sshd listens on 16 sockets at most; beyond this, hosts share ports and are hosts of their own all the same."""
PEERS = ("mnvitop==1.0.0", "clustop==0.1.0", "gpustat==1.1.1")


@dataclass(frozen=True, slots=True)
class Lab:
    """Hosts named h0, h1, … that cockpit knows by hosts.toml and everyone else by an `ssh` of the lab's."""

    home: Home
    laptop: Laptop
    sshd: OpenSshServer
    driver: Driver
    names: tuple[str, ...]
    ports: tuple[int, ...]
    ssh_folder: Path

    def environ(self) -> dict[str, str]:
        """For any program: cockpit's home, and an `ssh` that knows the hosts and checks their key."""
        return {
            **os.environ,
            "COCKPIT_HOME": str(self.home.root),
            "PATH": f"{self.ssh_folder}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }


@asynccontextmanager
async def lab(hosts: int = 8, cards: int = 8) -> AsyncIterator[Lab]:
    folder = Path(tempfile.mkdtemp(prefix="cockpit-bench-"))
    try:
        async with _lab(folder, hosts, cards) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _lab(folder: Path, hosts: int, cards: int) -> AsyncIterator[Lab]:
    driver = make_driver(folder, healthy(cards))
    laptop = Laptop(folder / "laptop")
    more = [free_port() for _ in range(min(hosts, PORTS) - 1)]
    path = f"{driver.bin}:{Path(sys.executable).parent}:{peers_bin()}:/usr/local/bin:/usr/bin:/bin"
    options = [
        f"SetEnv LD_LIBRARY_PATH={driver.library} NVML_DOUBLE={driver.scenario.path} PATH={path}",
        "MaxStartups 100:30:200",
        *(f"Port {port}" for port in more),
    ]
    async with openssh(folder / "sshd", authorized=[laptop.identity], options=options) as sshd:
        names = tuple(f"h{number}" for number in range(hosts))
        every = (sshd.port, *more)
        ports = tuple(every[number % len(every)] for number in range(hosts))
        _write_hosts(laptop, sshd, names, ports)
        ssh_folder = _write_ssh(folder, laptop, sshd, names, ports)
        yield Lab(laptop.home, laptop, sshd, driver, names, ports, ssh_folder)


def _write_hosts(
    laptop: Laptop, sshd: OpenSshServer, names: tuple[str, ...], ports: tuple[int, ...]
) -> None:
    tables = [
        f'[hosts.{name}]\nhost = "127.0.0.1"\nport = {port}\nuser = "{sshd.user}"\n'
        f'identity = "{laptop.identity.file}"\npython = "{sys.executable}"\n'
        for name, port in zip(names, ports, strict=True)
    ]
    laptop.home.hosts_toml.write_text("\n".join(tables))
    key = sshd.known_hosts_line.split(" ", 1)[1]
    known = [f"[127.0.0.1]:{port} {key}" for port in sorted(set(ports))]
    laptop.home.known_hosts.write_text("".join(known))


def _write_ssh(
    folder: Path,
    laptop: Laptop,
    sshd: OpenSshServer,
    names: tuple[str, ...],
    ports: tuple[int, ...],
) -> Path:
    config = folder / "ssh_config"
    hosts = [
        f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n"
        for name, port in zip(names, ports, strict=True)
    ]
    hosts.append(
        f"Host *\n  User {sshd.user}\n  IdentityFile {laptop.identity.file}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {laptop.home.known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
    )
    config.write_text("\n".join(hosts))
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
