"""What a launcher makes of a profile: a command, its environment, its ports, and how to see that it is up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What the planner knows by the time a run is about to start on one host."""

    gpus: tuple[int, ...] = ()
    """The reserved cards; empty when the profile reserves none."""
    home: str | None = None
    """The user's home folder on the host; None leaves a leading `~` for the host to expand."""
    free_port: int | None = None
    """A port that is free on the host, for a rendezvous."""
    nodes: int = 1
    node_rank: int = 0
    master_addr: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Readiness:
    """A run is ready when every one of these that is set holds."""

    port: int | None = None
    http: tuple[str, ...] = ()
    """Paths that must answer 200 on `port`, in this order."""
    log: str | None = None
    """A regular expression that a line of the log must match."""
    no_progress_s: float | None = None
    """Time without a new line or more memory after which the start counts as stuck."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that the supervisor needs to start the run; secrets are names only."""

    argv: tuple[str, ...]
    cwd: str = "~"
    env: Mapping[str, str] = field(default_factory=dict)
    env_defaults: Mapping[str, str] = field(default_factory=dict)
    """Set only where the host's own environment says nothing."""
    path_first: tuple[str, ...] = ()
    """Folders to put in front of the host's PATH."""
    secret_names: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    """Ports on which the run will listen."""
    ready: Readiness | None = None
    forwards: tuple[tuple[int, int], ...] = ()
    """(port of this computer, port of the host)."""
    metrics: tuple[int, str] | None = None
    """Port and path of the run's own metrics."""
