"""Listens to one run's log and end: findings become incidents, progress and readiness become states."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cockpit.domain.exits import finding_of_end
from cockpit.domain.incidents import Evidence, Finding, Remedy
from cockpit.domain.lines import Line
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.runs import Progress, RunView
from cockpit.engine.run_book import RunBook
from cockpit.errors import CockpitError

LATELY_S = 30.0
_Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class RunFinding:
    """A finding with the run that it belongs to."""

    finding: Finding
    host: HostName
    run: RunId
    profile: str
    gpu: int | None
    evidence: tuple[Evidence, ...]
    is_live: bool = True
    """False for what stood in the log before we watched it."""
    is_end: bool = False
    """It says how the run ended."""


OnRunFinding = Callable[[RunFinding], None]


class RunWatch:
    """The listener that every follower of a run has; it outlives them, so that nothing is told twice."""

    def __init__(self, host: HostName, run: RunId, book: RunBook, tell: OnRunFinding) -> None:
        self.log_says_ready = asyncio.Event()
        """A line was the one that the profile waits for."""
        self.heard_bytes = 0
        self.is_deaf = False
        """Its log cannot be followed at present: silence tells nothing."""
        self._host = host
        self._run = run
        self._book = book
        self._tell = tell
        self._ready_pattern: re.Pattern[str] | None = None
        self._told: set[_Key] = set()
        self._replaying = False
        self._end_told = False

    def ready_when(self, pattern: str | None) -> None:
        """Wait for a line that matches; without a pattern there is nothing to wait for."""
        if pattern is None:
            self.log_says_ready.set()
        else:
            self._ready_pattern = re.compile(pattern)
            self.log_says_ready.clear()

    def log_bytes(self, offset: int, data: bytes, live: bool) -> None:
        self._replaying = not live
        self.heard_bytes += len(data)
        self.is_deaf = False

    def log_lines(self, lines: list[Line]) -> None:
        pattern = self._ready_pattern
        if pattern is None or self.log_says_ready.is_set():
            return
        if any(pattern.search(line.text) for line in lines):
            self.log_says_ready.set()

    def log_gap(self, start: int, end: int, why: Literal["dropped", "skipped"]) -> None:
        """The bytes around it are watched all the same."""

    def log_restarts(self) -> None:
        self._told.clear()

    def failed(self, error: CockpitError) -> None:
        """The log is tried again; there is no verdict in it."""
        self.is_deaf = True

    def progress(self, progress: Progress) -> None:
        self._book.progress(self._run, progress)

    def finding(self, finding: Finding) -> None:
        key = (finding.signature, finding.offset)
        if self._replaying and key in self._told:
            return  # the log is shown again, and this was told before
        self._told.add(key)
        view = self._book.get(self._run)
        evidence = Evidence(None, "log", finding.text, finding.offset, finding.line)
        self._tell(
            RunFinding(
                finding,
                self._host,
                self._run,
                view.profile if view else "",
                _card_of(finding, view),
                (evidence,) if finding.text else (),
                is_live=not self._replaying,
            )
        )

    def start_is_stuck(self) -> None:
        """It is not ready, and for as long as its profile allows nothing of it has moved."""
        view = self._book.get(self._run)
        profile = view.profile if view is not None else ""
        finding = Finding(
            family="hang",
            signature="start-stuck",
            severity="warning",
            cause="start_stuck",
            remedies=(Remedy("py_spy"),),
        )
        self._tell(RunFinding(finding, self._host, self._run, profile, None, ()))

    def ended(self, record: RunRecord) -> None:
        finding = finding_of_end(record)
        if finding is None or self._end_told:
            return
        self._end_told = True
        evidence = Evidence(record.ended_s, "exit", _exit_words(record))
        self._tell(
            RunFinding(
                finding,
                self._host,
                self._run,
                record.profile,
                None,
                (evidence,),
                is_live=_ended_lately(record),
                is_end=True,
            )
        )


def _ended_lately(record: RunRecord) -> bool:
    """What the instruments say by now still tells of its end."""
    return record.ended_s is None or record.now_s - record.ended_s <= LATELY_S


def _card_of(finding: Finding, view: RunView | None) -> int | None:
    """The host's card: the log counts inside CUDA_VISIBLE_DEVICES, so its index is looked up there."""
    cards = view.gpus if view is not None else ()
    inside = finding.facts.get("gpu_index")
    if isinstance(inside, int) and 0 <= inside < len(cards):
        return cards[inside]
    if isinstance(inside, int) and not cards:
        return inside
    return cards[0] if len(cards) == 1 else None


def _exit_words(record: RunRecord) -> str:
    parts = [f"state {record.state}"]
    if record.code is not None:
        parts.append(f"code {record.code}")
    if record.signal is not None:
        parts.append(f"signal {record.signal}")
    if record.oom_kills:
        parts.append(f"{record.oom_kills} killed for memory in its cgroup")
    if record.reason:
        parts.append(record.reason)
    return ", ".join(parts)
