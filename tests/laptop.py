"""The client's side of a test: a home for cockpit, an ssh_config, keys and known_hosts, away from the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.transport.attempt import Limits
from cockpit.transport.base import AskSecret, HostTransport
from cockpit.transport.connector import make_transport
from tests.endpoints import Identity, Server

QUICK = Limits(connect_s=5.0, greeting_s=10.0, login_s=20.0, retry_s=0.05)
"""Retries come soon; a test that waits for a time-out sets that one shorter."""


class Laptop:
    """The client's side of a test: a home for cockpit, an ssh_config and known_hosts, away from the real ones."""

    def __init__(self, folder: Path, *, limits: Limits = QUICK) -> None:
        self.folder = folder
        self.ssh = folder / ".ssh"
        self.ssh.mkdir(parents=True, exist_ok=True)
        self.home = Home(folder / "cockpit")
        self.home.root.mkdir(exist_ok=True)
        self.ssh_config = self.ssh / "config"
        self.user_known_hosts = self.ssh / "known_hosts"
        self.identity = Identity.make(self.ssh / "id_test")
        self.limits = limits
        self.write_config("")

    def write_config(self, text: str) -> None:
        """The ssh_config; its last block keeps ssh away from the real known_hosts."""
        isolated = f"Host *\n  UserKnownHostsFile {self.user_known_hosts}\n"
        isolated += "  GlobalKnownHostsFile /dev/null\n  IdentityAgent none\n"
        self.ssh_config.write_text(text + "\n" + isolated)

    def trust(self, *servers: Server) -> None:
        """Write the servers' keys into cockpit's known_hosts."""
        with self.home.known_hosts.open("a") as file:
            file.writelines(server.known_hosts_line for server in servers)

    def spec(self, server: Server, name: str = "box", **changes: Any) -> HostSpec:
        """The server as hosts.toml would have it."""
        keys: dict[str, Any] = {
            "name": HostName(name),
            "host": server.address,
            "port": server.port,
            "user": server.user,
            "identity": str(self.identity.file),
        }
        return HostSpec(**(keys | changes))

    def transport(
        self,
        server: Server,
        name: str = "box",
        *,
        ask_secret: AskSecret | None = None,
        **changes: Any,
    ) -> HostTransport:
        """A transport to the server, not connected. `changes` are fields of HostSpec."""
        return self.to(self.spec(server, name, **changes), ask_secret=ask_secret)

    def to(self, spec: HostSpec, *, ask_secret: AskSecret | None = None) -> HostTransport:
        return make_transport(
            spec,
            self.home,
            ask_secret=ask_secret,
            ssh_config=self.ssh_config,
            limits=self.limits,
        )
