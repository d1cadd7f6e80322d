"""Which hosts to watch: those of hosts.toml, else this machine if it has a GPU."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.config.hosts import HostSpec, load_hosts
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.engine.this_machine import NAME, has_gpu


def hosts_to_watch(home: Home, gpu_here: Callable[[], bool] = has_gpu) -> dict[HostName, HostSpec]:
    """Empty when nothing is configured and this machine has no GPU. Raises ConfigError."""
    hosts = load_hosts(home)
    if hosts or not gpu_here():
        return hosts
    here = HostSpec(name=HostName(NAME), local=True)
    return {here.name: here}
