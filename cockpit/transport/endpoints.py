"""A host as it will be dialled: every option resolved, every jump in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cockpit.domain.models import HostName

DEFAULT_PORT = 22


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One SSH server: a jump host or the host itself."""

    name: str
    """As the person wrote it."""
    address: str
    port: int
    user: str
    identities: tuple[Path, ...] = ()
    identities_given: bool = False
    """False: these are the files that ssh tries by default."""
    identities_only: bool = False
    certificates: tuple[Path, ...] = ()
    agent: str | None = None
    """The agent's socket; None: no agent."""
    host_key_alias: str | None = None
    user_known_hosts: tuple[Path, ...] = ()
    global_known_hosts: tuple[Path, ...] = ()
    proxy_command: str | None = None
    """From the person's own ssh_config only, tokens expanded."""
    methods: tuple[str, ...] = ("publickey", "keyboard-interactive", "password")
    family: int = 0
    bind_address: str | None = None
    algorithms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Only what ssh_config says otherwise than ssh itself, under ssh_config's own names."""

    @property
    def key_name(self) -> str:
        """The name under which its key is known, without the port."""
        return (self.host_key_alias or self.address).lower()

    @property
    def key_port(self) -> int:
        """An alias stands for itself, without a port (as in OpenSSH)."""
        return DEFAULT_PORT if self.host_key_alias else self.port

    @property
    def text(self) -> str:
        """user@host:port, for a person."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ResolvedHost:
    """A host of hosts.toml with ssh_config applied. `target` is None for this machine."""

    name: HostName
    target: Endpoint | None
    jumps: tuple[Endpoint, ...] = ()

    @property
    def local(self) -> bool:
        return self.target is None

    @property
    def host(self) -> str | None:
        return self.target.address if self.target else None

    @property
    def port(self) -> int | None:
        return self.target.port if self.target else None

    @property
    def user(self) -> str | None:
        return self.target.user if self.target else None

    @property
    def identity(self) -> str | None:
        """The first key file that was asked for; None when ssh's defaults apply."""
        if self.target is None or not self.target.identities_given or not self.target.identities:
            return None
        return str(self.target.identities[0])

    @property
    def jump(self) -> str | None:
        """The jump hosts as ssh's -J takes them."""
        return ",".join(hop.text for hop in self.jumps) or None

    @property
    def chain(self) -> tuple[Endpoint, ...]:
        """Every server to log in to, first to last."""
        return (*self.jumps, self.target) if self.target else ()
