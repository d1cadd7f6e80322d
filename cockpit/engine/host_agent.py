"""What answers for the runs of a host: by the host's Python, or by its sh where there is none."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Protocol

from cockpit.domain.models import RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import Json, RunSpec
from cockpit.engine.agent_frames import TailFrame
from cockpit.engine.agent_replies import AgentHello, DiskSpace, LogBytes, StartReply, StopOutcome
from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.engine.agent import SignalName


class HostAgent(Protocol):
    """Every method raises LinkLost, ProtocolError or RunError; see RunAgent for the rest."""

    async def open(self) -> AgentHello: ...

    async def close(self) -> None: ...

    async def closed(self) -> CockpitError: ...

    async def start(self, spec: RunSpec) -> StartReply: ...

    async def list(self) -> list[RunRecord]: ...

    async def status(self, run: RunId) -> RunRecord: ...

    async def stop(
        self, run: RunId, *, int_s: float | None = None, term_s: float | None = None
    ) -> StopOutcome: ...

    def tail(
        self,
        run: RunId,
        offset: int = 0,
        *,
        budget_bytes_s: int | None = None,
        keep_up_bytes: int | None = None,
    ) -> AsyncGenerator[TailFrame, None]: ...

    async def read(self, run: RunId, offset: int, length: int) -> LogBytes: ...

    async def search(self, fields: Mapping[str, Json]) -> dict[str, object]:
        """Work on a whole log for a moment; see LogWork. Cancelling it ends it on the host."""

    async def signal(self, pid: int, started_ticks: int, name: SignalName) -> bool: ...

    async def disk(self, path: str) -> DiskSpace: ...
