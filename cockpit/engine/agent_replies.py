"""What the on-host agent answers, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.domain.run_record import Leftover, RunRecord, number_of
from cockpit.domain.text import safe_line

_MAX_CARDS = 64


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
    held_mib: tuple[tuple[int, int], ...] = ()
    """(card, MiB) that a reserved card has less free than before the run, though nothing of it is left."""


def decode_held(told: object) -> tuple[tuple[int, int], ...]:
    """Cards with the memory that a stop did not give back, as far as they are some."""
    found = []
    for item in told[:_MAX_CARDS] if isinstance(told, list) else []:
        if isinstance(item, list) and len(item) == 2 and all(type(part) is int for part in item):
            index, mib = item
            if 0 <= index < 1 << 16 and 0 < mib < 1 << 32:
                found.append((index, mib))
    return tuple(found)


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


def decode_hello(hello: Mapping[str, object], host: Mapping[str, object]) -> AgentHello:
    """The program's first words and its answer to `open`, as one."""
    boot, first = host.get("boot_id"), host.get("pid1_start")
    root = host.get("root")
    return AgentHello(
        version=safe_line(str(hello.get("version"))[:40]),
        python=safe_line(str(hello.get("python"))[:40]),
        host_id=safe_line(str(host.get("host_id"))[:80]),
        incarnation=safe_line(f"{boot}:{first}"[:120]),
        root=safe_line(root) if isinstance(root, str) else None,
        now_s=number_of(host, "now_s") or 0.0,
    )
