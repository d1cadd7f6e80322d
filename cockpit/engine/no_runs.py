"""The runs part of an engine that only watches: `cockpit status` starts no job and asks for none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
from cockpit.engine.run_book import RunBook
from cockpit.errors import RunUnknown, UsageError
from cockpit.transport.base import HostTransport

if TYPE_CHECKING:
    from cockpit.config.hosts import HostSpec


class NoRuns:
    """A RunsService without runs."""

    def __init__(self) -> None:
        self._book = RunBook(lambda _view, _before: None)

    @property
    def store(self) -> RunStore:
        return self._book

    def begin(self) -> None: ...

    def host_up(self, spec: HostSpec, transport: HostTransport) -> None: ...

    def host_down(self, host: HostName) -> None: ...

    def host_removed(self, host: HostName) -> None: ...

    def annotate(self, sample: HostSample) -> HostSample:
        return sample

    def sampled(self, sample: HostSample) -> None: ...

    def heard(self, event: Event) -> None: ...

    async def close(self) -> None: ...

    def profiles(self) -> Sequence[ProfileEntry]:
        return ()

    async def plan(
        self,
        profile: str,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        raise UsageError("watch_only", profile=profile)

    async def plan_again(
        self,
        run: RunId,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        raise UsageError("watch_only")

    def past_run(self, run: RunId) -> PastRun | None:
        return None

    async def past_incidents(self, run: RunId) -> Sequence[Incident]:
        return ()

    async def earlier_incidents(self, limit: int) -> Sequence[Incident]:
        return ()

    async def log_context(
        self, incident: Incident, offset: int, before: int, after: int
    ) -> Sequence[LogLine]:
        return ()

    async def masked_text(self, incident: Incident, text: str) -> str:
        return text

    async def read_mutes(self) -> Sequence[Mute] | None:
        return None

    async def keep_mute(self, mute: Mute) -> bool:
        return False

    async def drop_mute(self, mute_id: str) -> bool:
        return False

    async def set_remark(self, run: RunId, remark: str) -> None:
        raise RunUnknown(run=run)

    def around(self, run: RunId) -> Around:
        return Around()

    def host_forwards(self, host: HostName) -> Sequence[Forwarded]:
        return ()

    async def launch(self, plan: LaunchPlan) -> RunId:
        raise UsageError("watch_only")

    async def stop(self, run: RunId) -> StopReport:
        raise RunUnknown(run=run)

    async def signal_process(self, host: HostName, pid: int, started_ticks: int, name: str) -> None:
        raise UsageError("watch_only", host=host)

    def log(self, run: RunId) -> RunLog:
        raise RunUnknown(run=run)

    def fetch(self, run: RunId) -> bool:
        raise RunUnknown(run=run)

    async def search_log(
        self,
        run: RunId,
        text: str,
        offset: int,
        *,
        backward: bool,
        on_progress: Callable[[float], None],
        is_regex: bool = False,
    ) -> LogHit | None:
        raise RunUnknown(run=run)

    async def line_place(
        self, run: RunId, number: int, *, on_progress: Callable[[float], None]
    ) -> LinePlace:
        raise RunUnknown(run=run)

    async def log_around(self, run: RunId, offset: int) -> LogPart:
        raise RunUnknown(run=run)

    async def log_page(self, run: RunId, offset: int, *, older: bool) -> LogPart:
        raise RunUnknown(run=run)

    async def save_log(self, run: RunId, target: Path) -> int:
        raise RunUnknown(run=run)

    def relaunch_overrides(self, incident: Incident) -> Sequence[str]:
        return ()

    async def mend(self, incident: Incident) -> Mend:
        return Mend(None, note="nothing")
