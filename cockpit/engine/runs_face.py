"""The half of EngineApi that is about runs, handed on word for word to the service that knows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, RunId
from cockpit.engine.api import LaunchPlan, ProfileEntry, RunLog, RunStore, StopReport
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

    async def launch(self, plan: LaunchPlan) -> RunId:
        return await self._runs.launch(plan)

    async def stop(self, run: RunId) -> StopReport:
        return await self._runs.stop(run)

    async def signal_process(self, host: HostName, pid: int, started_ticks: int, name: str) -> None:
        await self._runs.signal_process(host, pid, started_ticks, name)

    def log(self, run: RunId) -> RunLog:
        return self._runs.log(run)

    async def save_log(self, run: RunId, target: Path) -> int:
        return await self._runs.save_log(run, target)

    def relaunch_overrides(self, incident: Incident) -> Sequence[str]:
        return self._runs.relaunch_overrides(incident)
