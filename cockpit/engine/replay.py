"""An engine whose hosts are a recording: the screens of the live one, and nobody is connected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from cockpit.config.spec import HostSpec
from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName
from cockpit.domain.mutes import Mute
from cockpit.domain.recording import MOST_HOSTS, RecordedHost
from cockpit.engine.clock import Clock, SystemClock
from cockpit.engine.events import EventBus, OnEvent, OwnTrouble
from cockpit.engine.fleet import FleetStore
from cockpit.engine.incidents_api import IncidentStore
from cockpit.engine.playback import Playback
from cockpit.engine.recording_read import Recording
from cockpit.engine.replay_player import ReplayPlayer
from cockpit.engine.replay_runs import ReplayRuns
from cockpit.engine.runs_face import RunsFace
from cockpit.errors import UsageError

if TYPE_CHECKING:
    from cockpit.engine.api import LogLine

log = logging.getLogger(__name__)

ONLY: Final = "replay_only"


class ReplayEngine(RunsFace):
    """Implements EngineApi. What would act on a host raises or tells UsageError replay_only."""

    def __init__(self, recording: Recording, clock: Clock | None = None) -> None:
        self._bus = EventBus(lambda error: log.error("a listener failed", exc_info=error))
        self._hosts = {one.name: _spec(one) for one in _hosts(recording)}
        self._fleet = FleetStore(self._hosts)
        self._player = ReplayPlayer(recording, self._fleet, self._bus)
        self._runs = ReplayRuns(self._player)
        self.replay = Playback(recording, self._player, clock or SystemClock())

    async def start(self) -> None:
        await self.replay.settled()
        self.replay.start()

    async def close(self) -> None:
        await self.replay.close()

    @property
    def fleet(self) -> FleetStore:
        return self._fleet

    @property
    def incidents(self) -> IncidentStore:
        return self._player.incidents

    @property
    def hosts(self) -> dict[HostName, HostSpec]:
        return self._hosts

    def now_s(self) -> float:
        return self.replay.now_s()

    def wall_s(self) -> float:
        return self.replay.wall_s()

    def subscribe(self, listener: OnEvent) -> Callable[[], None]:
        return self._bus.subscribe(listener)

    def focus(self, host: HostName | None) -> None:
        """It was sampled as it was sampled."""

    def set_interval(self, seconds: float) -> None:
        """It was sampled as it was sampled."""

    # -- what would act -----------------------------------------------------------------------

    def probe_now(self, hosts: Sequence[HostName] = ()) -> None:
        self._tell()

    def connect(self, host: HostName) -> None:
        self._tell()

    def disconnect(self, host: HostName) -> None:
        self._tell()

    async def add_host(self, name: str, pasted: str, *, replace: bool = False) -> HostSpec:
        self._refuse()

    async def remove_host(self, host: HostName) -> None:
        self._refuse()

    async def reload_hosts(self) -> None:
        self._refuse()

    async def trust(self, host: HostName, fingerprint: str) -> None:
        self._refuse()

    def shell_argv(self, host: HostName) -> list[str]:
        self._refuse()

    # -- incidents ----------------------------------------------------------------------------

    @property
    def mutes(self) -> Sequence[Mute]:
        return ()

    async def mute(self, mute: Mute) -> bool:
        self._tell()
        return True

    async def unmute(self, mute_id: str) -> bool:
        return True

    async def refresh_mutes(self) -> None:
        """Rules of this computer are not those of the recording's."""

    async def earlier_incidents(self, limit: int = 300) -> Sequence[Incident]:
        return await self._runs.earlier_incidents(limit)

    async def log_context(
        self, incident: Incident, offset: int, before: int = 3, after: int = 2
    ) -> Sequence[LogLine]:
        return await self._runs.log_context(incident, offset, before, after)

    async def masked_text(self, incident: Incident, text: str) -> str:
        return text

    def _tell(self) -> None:
        self._bus.publish(OwnTrouble(ONLY, {}, self.wall_s()))

    def _refuse(self) -> NoReturn:
        raise UsageError(ONLY)


def _hosts(recording: Recording) -> list[RecordedHost]:
    """Those of the header, and whatever else frames speak of."""
    found = {one.name: one for one in recording.header.hosts}
    for frame in recording.frames:
        if frame.host is not None and frame.host not in found and len(found) < MOST_HOSTS:
            found[frame.host] = RecordedHost(frame.host)
    return list(found.values())


def _spec(host: RecordedHost) -> HostSpec:
    return HostSpec(
        host.name, user=host.user, platform=host.platform, price_per_h=host.price_per_h,
        currency=host.currency, tags=host.tags, local=host.local,
    )  # fmt: skip
