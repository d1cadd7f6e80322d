"""Recordings in the making: what was before an incident at once, what follows it as it comes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cockpit.domain.incidents import Incident
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName, RunId
from cockpit.domain.recording import Header, Occasion, RecordedHost, file_stem
from cockpit.engine.bounds import end_after, within
from cockpit.engine.clock import Clock
from cockpit.engine.recording_file import RecordingFile, make_room
from cockpit.engine.recording_mask import FrameMask
from cockpit.engine.recording_rows import line_of, log_fields
from cockpit.engine.tape import HostTape
from cockpit.errors import Fact, StorageError
from cockpit.transport.own_thread import in_own_thread

log = logging.getLogger(__name__)

AFTER_S: Final = 60.0
MOST_AFTER_S: Final = 180.0
"""Further incidents of the same host go on in the same recording, up to this."""
FLUSH_S: Final = 2.0
PER_HOUR: Final = 12
MOST_HOSTS: Final = 16
MOST_WAITING_BYTES: Final = 2 << 20
WRITE_LIMIT_S: Final = 30.0
CLOSE_LIMIT_S: Final = 2.0
SPARE_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Occasions:
    """What the recorder knows and this needs."""

    tapes: Callable[[Iterable[HostName | None]], list[tuple[HostName | None, HostTape]]]
    masker: Callable[[], Masker]
    hosts: Callable[[Incident], list[RecordedHost]]
    note: Callable[[str, str], None]
    trouble: Callable[[str, Mapping[str, Fact]], None]


@dataclass(slots=True)
class _Recording:
    incident: Incident
    begun_s: float
    until_s: float
    hosts: frozenset[HostName | None]
    file: RecordingFile
    masker: Masker
    lines: list[bytes] = field(default_factory=list)
    waiting_bytes: int = 0
    also: list[str] = field(default_factory=list)
    """Keys of further incidents in it."""


class WritingOut:
    def __init__(
        self, folder: Path, limit_bytes: int, clock: Clock, occasions: Occasions, made_by: str
    ) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._occasions = occasions
        self._made_by = made_by
        self._begun: deque[float] = deque()
        self._active: dict[HostName | None, _Recording] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        return bool(self._active)

    def begin(self, incident: Incident) -> None:
        """Write a recording, or go on with the one that is under way for its host."""
        now_s, active = self._clock.now_s(), self._active.get(incident.host)
        if active is not None:
            active.until_s = min(active.begun_s + MOST_AFTER_S, now_s + AFTER_S)
            active.also.append(incident.key)
            if active.file.name:
                self._occasions.note(incident.key, active.file.name)
            return
        while self._begun and self._begun[0] < now_s - 3600:
            self._begun.popleft()
        if len(self._begun) >= PER_HOUR or self._closing.is_set():
            return
        self._begun.append(now_s)
        hosts = self._occasions.hosts(incident)[:MOST_HOSTS]
        masker = self._occasions.masker()
        recording = self._active[incident.host] = _Recording(
            incident, now_s, now_s + AFTER_S, frozenset((*(one.name for one in hosts), None)),
            RecordingFile(self._folder, self._stem(incident), FrameMask(masker)), masker,
        )  # fmt: skip
        task = asyncio.ensure_future(self._write(recording, hosts))
        self._tasks.add(task)
        task.add_done_callback(self._is_done)

    def line(self, host: HostName | None, line: bytes) -> None:
        for recording in self._active.values():
            if host in recording.hosts and recording.waiting_bytes < MOST_WAITING_BYTES:
                recording.lines.append(line)
                recording.waiting_bytes += len(line)

    def log(
        self, at_s: float, host: HostName, run: RunId, offset: int, number: int, data: bytes
    ) -> None:
        for recording in self._active.values():
            if host in recording.hosts and recording.waiting_bytes < MOST_WAITING_BYTES:
                fields = log_fields(run, offset, number, recording.masker.masked(data))
                line = line_of(at_s, "log", host, fields)
                recording.lines.append(line)
                recording.waiting_bytes += len(line)

    async def close(self) -> None:
        self._closing.set()
        for task in tuple(self._tasks):
            await end_after(CLOSE_LIMIT_S, task)

    def _is_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a recording failed", exc_info=error)

    # -- one recording ----------------------------------------------------------------------

    async def _write(self, recording: _Recording, hosts: list[RecordedHost]) -> None:
        try:
            await self._before(recording, hosts)
            while self._clock.now_s() < recording.until_s and not self._closing.is_set():
                await self._pause()
                await self._follow(recording)
            self._active.pop(recording.incident.host, None)
            await self._follow(recording)
            await self._in_thread(recording.file.finish, self._clock.wall_s())
        except StorageError as error:
            self._occasions.trouble(error.code, error.facts)
        except asyncio.TimeoutError:
            facts: dict[str, Fact] = {"path": str(self._folder), "why": "timeout"}
            self._occasions.trouble("recording_failed", facts)
        finally:
            self._active.pop(recording.incident.host, None)
            recording.file.abandon()

    async def _before(self, recording: _Recording, hosts: list[RecordedHost]) -> None:
        await asyncio.sleep(
            0
        )  # the incident's own frame is on its tape, and its other listeners had it
        tapes = self._occasions.tapes([one.name for one in hosts])
        snapshots = [(host, tape.snapshot()) for host, tape in tapes]
        recording.lines.clear()
        recording.waiting_bytes = 0
        incident = recording.incident
        occasion = Occasion(
            incident.key, incident.opened_s, incident.host, incident.family,
            incident.finding.signature, incident.severity,
        )  # fmt: skip
        header = Header(tuple(hosts), occasion, self._made_by)
        await self._in_thread(make_room, self._folder, self._limit_bytes, SPARE_BYTES)
        await self._in_thread(recording.file.begin, header, snapshots)
        for key in (incident.key, *recording.also):
            self._occasions.note(key, recording.file.name)

    async def _pause(self) -> None:
        """Until it is worth writing again, or all ends."""
        waiting = asyncio.ensure_future(self._closing.wait())
        await end_after(FLUSH_S, waiting)

    async def _follow(self, recording: _Recording) -> None:
        lines, recording.lines, recording.waiting_bytes = recording.lines, [], 0
        if lines:
            recording.masker = self._occasions.masker()
            await self._in_thread(recording.file.write, lines, FrameMask(recording.masker))

    async def _in_thread(self, work: Callable[..., object], *arguments: object) -> None:
        await within(WRITE_LIMIT_S, in_own_thread(work, *arguments))

    def _stem(self, incident: Incident) -> str:
        utc = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(incident.last_s))
        return file_stem(utc, incident.host, incident.family, incident.finding.signature)
