"""Which transport a host needs, and the trust that a person puts into its key."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.transport.base import AskSecret, HostTransport


def make_transport(
    spec: HostSpec,
    home: Home,
    hosts: Mapping[HostName, HostSpec] | None = None,
    *,
    ask_secret: AskSecret | None = None,
    ssh_config: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> HostTransport:
    """A transport for `spec`, not yet connected. Without `ask_secret` nothing is ever asked."""
    raise NotImplementedError
