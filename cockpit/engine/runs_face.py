"""The half of EngineApi that is about runs, handed on word for word to the service that knows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import PastRun
from cockpit.engine.api import (
    Around,
    Forwarded,
    LaunchPlan,
    LinePlace,
    LogHit,
    LogPart,
    ProfileEntry,
    RunLog,
    RunStore,
    StopReport,
)
from cockpit.engine.incidents_api import Mend
from cockpit.engine.services import RunsService


class RunsFace:
    _runs: RunsService

    @property
    def runs_service(self) -> RunsService:
        return self._runs

    @property
    def runs(self) -> RunStore:
        return self._runs.store

    def profiles(self) -> Sequence[ProfileEntry]:
        return self._runs.profiles()

    async def plan(
        self,
        profile: str,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        return await self._runs.plan(profile, hosts=hosts, gpus=gpus, overrides=overrides)

    async def plan_again(
        self,
        run: RunId,
        *,
        hosts: Sequence[HostName] = (),
        gpus: Sequence[int] | None = None,
        overrides: Sequence[str] = (),
    ) -> LaunchPlan:
        return await self._runs.plan_again(run, hosts=hosts, gpus=gpus, overrides=overrides)

    def past(self, run: RunId) -> PastRun | None:
        return self._runs.past_run(run)

    async def past_incidents(self, run: RunId) -> Sequence[Incident]:
        return await self._runs.past_incidents(run)

    async def set_remark(self, run: RunId, remark: str) -> None:
        await self._runs.set_remark(run, remark)

    def around(self, run: RunId) -> Around:
        return self._runs.around(run)

    def host_forwards(self, host: HostName) -> Sequence[Forwarded]:
        return self._runs.host_forwards(host)

    async def launch(self, plan: LaunchPlan) -> RunId:
        return await self._runs.launch(plan)

    async def stop(self, run: RunId) -> StopReport:
        return await self._runs.stop(run)

    async def signal_process(self, host: HostName, pid: int, started_ticks: int, name: str) -> None:
        await self._runs.signal_process(host, pid, started_ticks, name)

    def log(self, run: RunId) -> RunLog:
        return self._runs.log(run)

    def fetch(self, run: RunId) -> bool:
        return self._runs.fetch(run)

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
        return await self._runs.search_log(
            run, text, offset, backward=backward, on_progress=on_progress, is_regex=is_regex
        )

    async def line_place(
        self, run: RunId, number: int, *, on_progress: Callable[[float], None]
    ) -> LinePlace:
        return await self._runs.line_place(run, number, on_progress=on_progress)

    async def log_around(self, run: RunId, offset: int) -> LogPart:
        return await self._runs.log_around(run, offset)

    async def log_page(self, run: RunId, offset: int, *, older: bool) -> LogPart:
        return await self._runs.log_page(run, offset, older=older)

    async def save_log(self, run: RunId, target: Path) -> int:
        return await self._runs.save_log(run, target)

    def relaunch_overrides(self, incident: Incident) -> Sequence[str]:
        return self._runs.relaunch_overrides(incident)

    async def mend(self, incident: Incident) -> Mend:
        return await self._runs.mend(incident)
