"""Ports that hosts.toml forwards from a host (-L of its pasted command): open while the host is connected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cockpit.config.spec import HostSpec
from cockpit.domain.models import HostName
from cockpit.engine.api import Forwarded
from cockpit.engine.clock import Clock
from cockpit.engine.companions import Forwards
from cockpit.engine.events import EventBus, OwnTrouble
from cockpit.errors import CockpitError, Fact
from cockpit.transport.base import HostTransport


class HostForwards:
    """For each host, on its present connection, bound to this computer's loopback."""

    def __init__(self, bus: EventBus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._kept: dict[HostName, tuple[HostSpec, Forwards]] = {}

    def up(self, spec: HostSpec, transport: HostTransport) -> None:
        self.down(spec.name)
        known = self._kept.get(spec.name)
        if known is None or known[0] != spec:
            hosts = {(one.listen_port, one.port): one.host for one in spec.forwards}
            known = spec, Forwards(tuple(hosts), partial(self._told, spec.name), hosts)
            self._kept[spec.name] = known
        known[1].open(transport)

    def down(self, host: HostName) -> None:
        if host in self._kept:
            self._kept[host][1].close()

    def states(self, host: HostName) -> Sequence[Forwarded]:
        return self._kept[host][1].states if host in self._kept else ()

    def _told(
        self, host: HostName, local_port: int, remote_port: int, error: CockpitError | None
    ) -> None:
        """One that opens is shown; one that does not is told, once for each reason."""
        if error is not None:
            facts: dict[str, Fact] = {"host": host, "port": local_port}
            code = "forward_port_taken" if error.code == "port_taken" else error.code
            self._bus.publish(OwnTrouble(code, facts, self._clock.wall_s()))
