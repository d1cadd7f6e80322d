"""The client of remote/supervisor.py's `serve` mode: every question about a host's runs, on one channel.

One task reads frames and hands them out; a tail that nobody reads stops at its window and costs the
others nothing. When the link goes, every wait ends with LinkLost and the agent is of no more use:
whoever owns it makes a new one and resumes its tails by offset.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cockpit.domain.models import RunId
from cockpit.domain.run_record import Leftover, RunRecord
from cockpit.domain.run_spec import RunSpec
from cockpit.engine.agent_frames import Data, End, Hole, TailFrame, Truncated
from cockpit.transport.base import ByteChannel, HostTransport

__all__ = [
    "AgentHello", "Data", "DiskSpace", "End", "Hole", "LogBytes", "RunAgent", "StartReply",
    "StopOutcome", "TailFrame", "Truncated",
]  # fmt: skip

OpenAgent: TypeAlias = Callable[[HostTransport, str], Awaitable[ByteChannel]]
"""Ships remote/supervisor.py and runs its `serve` mode by the given Python."""

SignalName: TypeAlias = Literal["INT", "TERM", "KILL"]


@dataclass(frozen=True, slots=True)
class AgentHello:
    """What the agent said of itself first."""

    version: str
    python: str
    host_id: str
    incarnation: str
    root: str | None
    """Where runs are kept unless a spec says otherwise; None when no folder will do."""
    now_s: float


@dataclass(frozen=True, slots=True)
class StartReply:
    """The run is on the host's disk. `existed`: it was there before, and nothing was started."""

    record: RunRecord
    existed: bool


@dataclass(frozen=True, slots=True)
class StopOutcome:
    """What a stop came to; `left` is empty when nothing of the run is left."""

    record: RunRecord
    signals: tuple[str, ...]
    left: tuple[Leftover, ...]


@dataclass(frozen=True, slots=True)
class LogBytes:
    """A piece of a log, and how long the log is in all."""

    offset: int
    data: bytes
    size: int


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Room on the file system of a folder; None where it does not say."""

    free_mib: int | None
    total_mib: int | None
    inodes_free_pct: float | None


class RunAgent:
    """Asks one host about its runs. Every method raises LinkLost, ProtocolError or RunError."""

    def __init__(
        self,
        transport: HostTransport,
        python: str,
        *,
        run_root: str | None = None,
        open_agent: OpenAgent | None = None,
    ) -> None:
        self._transport = transport
        self._python = python
        self._run_root = run_root
        self._open_agent = open_agent

    async def open(self) -> AgentHello:
        """Start the program on the host and wait for its hello. Raises what starting it raises."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the agent. Runs go on."""
        raise NotImplementedError

    async def start(self, spec: RunSpec) -> StartReply:
        """Start a run, or find that it exists. Raises LaunchFailed, NotNow (no card and no wait)."""
        raise NotImplementedError

    async def list(self) -> list[RunRecord]:
        """Every run of this host, the newest first."""
        raise NotImplementedError

    async def status(self, run: RunId) -> RunRecord:
        """Raises RunUnknown."""
        raise NotImplementedError

    async def stop(
        self, run: RunId, *, int_s: float | None = None, term_s: float | None = None
    ) -> StopOutcome:
        """The stop ladder to its end; None means the grace of the run's spec. Raises RunUnknown."""
        raise NotImplementedError

    def tail(
        self,
        run: RunId,
        offset: int = 0,
        *,
        budget_bytes_s: int | None = None,
        keep_up_bytes: int | None = None,
    ) -> AsyncIterator[TailFrame]:
        """Follow a log from a byte offset to the run's end. Raises RunUnknown.

        `budget_bytes_s` slows it down; with `keep_up_bytes` it skips (a Hole says what) rather than
        be further behind than that. Close the iterator (`aclosing`) to stop early.
        """
        raise NotImplementedError

    async def read(self, run: RunId, offset: int, length: int) -> LogBytes:
        """At most `length` bytes of a log, 256 KiB at a time. Raises RunUnknown."""
        raise NotImplementedError

    async def signal(self, pid: int, started_ticks: int, name: SignalName) -> bool:
        """Send a signal to the process that still is the one meant; False when it is gone."""
        raise NotImplementedError

    async def disk(self, path: str) -> DiskSpace:
        """Room for a folder that need not exist yet."""
        raise NotImplementedError
