"""What the engine delegates: everything about runs goes through this seam, so that watching works without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, HostSample, RunId
from cockpit.domain.mutes import Mute
from cockpit.domain.past_runs import PastRun
from cockpit.engine.api import (
    Around,
    Forwarded,
    LaunchPlan,
    LinePlace,
    LogHit,
    LogLine,
    LogPart,
    ProfileEntry,
    RunLog,
    RunStore,
    StopReport,
)
from cockpit.engine.events import Event
from cockpit.engine.incidents_api import Mend
from cockpit.transport.base import HostTransport

if TYPE_CHECKING:
    from cockpit.config.hosts import HostSpec


class RunsService(Protocol):
    """Runs of every host. The engine tells it of hosts, samples and events; front ends ask it through the engine."""

    @property
    def store(self) -> RunStore: ...

    def begin(self) -> None:
        """The engine starts: what is remembered may be read."""

    def host_up(self, spec: HostSpec, transport: HostTransport) -> None:
        """A connection is open. It belongs to the link: do not close it."""

    def host_down(self, host: HostName) -> None:
        """The connection is gone."""

    def host_removed(self, host: HostName) -> None:
        """The host is none of ours any more."""

    def annotate(self, sample: HostSample) -> HostSample:
        """The same sample, with the runs that own its processes filled in. Called for every sample: be quick."""

    def sampled(self, sample: HostSample) -> None:
        """A sample was recorded."""

    def heard(self, event: Event) -> None:
        """An event was published."""

    async def close(self) -> None:
        """Let go of everything, within seconds. Runs go on."""

    # -- what EngineApi delegates, word for word ------------------------------------------

    def profiles(self) -> Sequence[ProfileEntry]: ...

    async def plan(
        self,
        profile: str,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan: ...

    async def plan_again(
        self,
        run: RunId,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan: ...

    def past_run(self, run: RunId) -> PastRun | None: ...

    async def past_incidents(self, run: RunId) -> Sequence[Incident]: ...

    async def earlier_incidents(self, limit: int) -> Sequence[Incident]: ...

    async def log_context(
        self, incident: Incident, offset: int, before: int, after: int
    ) -> Sequence[LogLine]: ...

    async def masked_text(self, incident: Incident, text: str) -> str: ...

    async def read_mutes(self) -> Sequence[Mute] | None:
        """None when they cannot be read."""

    async def keep_mute(self, mute: Mute) -> bool: ...

    async def drop_mute(self, mute_id: str) -> bool: ...

    async def set_remark(self, run: RunId, remark: str) -> None: ...

    def around(self, run: RunId) -> Around: ...

    def host_forwards(self, host: HostName) -> Sequence[Forwarded]: ...

    async def launch(self, plan: LaunchPlan) -> RunId: ...

    async def stop(self, run: RunId) -> StopReport: ...

    async def signal_process(
        self, host: HostName, pid: int, started_ticks: int, name: str
    ) -> None: ...

    def log(self, run: RunId) -> RunLog: ...

    def fetch(self, run: RunId) -> bool: ...

    async def search_log(
        self,
        run: RunId,
        text: str,
        offset: int,
        *,
        backward: bool,
        on_progress: Callable[[float], None],
        is_regex: bool = False,
    ) -> LogHit | None: ...

    async def line_place(
        self, run: RunId, number: int, *, on_progress: Callable[[float], None]
    ) -> LinePlace: ...

    async def log_around(self, run: RunId, offset: int) -> LogPart: ...

    async def log_page(self, run: RunId, offset: int, *, older: bool) -> LogPart: ...

    async def save_log(self, run: RunId, target: Path) -> int: ...

    def relaunch_overrides(self, incident: Incident) -> Sequence[str]: ...

    async def mend(self, incident: Incident) -> Mend: ...
