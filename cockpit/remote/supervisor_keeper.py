"""What stays with a run: it follows the job through its attempts, stops it when asked, records its end,
and remains for whatever is left of it."""

import os
import signal
import time

from supervisor_files import Refused  # type: ignore[import-not-found]
from supervisor_host import oom_kills_since  # type: ignore[import-not-found]
from supervisor_job import (  # type: ignore[import-not-found]
    job_command,
    job_environment,
    start_process,
)
from supervisor_ladder import STRAGGLER_S, Ladder  # type: ignore[import-not-found]
from supervisor_processes import (  # type: ignore[import-not-found]
    Members,
    Process,
    first_orphan,
    holds_a_card,
)
from supervisor_records import HEARTBEAT_S, MAX_LEFT, SupervisorRecords  # type: ignore[import-not-found]
from supervisor_restart import Restarts, claim_attempt  # type: ignore[import-not-found]
from supervisor_run import Run, verdict  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Json = dict[str, Any]

AFTER_S = 600.0
"""How long the hook after a job may take."""

WATCHED = {signal.SIGCHLD, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
"""Waited for rather than handled. TERM and INT change nothing: a host that shuts down tells the job
itself, and whoever wants the run to end asks for a stop."""


class Keeper(SupervisorRecords):  # type: ignore[misc]
    """One stage follows the other: a job, a pause before the next attempt, the rest."""

    def __init__(self, run: "Run", spec: "Json", reply: int) -> None:
        SupervisorRecords.__init__(self, run, spec, reply)
        self.secrets: "dict[str, str]" = {}
        self.restarts = Restarts(spec)
        self._members: "Members | None" = None
        self.shim_gone = False
        self.stage: "Callable[[], None] | None" = None
        self.status: "Json | None" = None
        """How the job, or the hook that runs now, ended; None while it lives."""
        self.status_at = 0.0
        self.ended: "Json | None" = None
        """How the job ended for good."""
        self.recorded = False
        self.due_at = 0.0
        self.ladder: "Ladder | None" = None
        self.sent: "list[str]" = []
        self.left: "list[Process]" = []
        self.stop: "Json" = {}
        self._environment: "dict[bytes, bytes] | None" = None

    # the loop

    def keep(self) -> None:
        """To the last process of the run, or until what is left is beyond us."""
        while self.stage is not None:
            signal.sigtimedwait(WATCHED, self.patience_s())
            self.reap()
            self.follow_stop()
            self.go_on()
            self.tell_stopped()
            self.beat()

    def go_on(self) -> None:
        """From stage to stage, as far as it goes without waiting."""
        before: "Callable[[], None] | None" = None
        while self.ladder is None and self.stage is not None and self.stage != before:
            before = self.stage
            self.stage()

    def patience_s(self) -> float:
        if self.ladder is not None or self.stage == self.attend_job and self.status is not None:
            return 0.1
        patience_s = min(HEARTBEAT_S, self.disks.wait_s)
        if self.stage == self.pause:
            patience_s = min(patience_s, max(0.01, self.due_at - time.monotonic()))
        return float(patience_s)

    # processes

    def start_job(self) -> None:
        """Raises Refused."""
        command = job_command(self.spec, self.run, self.attempt)
        self.events.note("started", attempt=self.attempt, offset=os.fstat(self.log).st_size)
        for key in ("hook", "ended"):
            self.life.pop(key, None)
        self.life["at"] = "job"
        self.beat(force=True)
        self.start(command, {})
        self.stage = self.attend_job

    def start(self, argv: "list[bytes]", extra: "dict[bytes, bytes]") -> None:
        env = self.environment()
        env[b"COCKPIT_ATTEMPT"] = b"%d" % self.attempt
        env.update(extra)
        self.status, self.shim_gone = None, False
        self.job = start_process(self.run, argv, env, self.log, self.umask, self.spec["cwd"])
        self._members = None

    def environment(self) -> "dict[bytes, bytes]":
        """Of the job, its hooks and its later attempts: it is put together once."""
        if self._environment is None:
            tell = self.events.note
            self._environment = job_environment(self.spec, self.secrets, self.run, self.cards, tell)
        return dict(self._environment)

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
        elif os.WIFSIGNALED(status):
            self.settle(None, os.WTERMSIG(status))
        else:
            self.settle(os.WEXITSTATUS(status), None)

    def settle(self, code: "int | None", number: "int | None") -> None:
        """How it ended is known. A stop that was asked for counts, though we may not have read it yet."""
        kills = oom_kills_since(list(self.oom))
        stopped = bool(self.run.record("stop.json"))
        self.status, self.status_at = verdict(code, number, kills, stopped), time.monotonic()

    def members(self) -> "Members":
        """The same ones as long as the job is the same: what was seen once is found again."""
        job = self.job
        if self._members is None:
            started = (None, None) if job is None else (job.pid, job.start)
            self._members = Members(self.run, started, os.getpid(), self.known_strays())
        return self._members

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
        steps = len(self.ladder.sent)
        self.ladder.advance(time.monotonic(), self.status is not None)
        self.life["sent"] = self.ladder.sent
        for name in self.ladder.sent[steps:]:
            self.events.note("signal_sent", signal=name)
        if self.ladder.done:
            self.end_ladder()

    def end_ladder(self) -> None:
        ladder, self.ladder = self.ladder, None
        assert ladder is not None
        self.reap()
        self.sent, self.left = ladder.sent, list(ladder.left.values())
        if self.recorded:
            self.write_end(self.run.record("exit"))  # of what was left over: the end itself stands

    def tell_stopped(self) -> None:
        """Say that a stop has come to its end, once nothing more is done for it."""
        number = self.stop.get("number", 0)
        if self.ladder is not None or self.life["stops"] == number:
            return
        if self.recorded or self.status is None:
            self.life["left"] = [[process.pid, process.start] for process in self.left[:MAX_LEFT]]
            self.life["stops"] = number
            self.beat(force=True)

    # stages

    def attend_job(self) -> None:
        """Until the job is gone, and the rest of its processes too or their moment has passed."""
        if self.status is None:
            return
        left = list(self.members().alive().values())
        if left and not self.stop and time.monotonic() - self.status_at <= STRAGGLER_S:
            return
        self.left = left
        self.ended = self.restarts.judged(self.status)
        facts = {key: self.ended[key] for key in ("code", "signal", "reason")}
        self.events.note("ended", attempt=self.attempt, offset=os.fstat(self.log).st_size, **facts)
        if not self.stop and self.restarts.wanted(self.attempt, self.ended):
            self.begin_pause()
        else:
            self.finish()

    def begin_pause(self) -> None:
        """What is left of one attempt would hold the cards and ports of the next."""
        pause_s = self.restarts.pause_s(self.attempt)
        self.due_at = time.monotonic() + pause_s
        self.life.update(phase="starting", at="pause", ended=self.ended)
        self.life["next_s"] = time.time() + pause_s
        self.events.note("restart_due", attempt=self.attempt + 1, in_s=round(pause_s, 1))
        if self.left:
            self.ladder = Ladder(self.members(), None, (0.0, self.run.grace_s({})[1]))
        self.stage = self.pause
        self.beat(force=True)

    def pause(self) -> None:
        if self.stop:
            self.finish()
        elif self.left:
            self.events.note("restart_given_up", why="left", count=len(self.left))
            self.finish()
        elif time.monotonic() >= self.due_at:
            self.start_again()

    def start_again(self) -> None:
        try:
            claim_attempt(self.run, self.attempt + 1)
            self.attempt += 1
            self.run.clear_record("exit.shim")
            self.before_again()
            self.life.update(sent=[], attempt=self.attempt)
            self.beat(force=True)
            self.start_job()
        except (Refused, OSError) as error:
            why = error.code if isinstance(error, Refused) else str(error)
            self.events.note("restart_given_up", why=why)
            self.finish()
        else:
            self.sent, self.left = [], []
            self.life.pop("next_s", None)
            self.announce("running")

    def before_again(self) -> None:
        """What another attempt needs that the one before it had."""

    def finish(self) -> None:
        """What comes after the job, which is its record here."""
        self.life.pop("next_s", None)
        self.record_end()

    def record_end(self) -> None:
        if self.stop:  # while the cards are still ours: afterwards it may be the next run's
            self.life["held"] = self.held.still(self.cards, self.spec)
        self.write_end(self.ended or {})

    def write_end(self, ended: "Json") -> None:
        ended["sent"] = self.sent if self.stop else []
        ended["left"] = [[process.pid, process.start] for process in self.left[:MAX_LEFT]]
        ended["attempt"] = self.attempt
        self.beat(force=True)
        self.run.write_record("exit", ended)
        self.recorded = True
        self.stage = self.rest

    def rest(self) -> None:
        """What is left over can still be stopped, and keeps its cards while it holds one open."""
        left = self.members().alive()
        if self.card_locks is not None and not any(holds_a_card(pid) for pid in left):
            self.card_locks.release()
        if not left:
            self.stage = None

    def give_up(self, reason: str, code: "int | None" = None, by: str = "cockpit") -> None:
        """The end of a run whose job never began."""
        ended: "Json" = {"code": code, "signal": None, "reason": reason, "by": by}
        self.events.note("given_up", why=reason, code=code)
        self.write_end(dict(ended, wall_s=time.time()))
