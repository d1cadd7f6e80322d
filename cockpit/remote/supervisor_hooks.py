"""What a profile has run on the host before its job and after it. A hook has a sh of its own between us and it,
that notes its code as a job's does: a supervisor that comes later knows where the one before it was."""

import os
import time

from supervisor_files import Refused  # type: ignore[import-not-found]
from supervisor_job import hook_command  # type: ignore[import-not-found]
from supervisor_keeper import AFTER_S, Keeper  # type: ignore[import-not-found]
from supervisor_ladder import Ladder  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class HookKeeper(Keeper):  # type: ignore[misc]
    """A keeper with a stage before the job and one after it."""

    def start_hook(self, name: str, extra: "dict[bytes, bytes]") -> None:
        """Raises Refused."""
        self.events.note("hook_started", hook=name, offset=os.fstat(self.log).st_size)
        self.run.renew_record("hook")
        self.life["at"] = name
        self.start(hook_command(self.spec[name]), extra)
        if self.job is not None:
            self.life["hook"] = [self.job.pid, self.job.start]
        self.beat(force=True)

    def patience_s(self) -> float:
        patience_s = float(Keeper.patience_s(self))
        if self.stage == self.attend_after:
            patience_s = min(patience_s, max(0.01, self.due_at - time.monotonic()))
        return patience_s

    # before

    def attend_before(self) -> None:
        if self.status is None:
            return
        code, number = self.status["code"], self.status["signal"]
        self.events.note("hook_ended", hook="before", code=code, signal=number)
        if self.stop:
            self.give_up("cancelled")
        elif code != 0:
            self.give_up("hook_failed", 128 + number if code is None else code, "job")
        else:
            self.begin_job()

    def begin_job(self) -> None:
        try:
            self.start_job()
        except Refused as refusal:
            self.give_up(refusal.code)
        else:
            self.announce("running")

    # after

    def finish(self) -> None:
        """The hook after the job, then the record of the end."""
        ended = self.ended or {}
        self.life.pop("next_s", None)
        if not self.spec.get("after"):
            self.record_end()
            return
        code = ended["code"] if ended.get("code") is not None else 128 + (ended.get("signal") or 0)
        self.life.update(phase="stopping", ended=ended)
        try:
            self.start_hook("after", {b"COCKPIT_EXIT_CODE": b"%d" % code})
        except (Refused, OSError) as error:
            self.events.note("hook_ended", hook="after", why=str(error))
            self.record_end()
            return
        self.due_at = time.monotonic() + AFTER_S
        self.stage = self.attend_after

    def attend_after(self) -> None:
        if self.status is None and time.monotonic() >= self.due_at:
            self.events.note("hook_timeout", hook="after", limit_s=AFTER_S)
            self.due_at = float("inf")
            self.ladder = Ladder(self.members(), None, (0.0, 5.0))
        elif self.status is not None:
            code, number = self.status["code"], self.status["signal"]
            self.events.note("hook_ended", hook="after", code=code, signal=number)
            self.record_end()
