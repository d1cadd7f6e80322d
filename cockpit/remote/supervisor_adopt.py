"""A new supervisor for a job whose own has died. It is no parent of the job, so it cannot wait for it: the
sh between them writes the code, and this one watches, trims, stops, restarts and records as before."""

import os
import signal
import time

from supervisor_cards import CardLocks, card_folder  # type: ignore[import-not-found]
from supervisor_files import Refused, lock_within, read_file  # type: ignore[import-not-found]
from supervisor_hooks import HookKeeper  # type: ignore[import-not-found]
from supervisor_job import marked, set_subreaper  # type: ignore[import-not-found]
from supervisor_keeper import AFTER_S, MAX_LEFT, WATCHED, Keeper  # type: ignore[import-not-found]
from supervisor_processes import is_alive, noted_pairs, read_process  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

LOOK_S = 0.5
ENVIRON_BYTES = 4 << 20


class Adopter(HookKeeper):  # type: ignore[misc]
    """Keeps a run from the middle of its life on."""

    def __init__(self, run: "Run", _order: "Json", reply: int) -> None:
        HookKeeper.__init__(self, run, run.spec, reply)
        self.is_foreign = True
        self.before_us = run.record("sup.json")
        self.last_life = run.locks.record("hb")
        self.kept_environment: "dict[bytes, bytes]" = {}
        self.card_locks: "CardLocks | None" = None

    def live(self) -> None:
        """From the lock to the last process of the run. Raises Refused when there is nothing to adopt."""
        set_subreaper()
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        lock = self.run.locks.open("lock", os.O_RDWR)
        if not lock_within(lock, 1.0):
            raise Refused("locked")
        self.take_over()
        self.events.note("adopted", attempt=self.attempt)
        self.announce(self.phase())
        self.keep()

    def take_over(self) -> None:
        """What the dead supervisor knew, from its records, and the job's environment, from the job."""
        before, life = self.before_us, self.last_life
        pid, start = self.run.foremost()
        job = read_process(pid or 0)
        alive = job is not None and is_alive(pid, start)
        if not alive and not self.run.locks.is_held("job.lock"):
            raise Refused("not_alive")
        self.job = job if alive else None
        for key in ("sent", "stops", "attempt", "at", "hook", "ended"):
            if key in life:
                self.life[key] = life[key]
        self.attempt = self.life["attempt"]
        self.cards = before.get("cards") or []
        self.oom = tuple(before.get("oom") or ("", None))
        self.held.free_mib = before.get("free_mib") or []
        self.umask = before.get("umask", 0o077)
        self.started_s = before.get("started_s")
        if alive:
            self.kept_environment = environment_of(job.pid)
        self.take_stage()

    def take_stage(self) -> None:
        """Go on where the dead supervisor was."""
        at, ended = self.last_life.get("at", "job"), self.last_life.get("ended")
        self.stage = self.attend_job
        if at == "before":
            self.stage = self.attend_before
        elif at == "after" and isinstance(ended, dict):
            self.ended, self.stage = ended, self.attend_after
            self.due_at = time.monotonic() + AFTER_S
            keys = ("job_pid", "job_start", "started_s")
            self.began = {key: self.before_us.get(key) for key in keys}
        else:
            at = "job"
        self.life["at"] = at

    def phase(self) -> str:
        return {"before": "starting", "after": "stopping"}.get(self.life["at"], "running")

    def patience_s(self) -> float:
        patience_s: float = HookKeeper.patience_s(self)
        return min(LOOK_S, patience_s) if self.is_foreign else patience_s

    def known_strays(self) -> "list[list[int]]":
        noted = noted_pairs(self.last_life.get("strays"))
        alive = [[pid, start] for pid, start in noted if is_alive(pid, start)]
        return (alive + list(Keeper.known_strays(self)))[:MAX_LEFT]

    def reap(self) -> None:
        Keeper.reap(self)
        stages = (self.attend_before, self.attend_job, self.attend_after)
        if self.is_foreign and self.stage in stages and self.status is None:
            self.look()

    def look(self) -> None:
        """The sh's record is its last act but one. Without a record no code is made up: it is lost."""
        job = self.job
        if job is not None and is_alive(job.pid, job.start):
            self.members().alive()  # remembers who belongs to it, for when they have left it
            return
        is_job = self.stage == self.attend_job
        code = self.run.record("exit.shim" if is_job else "hook").get("code")
        if isinstance(code, int):
            self.settle(code, None)
        elif not self.run.locks.is_held("job.lock"):
            if is_job:
                self.events.note("ended", attempt=self.attempt, reason="killed_without_record")
            self.stage = self.lost if is_job else self.hook_lost

    def hook_lost(self) -> None:
        """Killed with its sh: nobody knows its code, and no job begins on a guess."""
        at = self.life["at"]
        self.events.note("hook_ended", hook=at, why="killed_without_record")
        if at == "after":
            self.record_end()
        elif self.stop:
            self.give_up("cancelled")
        else:
            self.give_up("hook_failed", None, "job")

    def lost(self) -> None:
        """By its files it is lost as soon as our lock is gone; a stop that killed it has the last word."""
        if self.stop and "KILL" in self.sent:
            self.settle(None, int(signal.SIGKILL))
            self.stage = self.attend_job
        else:
            self.stage = None

    def begin_job(self) -> None:
        """The hook held the cards for the job, and its locks went with it."""
        try:
            self.before_again()
        except Refused as refusal:
            self.give_up(refusal.code)
        else:
            HookKeeper.begin_job(self)

    def start(self, argv: "list[bytes]", extra: "dict[bytes, bytes]") -> None:
        """From here on what runs is a child of ours. Raises Refused without an environment for it."""
        if not self.kept_environment:
            raise Refused("no_environment")
        self.is_foreign = False
        Keeper.start(self, argv, extra)

    def environment(self) -> "dict[bytes, bytes]":
        return dict(marked(self.kept_environment, self.run, self.cards))

    def begin_pause(self) -> None:
        Keeper.begin_pause(self)
        try:
            self.before_again()
        except Refused:
            pass  # asked again when the pause is over

    def record_end(self) -> None:
        """What is free on cards that are another's by now tells nothing about this run."""
        if self.is_foreign and self.cards and not self.lock_again(self.cards):
            self.held.free_mib = []
        Keeper.record_end(self)

    def before_again(self) -> None:
        """The job held its cards' locks, and they went with it. Raises Refused when they are taken."""
        request = self.spec["gpus"]
        if request is not None and not self.lock_again(request["cards"]):
            raise Refused("no_free_gpu", holders="")

    def lock_again(self, wanted: "list[Json]") -> bool:
        """As many of these cards as the run had, unless others hold them."""
        if self.card_locks is None:
            locks = CardLocks(card_folder(self.run))
            request = dict(self.spec["gpus"], cards=wanted, count=len(self.cards), wait_s=0)
            cards, _in_the_way = locks.take(self.run.id, request, {})
            if cards:
                self.card_locks, self.cards = locks, cards
        return self.card_locks is not None


def environment_of(pid: int) -> "dict[bytes, bytes]":
    """What a process was started with."""
    items = read_file("/proc/%d/environ" % pid, ENVIRON_BYTES).split(b"\0")
    return dict(item.split(b"=", 1) for item in items if b"=" in item)
