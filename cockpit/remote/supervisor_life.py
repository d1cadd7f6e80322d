"""The supervisor of one run: it takes the run's lock and cards, runs what comes before, and starts the job."""

import os
import signal
import time

from supervisor_cards import CardLocks, card_folder  # type: ignore[import-not-found]
from supervisor_driver import CardStates  # type: ignore[import-not-found]
from supervisor_files import Refused, lock_within  # type: ignore[import-not-found]
from supervisor_hooks import HookKeeper  # type: ignore[import-not-found]
from supervisor_job import set_subreaper  # type: ignore[import-not-found]
from supervisor_keeper import WATCHED  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]
from supervisor_session import ends_at_logout  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Supervisor(HookKeeper):  # type: ignore[misc]
    """Starts one run, and keeps it from then on."""

    def __init__(self, run: "Run", order: "Json", reply: int) -> None:
        HookKeeper.__init__(self, run, order["spec"], reply)
        self.secrets = order.pop("secrets")
        self.umask = order["umask"]
        self.attempt = self.life["attempt"] = order.get("attempt", 1)

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
            self.held.note(self.cards)
            self.wait_for_call()
            self.begin()
        except Refused as refusal:
            self.give_up(refusal.code)
            raise
        if ends_at_logout():
            self.events.note("ends_at_logout")
        self.keep()

    # cards

    def reserve(self) -> None:
        """Hold the cards that were asked for, in a queue if that was asked too. Raises Refused."""
        request = self.spec["gpus"]
        if request is None:
            return
        self.card_locks = CardLocks(card_folder(self.run))
        states, until = CardStates(self.run.id, request), time.monotonic() + request["wait_s"]
        while True:
            self.cards, in_the_way = self.card_locks.take(self.run.id, request, states.by_card())
            if self.cards:
                return
            if time.monotonic() >= until:
                raise Refused("no_free_gpu", holders=in_the_way)
            self.life.update(waiting_for=in_the_way, position=self.card_locks.position)
            if self.life["phase"] != "queued":
                self.announce("queued")
            signal.sigtimedwait(WATCHED, max(0.01, min(1.0, until - time.monotonic())))
            self.beat(force=True)
            if self.run.record("stop.json"):
                raise Refused("cancelled")

    def wait_for_call(self) -> None:
        """One of several hosts: nothing begins before all of them are ready. Raises Refused."""
        if not self.spec.get("hold_s"):
            return
        until = time.monotonic() + self.spec["hold_s"]
        self.announce("starting")
        while not self.run.record("go.json"):
            if self.run.record("stop.json"):
                raise Refused("cancelled")
            if time.monotonic() >= until:
                raise Refused("not_called")
            signal.sigtimedwait(WATCHED, max(0.01, min(1.0, until - time.monotonic())))
            self.beat(force=True)

    # what comes before the job

    def begin(self) -> None:
        """The hook that must succeed first, else the job at once. Raises Refused."""
        if not self.spec.get("before"):
            self.start_job()
            self.announce("running")
            return
        self.announce("starting")
        self.start_hook("before", {})
        self.stage = self.attend_before
