"""A host's answer about one run, checked and made harmless. A host is not trusted to keep to its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_ids import is_run_id
from cockpit.domain.runs import RunState, RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import LATEST_S

HostRunState: TypeAlias = Literal[
    "starting", "queued", "running", "stopping", "exited", "lost", "other_host"
]
_MAX_ITEMS = 256
_INT_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process of a run that outlived it; pid and start identify it on its host."""

    pid: int
    started_ticks: int
    command: str = ""
    state: str = ""
    """The kernel's letter: D waits in a driver or for a disk, where no signal reaches it."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as its files on the host tell it. Times are the host's own; `now_s` is its clock."""

    run: RunId
    state: HostRunState
    now_s: float
    profile: str = ""
    kind: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    tags: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    code: int | None = None
    signal: int | None = None
    reason: str | None = None
    """exited, signal, oom_killed, killed_without_record, host_restarted, no_free_gpu, never_started, …"""
    by: Literal["job", "cockpit"] | None = None
    claimed_s: float | None = None
    """When its folder was made; `started_s` is when its job began, after any queue."""
    started_s: float | None = None
    ended_s: float | None = None
    heard_s: float | None = None
    """The supervisor's last sign of life."""
    degraded: str | None = None
    log_bytes: int | None = None
    log_hole: tuple[int, int] | None = None
    """First byte dropped by retention, and the first one after it."""
    oom_kills: int | None = None
    """Processes that the kernel killed for memory in the run's cgroup while it ran."""
    job_pid: int | None = None
    job_started_ticks: int | None = None
    leftovers: tuple[Leftover, ...] = ()
    signals: tuple[str, ...] = ()
    """What the stop ladder has sent, in order."""
    waiting_for: str | None = None
    """While queued, and after a wait in vain: what holds the cards."""
    position: int | None = None
    """While queued: whose turn it is, from 1."""
    attempt: int = 1
    restarts: int = 0
    """How many more attempts its policy allows in all; 0 without one."""
    restart_on: str = ""
    next_s: float | None = None
    """When the next attempt begins, while it waits for that."""
    events: int = 0
    """The number of its newest event."""
    disk_low: bool = False
    """A disk that it writes to has hardly any room left."""
    folder: str = ""
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def restart_in_s(self) -> float | None:
        return None if self.next_s is None else max(0.0, self.next_s - self.now_s)

    def view(self, host: HostName) -> RunView:
        """As the front ends see it; progress and readiness are added by who follows the log."""
        return RunView(
            run=self.run,
            profile=self.profile,
            kind=self.kind,
            host=host,
            state=_VIEW_STATES[self.state],
            gpus=self.gpus,
            slices=_slices(self.gpu_uuids),
            code=self.code,
            signal=self.signal,
            reason=self.reason,
            by=self.by,
            claimed_s=self.claimed_s,
            started_s=self.started_s,
            ended_s=self.ended_s,
            log_bytes=self.log_bytes,
            degraded=self.degraded,
            attempt=self.attempt,
            restarts=self.restarts,
            restart_in_s=self.restart_in_s,
            waiting_for=self.waiting_for or "",
            position=self.position,
            leftover_pids=tuple(process.pid for process in self.leftovers),
            command=self.command,
            tags=self.tags,
            notes=self.notes,
        )


def _slices(uuids: Sequence[str]) -> tuple[str, ...]:
    found = tuple(uuid if uuid.startswith("MIG-") else "" for uuid in uuids)
    return found if any(found) else ()


_VIEW_STATES: Mapping[HostRunState, RunState] = {
    "starting": "starting",
    "queued": "queued",
    "running": "running",
    "stopping": "stopping",
    "exited": "exited",
    "lost": "lost",
    "other_host": "unreachable",
}


class NotARecord(ValueError):
    """A run's record without a usable id, state or clock."""


