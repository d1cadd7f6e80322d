"""What a supervisor writes for whoever asks: who it is, that it lives, and what it does at present."""

import json
import os
import time

from supervisor_cards import CardLocks  # type: ignore[import-not-found]
from supervisor_disk import DiskWatch  # type: ignore[import-not-found]
from supervisor_events import Events  # type: ignore[import-not-found]
from supervisor_held import HeldMemory  # type: ignore[import-not-found]
from supervisor_host import host_id, incarnation, oom_kills  # type: ignore[import-not-found]
from supervisor_processes import Process, read_process, strays_of  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]
from supervisor_trim import LogTrimmer  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

HEARTBEAT_S = 2.0
MAX_LEFT = 12
"""Processes named in a record, so that it always fits."""


class SupervisorRecords:
    """One run's files from the writing side, its heartbeat, and what is looked after at each beat."""

    def __init__(self, run: "Run", spec: "Json", reply: int) -> None:
        self.run = run
        self.spec = spec
        self.reply = reply
        self.umask = 0o077
        self.log = run.open("log", os.O_WRONLY | os.O_APPEND)
        self.attempt = 1
        self.life: "Json" = {"phase": "starting", "sent": [], "stops": 0, "attempt": 1}
        self.life["at"] = "before"
        """What runs now: what comes before the job, the job, a pause between two attempts, the hook after."""
        hole = run.locks.record("hb").get("hole")
        if hole:  # of an attempt before a restart of the host
            self.life["hole"] = hole
        self.events = Events(run, self.life)
        self.trimmer = LogTrimmer(run, self.log, spec, self.life, self.events)
        self.disks = DiskWatch([run.path, spec["cwd"]], self.events, self.life)
        self.cards: "list[Json]" = []
        self.card_locks: "CardLocks | None" = None
        self.held = HeldMemory()
        self.job: "Process | None" = None
        """The job, or a hook in its place."""
        self.started_s: "float | None" = None
        """When the first attempt began."""
        self.began: "Json" = {}
        """The job as it was announced."""
        self.oom = oom_kills()
        self._beat_at = 0.0

    def announce(self, phase: str) -> None:
        """Make durable who we are, and only then tell whoever asked for the run."""
        self.life["phase"] = phase
        own = read_process(os.getpid())
        record: "Json" = {
            "pid": os.getpid(),
            "start": None if own is None else own.start,
            "host_id": host_id(),
            "uid": os.geteuid(),
            "cards": self.cards,
            "oom": list(self.oom),
            "free_mib": self.held.free_mib,
            "umask": self.umask,
        }
        record.update(incarnation())
        if self.job is not None and phase == "running":
            self.started_s = self.started_s or time.time()
            self.began = {"job_pid": self.job.pid, "job_start": self.job.start}
            self.began["started_s"] = self.started_s
        record.update(self.began)
        self.run.write_record("sup.json", record)
        self.beat(force=True)
        self.answer({"ok": True})

    def answer(self, value: "Json") -> None:
        if self.reply >= 0:
            try:
                os.write(self.reply, json.dumps(value).encode() + b"\n")
            except OSError:
                pass  # who asked is gone; the run is not
            os.close(self.reply)
            self.reply = -1

    def beat(self, force: bool = False) -> None:
        now = time.monotonic()
        self.disks.look(now)
        if not force and now - self._beat_at < HEARTBEAT_S * 0.9:
            return
        self._beat_at = now
        self.trimmer.trim()
        if self.card_locks is not None:
            self.card_locks.keep(self.run.id, self.spec["gpus"].get("share"))
        self.life["strays"] = self.known_strays()
        self.life.update(wall_s=time.time(), mono_s=now)
        self.run.locks.write_record("hb", self.life, durable=False)

    def known_strays(self) -> "list[list[int]]":
        """Processes of the run that nothing but our parenthood, or a note of it, gives away."""
        return list(strays_of(self.job))[:MAX_LEFT]
