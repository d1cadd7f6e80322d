"""Hosts with networks of their own: a client and two nodes in network namespaces, which only the test's wires join.

client 10.99.1.1 - 10.99.1.2 node 1, client 10.99.2.1 - 10.99.2.2 node 2, node 1 10.99.9.1 - 10.99.9.2 node 2.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.desk import Desk

DATA = "data0"
"""The wire between the nodes."""


@dataclass(frozen=True, slots=True)
class Network:
    """A namespace, held open by a process that sleeps."""

    holder: subprocess.Popen[bytes]

    @property
    def enter(self) -> tuple[str, ...]:
        return ("nsenter", "-t", str(self.holder.pid), "-n")

    def do(self, *words: str) -> None:
        subprocess.run([*self.enter, "ip", *words], check=True, capture_output=True)


@dataclass(frozen=True, slots=True)
class Wired:
    client: Network
    nodes: tuple[Network, Network]

    def cut(self) -> None:
        """Take the wire between the nodes away."""
        self.nodes[1].do("link", "set", DATA, "down")


@contextmanager
def wired() -> Iterator[Wired]:
    """The three networks, gone again at the end. Skips where that is not allowed."""
    if os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("unshare", "nsenter", "ip")):
        pytest.skip("needs root, util-linux and iproute2 (Debian: apt-get install iproute2)")
    networks: list[Network] = []
    try:
        for _ in range(3):
            networks.append(_network())
        client, one, two = networks
        for number, node in enumerate((one, two), 1):
            _join(
                client, f"n{number}", f"10.99.{number}.1/24", node, "mgmt0", f"10.99.{number}.2/24"
            )
        _join(one, DATA, "10.99.9.1/24", two, DATA, "10.99.9.2/24")
        yield Wired(client, (one, two))
    finally:
        for network in networks:
            network.holder.kill()
            network.holder.wait()


def _network() -> Network:
    script = "ip link set lo up && echo ready && exec sleep 600"
    holder = subprocess.Popen(
        ["unshare", "--net", "/bin/sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert holder.stdout is not None
    if holder.stdout.readline() != b"ready\n":
        holder.kill()
        holder.wait()
        pytest.skip("network namespaces are not allowed here")
    return Network(holder)


def _join(
    left: Network, left_name: str, left_at: str, right: Network, right_name: str, right_at: str
) -> None:
    peer = ("peer", "name", right_name, "netns", str(right.holder.pid))
    left.do("link", "add", left_name, "type", "veth", *peer)
    for network, name, at in ((left, left_name, left_at), (right, right_name, right_at)):
        network.do("address", "add", at, "dev", name)
        network.do("link", "set", name, "up")


class NetworkedDesk(Desk):
    """A desk whose cockpit runs in the client's network."""

    def __init__(self, folder: Path, network: Network) -> None:
        super().__init__(folder)
        self._network = network

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
            *self._network.enter, sys.executable, "-m", "cockpit", *args,
            cwd=self.folder, env={**self.environ, **(env or {})}, **(pipes | options),
        )  # fmt: skip
