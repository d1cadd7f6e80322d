"""Findings and incidents: what a detector says, and what a person is told, once for each cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cockpit.domain.incident_proof import Proof, Step
from cockpit.domain.models import HostName, RunId

Severity: TypeAlias = Literal["fatal", "warning", "notice"]
Family: TypeAlias = Literal[
    "gpu_oom", "host_oom", "kv_cache", "shm", "driver", "hardware", "nccl", "hang", "nan", "disk",
    "env", "port", "crash", "leak", "near_full", "idle", "starved", "cost",
]  # fmt: skip
FactValue: TypeAlias = int | float | str | bool
IncidentState: TypeAlias = Literal["open", "seen", "applied", "recovered", "withdrawn", "closed"]

SEVERITIES: tuple[Severity, ...] = ("fatal", "warning", "notice")


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to do. `code` and `facts` make the sentence; `patch` is a change of the profile."""

    code: str
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    patch: Mapping[str, object] | None = None
    """Dotted profile keys to new values, computed by us and never a host's text; None: not a profile change."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one detector saw in one place. `line` counts from 1, by newline; `offset` is the line's first byte."""

    family: Family
    signature: str
    severity: Severity
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    line: int | None = None
    offset: int | None = None
    text: str = ""
    """The line itself, cleaned and cut."""
    cause: str = ""
    """Code of the sentence that says why; `cockpit.i18n.messages` knows it."""
    remedies: tuple[Remedy, ...] = ()
    rank: int | None = None
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of "why we think so": a time, where it is from, its text."""

    at_s: float | None
    source: str
    """log, kernel, nvml, proc, metrics, exit, …"""
    text: str
    offset: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """One cause, one incident; a newer value with the same `key` replaces an older one."""

    key: str
    """(run attempt or host and card) + family + signature: never the numbers."""
    finding: Finding
    opened_s: float
    last_s: float
    count: int = 1
    host: HostName | None = None
    gpu: int | None = None
    run: RunId | None = None
    profile: str | None = None
    evidence: tuple[Evidence, ...] = ()
    state: IncidentState = "open"
    state_why: str = ""
    steps: tuple[Step, ...] = ()
    """What became of it, the first entry being its opening."""
    proof: Proof | None = None
    """None where nobody watched when it happened: its line stood in the log already."""
    recording: str = ""
    """The flight recorder's file of that time, when there is one."""
    mute: str = ""
    """The rule that keeps it quiet, by its id: no toast, no count, no message, no hook."""

    @property
    def is_loud(self) -> bool:
        """Open and not muted: it counts. What a person has seen, or has applied a remedy of, does not."""
        return self.state == "open" and not self.mute

    @property
    def severity(self) -> Severity:
        return self.finding.severity

    @property
    def family(self) -> Family:
        return self.finding.family
