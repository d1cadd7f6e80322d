"""A run as both front ends see it. Its state comes from files on the host, never from a guess."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cockpit.domain.models import HostName, RunId
from cockpit.domain.server_sample import ServerSample

RunState: TypeAlias = Literal[
    "queued", "starting", "running", "ready", "stopping", "exited", "lost", "unreachable"
]
HOLDING: frozenset[RunState] = frozenset({"running", "ready", "stopping", "unreachable"})
"""States in which a run has its cards for itself."""
FINAL_STATES: frozenset[RunState] = frozenset({"exited", "lost"})


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the run is, where its log tells."""

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    loss: float | None = None
    step_s: float | None = None
    tokens_s: float | None = None
    eta_s: float | None = None
    samples_s: float | None = None
    data_s: float | None = None
    """Of each step, the seconds that it waited for data."""
    requests_running: int | None = None
    requests_waiting: int | None = None
    kv_pct: float | None = None
    """How full a server's KV cache is."""


@dataclass(frozen=True, slots=True)
class RunView:
    """One run on one host, at the moment of the last answer."""

    run: RunId
    profile: str
    kind: str
    host: HostName
    state: RunState
    gpus: tuple[int, ...] = ()
    code: int | None = None
    """The job's own exit code; None while it lives, when a signal ended it, or when it is not known."""
    signal: int | None = None
    reason: str | None = None
    """A stable code: exited, oom_killed, host_restarted, killed_without_record, unreachable, …"""
    by: Literal["job", "cockpit"] | None = None
    claimed_s: float | None = None
    """When the host took it on; `started_s` is when its job began, after any queue."""
    started_s: float | None = None
    ended_s: float | None = None
    ahead_s: float | None = None
    """How far the host's clock, by which these times are, is ahead of ours; None when it did not say."""
    log_bytes: int | None = None
    degraded: str | None = None
    """supervisor_died, supervisor_stalled, sh_only: it goes on, and something about it is worse than it should be."""
    attempt: int = 1
    restarts: int = 0
    """How many more attempts its policy allows in all; 0 without one."""
    restart_in_s: float | None = None
    """Until the next attempt, when last heard, while it waits for that."""
    waiting_for: str = ""
    """While queued, and after a wait in vain: who holds the cards, in its host's words."""
    position: int | None = None
    """While queued: whose turn it is, from 1."""
    slices: tuple[str, ...] = ()
    """For each of `gpus` the uuid of the slice that it has; nothing where all are whole cards."""
    leftover_pids: tuple[int, ...] = ()
    progress: Progress = field(default_factory=Progress)
    served: ServerSample | None = None
    """Of a server that is up: what its own metrics said last."""
    command: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    """Kept with the run on its host, and as untrusted as the host."""
    remark: str = ""
    """A line that a person of this computer wrote to it."""

    @property
    def ended(self) -> bool:
        return self.state in FINAL_STATES

    def here_s(self, at_s: float) -> float:
        """A time of its host's, by this computer's clock."""
        return at_s - (self.ahead_s or 0.0)

    @property
    def exit_status(self) -> int | None:
        """What `cockpit run` ends with: the code, or 128 + the signal; None when it is not known."""
        if self.code is not None:
            return self.code
        return None if self.signal is None else 128 + self.signal
