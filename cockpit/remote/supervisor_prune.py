"""Runs that ended long ago give their room back. What their clients know of them stays with the clients."""

import fcntl
import os
import shutil
import time

from supervisor_files import MIB, Refused, try_lock  # type: ignore[import-not-found]
from supervisor_host import incarnation  # type: ignore[import-not-found]
from supervisor_run import SPOILT, Run  # type: ignore[import-not-found]
from supervisor_store import Store  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    Json = dict[str, Any]

KEEP_S = 30 * 86400.0
"""An ended run is kept for so long,"""
KEEP_MIB = 10 * 1024
"""or for as long as it and every newer one take no more than this,"""
SURE_S = 86400.0
"""but never less than a day."""
FIRST_AFTER_S = 60.0
EVERY_S = 3600.0
GONE = ".gone-"
CLOCK_UNSET_S = 1.6e9
"""No run of ours is older: such a time is of a clock that had not been set yet, and says no age."""


class Pruner:
    """Looks at one folder a step, so that no client waits for it."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._due_at = time.monotonic() + FIRST_AFTER_S
        self._round: "Iterator[None]" = iter(())

    def step(self, now: float) -> None:
        if now >= self._due_at:
            self._due_at = now + EVERY_S
            self._round = self.look()
        next(self._round, None)

    def look(self) -> "Iterator[None]":
        """One after the other, the newest first, since they are the ones that fill the budget."""
        taken_mib = 0.0
        for path in self._store.newest():
            yield
            try:
                age_s = self._age_s(path)
                if age_s is None:
                    continue
                taken_mib += size_mib(path)
                if age_s > KEEP_S or (taken_mib > KEEP_MIB and age_s > SURE_S):
                    remove(path, self._store.host)
            except (OSError, Refused) + SPOILT:
                continue  # a folder that is not as ours are

    def _age_s(self, path: str) -> "float | None":
        """How long ago a run of this host ended for good; None for every other, and where nothing tells."""
        with Run(path, self._store.host) as run:
            record: "Json" = run.describe()
            if record["state"] not in ("exited", "lost") or record.get("leftovers"):
                return None
            if record.get("reason") == "bad_record" or run.is_supervised():
                return None
            return age_s_of(run, float(record.get("ended_s") or record["claimed_s"]))


def age_s_of(run: "Run", ended: float) -> "float | None":
    """By the wall clock, which may have been set meanwhile: since this boot there is a better one."""
    age_s = time.time() - ended
    beat = run.locks.record("hb").get("mono_s")
    if run.record("sup.json").get("boot_id") == incarnation()["boot_id"]:
        if isinstance(beat, float):
            age_s = min(age_s, time.monotonic() - beat)
    elif ended < CLOCK_UNSET_S <= time.time():
        return None
    return age_s


def size_mib(path: str) -> float:
    """What its files take on the disk: a log with a hole is longer than that."""
    with os.scandir(path) as entries:
        blocks = [entry.stat(follow_symlinks=False).st_blocks for entry in entries]
    return float(sum(blocks) * 512.0 / MIB)


def remove(path: str, host: str) -> None:
    """Under the run's own lock, so that nobody gives it another attempt meanwhile; first out of sight,
    so that nobody sees half of it."""
    with Run(path, host) as run:
        locks = run.locks.path if run.locks is not run else None
        lock = run.locks.open("lock", os.O_RDWR)
        try:
            if not try_lock(lock, fcntl.LOCK_EX):
                return
            hidden = os.path.join(os.path.dirname(path), GONE + os.path.basename(path))
            os.rename(path, hidden)
        finally:
            os.close(lock)
    shutil.rmtree(hidden, ignore_errors=True)
    if locks is not None:
        shutil.rmtree(locks, ignore_errors=True)
