"""Which transport a host needs. asyncssh loads with the first host that is not this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.transport.base import AskSecret, HostTransport
from cockpit.transport.local import LocalTransport

if TYPE_CHECKING:
    from cockpit.transport.attempt import Limits


def make_transport(
    spec: HostSpec,
    home: Home,
    hosts: Mapping[HostName, HostSpec] | None = None,
    *,
    ask_secret: AskSecret | None = None,
    ssh_config: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
    limits: Limits | None = None,
) -> HostTransport:
    """A transport for `spec`, not yet connected. Without `ask_secret` nothing is ever asked."""
    if spec.local or spec.host is None:
        return LocalTransport(spec.name, clock=clock)
    from cockpit.transport.ssh import SshTransport

    return SshTransport(
        spec,
        home.known_hosts,
        hosts,
        ask_secret=ask_secret,
        ssh_config=ssh_config,
        clock=clock,
        limits=limits,
    )