def decode_record(answer: object) -> RunRecord:
    """One record of an answer; what has the wrong type counts as missing. Raises NotARecord."""
    if not isinstance(answer, dict):
        raise NotARecord("not an object")
    fields = _Fields(answer)
    run, now_s = answer.get("run"), fields.time("now_s")
    if not isinstance(run, str) or not is_run_id(run) or now_s is None:
        raise NotARecord("no run id or no clock")
    return RunRecord(
        run=RunId(run),
        state=_state(answer.get("state")),
        now_s=now_s,
        profile=fields.text("profile") or "",
        kind=fields.text("kind") or "",
        command=fields.texts("argv"),
        cwd=fields.text("cwd") or "",
        tags=fields.texts("tags"),
        gpus=fields.integers("gpus"),
        gpu_uuids=fields.texts("gpu_uuids"),
        code=fields.integer("code", 0, 255),
        signal=fields.integer("signal", 1, 127),
        reason=fields.text("reason"),
        by=_by(answer.get("by")),
        claimed_s=fields.time("claimed_s"),
        started_s=fields.time("started_s"),
        ended_s=fields.time("ended_s"),
        heard_s=fields.time("heard_s"),
        degraded=fields.text("degraded"),
        log_bytes=fields.integer("log_bytes", 0),
        log_hole=_hole(fields.integers("log_hole")),
        oom_kills=fields.integer("oom_kills"),
        job_pid=fields.integer("job_pid"),
        job_started_ticks=fields.integer("job_started_ticks"),
        leftovers=decode_leftovers(answer.get("leftovers")),
        signals=fields.texts("signals"),
        waiting_for=fields.text("waiting_for"),
        position=fields.integer("position", 1, 1 << 20),
        attempt=fields.integer("attempt", 1, 1 << 20) or 1,
        restarts=fields.integer("restarts", 0, 1 << 20) or 0,
        restart_on=fields.text("restart_on") or "",
        next_s=fields.time("next_s"),
        events=fields.integer("events", 0) or 0,
        disk_low=answer.get("disk_low") is True,
        folder=fields.text("folder") or "",
        notes=_notes(answer.get("notes")),
    )


def number_of(answer: Mapping[str, object], key: str) -> float | None:
    """A finite number of an answer, None when it is missing or something else."""
    return _Fields(answer).number(key)


class _Fields:
    """Typed reading of an untrusted object, bounded and harmless."""

    def __init__(self, answer: Mapping[str, object]) -> None:
        self._answer = answer

    def text(self, key: str) -> str | None:
        return _text(self._answer.get(key))

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(text for item in self._items(key) if (text := _text(item)) is not None)

    def number(self, key: str) -> float | None:
        value = self._answer.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if -1e12 < value < 1e12 else None

    def time(self, key: str) -> float | None:
        """A moment that a calendar has."""
        value = self.number(key)
        return value if value is not None and 0.0 <= value < LATEST_S else None

    def integer(self, key: str, low: int = -_INT_MAX, high: int = _INT_MAX) -> int | None:
        value = _integer(self._answer.get(key))
        return value if value is not None and low <= value <= high else None

    def integers(self, key: str) -> tuple[int, ...]:
        return tuple(number for item in self._items(key) if (number := _integer(item)) is not None)

    def _items(self, key: str) -> list[object]:
        value = self._answer.get(key)
        return value[:_MAX_ITEMS] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return safe_line(value) if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) <= _INT_MAX else None


def _state(value: object) -> HostRunState:
    for state in _VIEW_STATES:
        if value == state:
            return state
    raise NotARecord("no state")


def _by(value: object) -> Literal["job", "cockpit"] | None:
    if value == "job":
        return "job"
    return "cockpit" if value == "cockpit" else None


def _hole(bounds: tuple[int, ...]) -> tuple[int, int] | None:
    return (bounds[0], bounds[1]) if len(bounds) == 2 and 0 <= bounds[0] < bounds[1] else None


def decode_leftovers(value: object) -> tuple[Leftover, ...]:
    """Processes as an answer lists them; what is not one is left out."""
    found = []
    for item in value[:_MAX_ITEMS] if isinstance(value, list) else []:
        fields = _Fields(item if isinstance(item, dict) else {})
        pid, ticks = fields.integer("pid"), fields.integer("started_ticks")
        if pid is not None and ticks is not None:
            state = (fields.text("state") or "")[:1]
            found.append(Leftover(pid, ticks, fields.text("command") or "", state))
    return tuple(found)


def _notes(value: object) -> tuple[tuple[str, str], ...]:
    pairs = list(value.items())[:_MAX_ITEMS] if isinstance(value, dict) else []
    return tuple(
        (safe_line(key), safe_line(text))
        for key, text in pairs
        if isinstance(key, str) and isinstance(text, str)
    )
