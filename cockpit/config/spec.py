"""A host as the rest of cockpit knows it."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.config.pasted import Forward
from cockpit.domain.models import HostName
from cockpit.errors import Fact


@dataclass(frozen=True, slots=True)
class Notice:
    """Something worth a word that stops nothing: a dropped option, a key file that is not there."""

    code: str
    facts: dict[str, Fact]


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A host of hosts.toml: its table, the pasted line in it and `[defaults]` made one. None: not said.

    What is None is for ssh_config and then for SSH's own defaults to say.
    """

    name: HostName
    host: str | None = None
    """Address, DNS name or an alias of ssh_config; None for this machine."""
    port: int | None = None
    user: str | None = None
    identity: str | None = None
    """As it was written, `~` included."""
    jump: str | None = None
    """As it was written; `hops` is what it means."""
    hops: tuple[HostSpec, ...] = ()
    """Every jump, first to last; a hop has no hops of its own here."""
    local: bool = False
    price_per_h: float | None = None
    currency: str | None = None
    platform: str | None = None
    tags: tuple[str, ...] = ()
    data_dir: str | None = None
    python: str | None = None
    run_root: str | None = None
    forwards: tuple[Forward, ...] = ()
    from_defaults: frozenset[str] = frozenset()
    """Names of the fields that only `[defaults]` gave: an alias of ssh_config that says otherwise wins."""
