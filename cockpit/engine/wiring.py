"""What an engine is made of where it meets the world; tests put other parts here. Heavy imports wait for use."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.engine.clock import Clock, SystemClock
from cockpit.engine.events import EventBus
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.engine.sampler import Cadence, Sampler, StartSampler
from cockpit.engine.services import RunsService
from cockpit.engine.watch_wishes import WatchWishes

if TYPE_CHECKING:
    from cockpit.config.hosts import HostSpec
    from cockpit.engine.recorder import Recorder
    from cockpit.transport.base import AskSecret, HostTransport

Hosts: TypeAlias = Mapping[HostName, "HostSpec"]


@dataclass(frozen=True, slots=True)
class EngineParts:
    """What the parts of one engine share. `hosts` is the live mapping."""

    home: Home
    hosts: Hosts
    clock: Clock
    bus: EventBus
    fleet: FleetStore
    incidents: IncidentDesk
    wishes: WatchWishes = field(default_factory=WatchWishes)
    recorder: Recorder | None = None


MakeTransport: TypeAlias = Callable[["HostSpec", EngineParts, "AskSecret | None"], "HostTransport"]
MakeRuns: TypeAlias = Callable[[EngineParts], RunsService]


def _ssh_or_local(
    spec: HostSpec, parts: EngineParts, ask_secret: AskSecret | None
) -> HostTransport:
    from cockpit.transport.connector import make_transport

    return make_transport(spec, parts.home, parts.hosts, ask_secret=ask_secret)


def reaching(every_host: Hosts) -> MakeTransport:
    """For an engine over some of the hosts: a jump may be one that it does not watch."""

    def transport(
        spec: HostSpec, parts: EngineParts, ask_secret: AskSecret | None
    ) -> HostTransport:
        from cockpit.transport.connector import make_transport

        return make_transport(spec, parts.home, every_host, ask_secret=ask_secret)

    return transport


async def _shipped_probe(transport: HostTransport, python: str | None, cadence: Cadence) -> Sampler:
    from cockpit.engine.probe_sampler import start_probe_sampler

    return await start_probe_sampler(transport, python, cadence)


def _runs(parts: EngineParts) -> RunsService:
    from cockpit.engine.runs import full_runs

    return full_runs(parts)


def flight_recorder(parts: EngineParts) -> Recorder:
    """As settings.toml wants it; a broken file is its reader's to report."""
    from cockpit.config.settings import Settings, load_settings
    from cockpit.engine.recorder import Recorder
    from cockpit.errors import CockpitError

    try:
        settings = load_settings(parts.home)
    except CockpitError:
        settings = Settings()
    return Recorder(
        parts.home, parts.hosts, parts.clock, parts.bus, parts.fleet, parts.incidents,
        least=None if settings.record == "off" else settings.record,
        room_mib=settings.recordings_mib,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wiring:
    make_transport: MakeTransport = _ssh_or_local
    start_sampler: StartSampler = _shipped_probe
    make_runs: MakeRuns = _runs
    make_recorder: Callable[[EngineParts], Recorder] | None = None
    """None for an engine that lives for one answer."""
    jitter: Callable[[], float] = random.random
    clock: Clock = field(default_factory=SystemClock)


def load_transports() -> None:
    """Import asyncssh, which takes a while; called off the loop, so that a screen stays alive."""
    import cockpit.transport.ssh  # noqa: F401


def load_runs() -> None:
    """Import what runs need, pydantic above all; called off the loop too."""
    import cockpit.engine.launching
    import cockpit.engine.runs  # noqa: F401
