"""The runs of a replay: their states and logs are the recording's, and none of them can be acted on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, RunId
from cockpit.engine.api import LaunchPlan, LogHit, LogLine, LogPart, RunLog, RunStore, StopReport
from cockpit.engine.incidents_api import Mend
from cockpit.engine.log_context import around
from cockpit.engine.no_runs import NoRuns
from cockpit.engine.replay_player import ReplayPlayer
from cockpit.errors import RunUnknown, UsageError

ONLY = "replay_only"
AROUND_LINES = 200


class ReplayRuns(NoRuns):
    def __init__(self, player: ReplayPlayer) -> None:
        super().__init__()
        self._player = player

    @property
    def store(self) -> RunStore:
        return self._player.runs

    async def plan(
        self,
        profile: str,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        raise UsageError(ONLY)

    async def plan_again(
        self,
        run: RunId,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        raise UsageError(ONLY)

    async def launch(self, plan: LaunchPlan) -> RunId:
        raise UsageError(ONLY)

    async def stop(self, run: RunId) -> StopReport:
        raise UsageError(ONLY)

    async def signal_process(self, host: HostName, pid: int, started_ticks: int, name: str) -> None:
        raise UsageError(ONLY)

    async def set_remark(self, run: RunId, remark: str) -> None:
        raise UsageError(ONLY)

    def fetch(self, run: RunId) -> bool:
        raise UsageError(ONLY)

    async def mend(self, incident: Incident) -> Mend:
        raise UsageError(ONLY)

    async def save_log(self, run: RunId, target: Path) -> int:
        raise UsageError(ONLY)

    # -- what was recorded ------------------------------------------------------------------

    async def past_incidents(self, run: RunId) -> Sequence[Incident]:
        return [one for one in await self.earlier_incidents(200) if one.run == run]

    async def earlier_incidents(self, limit: int) -> Sequence[Incident]:
        known = self._player.incidents.all()
        return sorted(known, key=lambda one: -one.last_s)[:limit]

    async def log_context(
        self, incident: Incident, offset: int, before: int, after: int
    ) -> Sequence[LogLine]:
        if incident.run is None:
            return ()
        lines = self._player.logs.of(incident.run).lines()
        return around(lines, offset, before, after) if lines and lines[0].offset <= offset else ()

    def log(self, run: RunId) -> RunLog:
        if self._player.runs.get(run) is None:
            raise RunUnknown(run=run)
        return self._player.logs.of(run)

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
        """In what was recorded of it."""
        recorded = self._player.logs.of(run)
        wanted = text.casefold()
        lines = [line for line in recorded.lines() if wanted in line.text.casefold()]
        hits = [line.offset for line in lines if (line.offset < offset) == backward]
        hits = hits[::-1] if backward else hits
        return LogHit(hits[0], recorded.total_bytes) if hits else None

    async def log_around(self, run: RunId, offset: int) -> LogPart:
        recorded = self._player.logs.of(run)
        near = around(recorded.lines(), offset, AROUND_LINES, AROUND_LINES)
        return LogPart(near, recorded.total_bytes)
