"""The supervisor of one run: it starts the job, keeps its records, stops it when asked, stays for the rest."""

import json
import os
import signal
import time

from supervisor_cards import CardLocks, FreeMemory, card_folder  # type: ignore[import-not-found]
from supervisor_files import (  # type: ignore[import-not-found]
    Refused,
    lock_within,
)
from supervisor_host import host_id, incarnation, oom_kills, oom_kills_since  # type: ignore[import-not-found]
from supervisor_job import set_subreaper, start_job  # type: ignore[import-not-found]
from supervisor_ladder import STRAGGLER_S, Ladder  # type: ignore[import-not-found]
from supervisor_log import LogTrimmer  # type: ignore[import-not-found]
from supervisor_processes import (  # type: ignore[import-not-found]
    Members,
    Process,
    first_orphan,
    holds_a_card,
    read_process,
)
from supervisor_run import Run, verdict  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

HEARTBEAT_S = 2.0
MAX_LEFT = 12
"""Processes named in an exit record, so that it always fits."""

WATCHED = {signal.SIGCHLD, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
"""Waited for rather than handled. TERM and INT change nothing: a host that shuts down tells the job
itself, and whoever wants the run to end asks for a stop."""


class Supervisor:
    """Starts one job, keeps its records, climbs the stop ladder when asked, and stays for the rest."""

    def __init__(self, run: "Run", order: "Json", reply: int) -> None:
        self.run = run
        self.spec = order["spec"]
        self.secrets = order.pop("secrets")
        self.umask = order["umask"]
        self.reply = reply
        self.log = run.open("log", os.O_WRONLY | os.O_APPEND)
        self.life: "Json" = {"phase": "starting", "sent": [], "stops": 0}
        self.trimmer = LogTrimmer(self.log, order["spec"]["log_max_mib"], self.life, run.locks)
        self.cards: "list[Json]" = []
        self.card_locks: "CardLocks | None" = None
        self.job: "Process | None" = None
        self.shim_gone = False
        self.status: "int | None" = None
        self.ended_at = 0.0
        self.recorded = False
        self.ladder: "Ladder | None" = None
        self.stop: "Json" = {}
        self.beat_at = 0.0
        self.oom = oom_kills()

    def live(self) -> None:
        """The whole life, from the locks to the last process of the run. Raises Refused."""
        set_subreaper()
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        lock = self.run.locks.open("lock", os.O_RDWR)
        if not lock_within(lock, 5.0):
            raise Refused("locked")
        self.beat(force=True)
        try:
            self.reserve()
            self.start_job()
        except Refused as refusal:
            self.give_up(refusal.code)
            raise
        self.announce("running")
        while not self.is_over():
            signal.sigtimedwait(WATCHED, self.patience_s())
            self.reap()
            self.follow_stop()
            self.record_end()
            self.beat()

    def patience_s(self) -> float:
        busy = self.ladder is not None or (self.status is not None and not self.recorded)
        return 0.1 if busy else HEARTBEAT_S

    # cards

    def reserve(self) -> None:
        """Hold the cards that were asked for, in a queue if that was asked too. Raises Refused."""
        request = self.spec["gpus"]
        if request is None:
            return
        self.card_locks = CardLocks(card_folder(self.run))
        free, until = FreeMemory(request.get("min_free_mib")), time.monotonic() + request["wait_s"]
        while True:
            self.cards, in_the_way = self.card_locks.take(self.run.id, request, free.by_card())
            if self.cards:
                return
            if time.monotonic() >= until:
                raise Refused("no_free_gpu", holders=in_the_way)
            self.life["waiting_for"] = in_the_way
            if self.life["phase"] != "queued":
                self.announce("queued")
            signal.sigtimedwait(WATCHED, max(0.01, min(1.0, until - time.monotonic())))
            self.beat(force=True)
            if self.run.record("stop.json"):
                raise Refused("cancelled")

    def give_up(self, reason: str) -> None:
        """The end of a run whose job never began."""
        ended: "Json" = {"code": None, "signal": None, "reason": reason, "by": "cockpit"}
        self.run.write_record("exit", dict(ended, wall_s=time.time()))

    # the job

    def start_job(self) -> None:
        secrets, self.secrets = self.secrets, {}
        self.job = start_job(self.run, self.spec, secrets, self.cards, self.log, self.umask)

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
        }
        record.update(incarnation())
        if self.job is not None:
            record.update(job_pid=self.job.pid, job_start=self.job.start, started_s=time.time())
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

    def reap(self) -> None:
        """Collect every child; orphans of the job come to us too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.job is not None and pid == self.job.pid and self.status is None:
                self.job_is_gone(status)

    def job_is_gone(self, status: int) -> None:
        """Its status is the job's, unless only the sh was killed: then the job is ours by now."""
        orphan = None
        if os.WIFSIGNALED(status) and not self.shim_gone and self.job is not None:
            orphan = first_orphan(self.job.session, self.job.pid)
        if orphan is not None:
            self.shim_gone, self.job = True, orphan
        else:
            self.status, self.ended_at = status, time.monotonic()

    # stopping

    def follow_stop(self) -> None:
        """Begin the ladder that stop.json asks for, hurry it when asked again, take the next step."""
        asked = self.run.record("stop.json")
        if asked and asked != self.stop:
            self.stop = asked
            grace_s = self.run.grace_s(asked)
            if self.ladder is not None:
                self.ladder.hurry(grace_s)
            else:
                group = None if self.job is None else self.job.group
                self.ladder = Ladder(self.members(), group, grace_s)
        if self.ladder is None:
            return
        self.ladder.advance(time.monotonic(), self.status is not None)
        self.life["sent"] = self.ladder.sent
        if self.ladder.done:
            self.end_stop()

    def end_stop(self) -> None:
        """Say what is left, in the record of the end if there can be one."""
        ladder, self.ladder = self.ladder, None
        self.reap()
        left = [] if ladder is None else list(ladder.left.values())
        if self.status is not None:
            self.write_end([] if ladder is None else ladder.sent, left)
        self.life["stops"] = self.stop.get("number", 0)
        self.life["left"] = [[process.pid, process.start] for process in left[:MAX_LEFT]]
        self.beat(force=True)

    def members(self) -> "Members":
        job = self.job
        return Members(
            self.run.id,
            None if job is None else job.pid,
            None if job is None else job.start,
            os.getpid(),
        )

    # the end

    def record_end(self) -> None:
        """Write how the job ended once the rest of the run is gone, or has had its moment."""
        if self.status is None or self.recorded or self.ladder is not None:
            return
        left = list(self.members().alive().values())
        if not left or time.monotonic() - self.ended_at > STRAGGLER_S:
            self.write_end([], left)

    def write_end(self, sent: "list[str]", left: "list[Process]") -> None:
        if self.recorded:
            ended = self.run.record("exit")  # a stop of what was left over: the end itself stands
        elif self.status is not None and os.WIFSIGNALED(self.status):
            ended = self.verdict(None, os.WTERMSIG(self.status))
        else:
            ended = self.verdict(os.WEXITSTATUS(self.status or 0), None)
        ended["sent"] = sent
        ended["left"] = [[process.pid, process.start] for process in left[:MAX_LEFT]]
        self.run.write_record("exit", ended)
        self.recorded = True

    def verdict(self, code: "int | None", number: "int | None") -> "Json":
        kills = oom_kills_since(list(self.oom))
        return dict(verdict(code, number, kills, bool(self.stop)))

    def is_over(self) -> bool:
        """Done when the end is recorded and nothing of the run lives. Until then what is left over
        can still be stopped, and keeps its cards while it holds one open."""
        if not self.recorded or self.ladder is not None:
            return False
        left = self.members().alive()
        if self.card_locks is not None and not any(holds_a_card(pid) for pid in left):
            self.card_locks.release()
        return not left

    # signs of life

    def beat(self, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now - self.beat_at < HEARTBEAT_S * 0.9:
            return
        self.beat_at = now
        self.trimmer.trim()
        if self.card_locks is not None:
            self.card_locks.keep(self.run.id, self.spec["gpus"].get("share"))
        self.life.update(wall_s=time.time(), mono_s=now)
        self.run.locks.write_record("hb", self.life, durable=False)
