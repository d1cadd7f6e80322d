"""`cockpit demo`: a fleet of its own in a folder of its own, which it takes away again.

Nothing leaves this computer: the hosts are SSH servers on loopback in a child process.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cockpit.config.paths import Home
from cockpit.demo.hosts import FLEET, demo_hosts
from cockpit.errors import StorageError

START_LIMIT_S = 30.0
END_LIMIT_S = 10.0
SERVER_PORTS = ("18431", "18432")
"""Stand in the servers' profiles for ports that are free when the demo starts."""
PACED = "30s"
"""Stands in profiles for a time that goes with the pace of the script."""
PROFILES = Path(__file__).parent / "profiles"


@dataclass(frozen=True, slots=True)
class EmbeddedFleet:
    """A running demo: a home with its hosts and profiles."""

    home: Home
    server: subprocess.Popen[bytes]
    pace: float = 1.0


@contextmanager
def embedded_fleet(count: int = len(FLEET), pace: float = 1.0) -> Iterator[EmbeddedFleet]:
    """Start the hosts; at the end, every process and file of the demo is gone.

    `pace` is how long a second of the script takes: 0.2 for who will not wait.
    """
    folder = Path(tempfile.mkdtemp(prefix="cockpit-demo-"))
    server = _start(folder, count, pace)
    try:
        home = _furnish(folder, count, _addresses(server), pace)
        yield EmbeddedFleet(home, server, pace)
    finally:
        _end(server)
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path, count: int, pace: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cockpit.demo.server", str(folder), str(count), str(pace)]
    with (folder / "server.log").open("wb") as log:
        return subprocess.Popen(
            [*command, secrets.token_hex(8)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )


def _addresses(server: subprocess.Popen[bytes]) -> list[dict[str, object]]:
    """Where the hosts listen, as the child says it. Raises StorageError when it says nothing."""
    assert server.stdout is not None
    line = server.stdout.readline()
    try:
        answer = json.loads(line)
    except ValueError:
        raise StorageError("demo_failed", why=f"exit code {server.poll()}") from None
    assert isinstance(answer, list)
    return answer


def _end(server: subprocess.Popen[bytes]) -> None:
    """The end of its stdin tells it; TERM and KILL are for one that does not listen."""
    assert server.stdin is not None and server.stdout is not None
    server.stdin.close()
    for harder in (server.terminate, server.kill, None):
        try:
            server.wait(END_LIMIT_S)
            break
        except subprocess.TimeoutExpired:
            if harder is not None:
                harder()
    server.stdout.close()


def _furnish(folder: Path, count: int, addresses: list[dict[str, object]], pace: float) -> Home:
    """A home that knows the hosts, their keys and the demo's profiles."""
    home = Home(folder / "home")
    home.ensure()
    home.profiles_dir.mkdir(mode=0o700)
    by_name = {host.name: host for host in demo_hosts(count)}
    tables, known = [], []
    for address in addresses:
        host = by_name[str(address["name"])]
        port = int(str(address["port"]))
        tables.append(
            f"[hosts.{host.name}]\n"
            f'host = "127.0.0.1"\nport = {port}\nuser = "root"\n'
            f"identity = {json.dumps(str(folder / 'client'))}\n"
            f"python = {json.dumps(sys.executable)}\n"
            f'price = "{host.price}"\nplatform = "{host.platform}"\n'
            f"tags = {json.dumps(list(host.tags))}\n"
            f"run_root = {json.dumps(str(folder / 'hosts' / host.name / 'runs'))}\n"
        )
        known.append(f"[127.0.0.1]:{port} {address['key']}\n")
    _write(home.hosts_toml, "\n".join(tables))
    _write(home.known_hosts, "".join(known))
    ports = {port: str(_free_port()) for port in SERVER_PORTS}
    for profile in sorted(PROFILES.glob("*.toml")):
        text = profile.read_text(encoding="utf-8")
        for stands_in, free in ports.items():
            text = text.replace(stands_in, free)
        text = text.replace(f'"{PACED}"', f'"{float(PACED[:-1]) * pace:g}s"')
        _write(home.profiles_dir / profile.name, text)
    return home


def _free_port() -> int:
    """A port that nobody has now: two demos at once must not share the server's."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _write(path: Path, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
