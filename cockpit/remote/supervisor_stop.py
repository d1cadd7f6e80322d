"""A stop as the agent sees it through: by the run's supervisor, or by itself."""

import signal
import time

from supervisor_keeper import AFTER_S  # type: ignore[import-not-found]
from supervisor_ladder import KILL_S, Ladder  # type: ignore[import-not-found]
from supervisor_processes import Process, is_alive, send_signal, still_alive  # type: ignore[import-not-found]
from supervisor_run import Run, number_in, verdict  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Stop:
    """A stop that is under way: by the run's supervisor, or by us when it is gone or does not move."""

    SLACK_S = 15.0

    def __init__(self, run: "Run", asked: "Json") -> None:
        self._run = run
        self._number = int(number_in(run.record("stop.json"), "number", 0)) + 1
        self._grace_s = run.grace_s(asked)
        self._patience_until = time.monotonic() + sum(self._grace_s) + KILL_S + self.SLACK_S
        if run.spec.get("after"):
            self._patience_until += AFTER_S
        self._ladder: "Ladder | None" = None
        state = run.describe()
        self._idle = state["state"] in ("lost", "other_host") or (
            state["state"] == "exited" and not state["leftovers"]
        )
        if state.get("degraded") == "supervisor_stalled":
            self._patience_until = 0.0
        if not self._idle:
            self._ask()

    def _ask(self) -> None:
        int_s, term_s = self._grace_s
        self._run.write_record(
            "stop.json",
            {"number": self._number, "int_s": int_s, "term_s": term_s, "wall_s": time.time()},
        )
        supervisor = self._run.record("sup.json")
        if self._run.is_supervised() and supervisor:
            send_signal(supervisor["pid"], supervisor["start"], signal.SIGUSR1)

    def step(self, now: float) -> "Json | None":
        if self._idle:
            return self._finish([], {})
        if self._ladder is not None:
            return self._climb(now)
        life = self._run.locks.record("hb")
        if number_in(life, "stops", 0) >= self._number:
            return self._finish(life.get("sent") or [], {})
        if not self._run.is_supervised() or now > self._patience_until:
            state = self._run.describe()
            if state["state"] == "exited" and not state["leftovers"]:
                life = self._run.locks.record("hb")  # its last one, now that it is over
                return self._finish(life.get("sent") or [], {})
            self._ladder = Ladder(self._run.members(), self._run.foremost()[0], self._grace_s)
        return None

    def _climb(self, now: float) -> "Json | None":
        ladder = self._ladder
        assert ladder is not None
        ladder.advance(now, not is_alive(*self._run.foremost()))
        if not ladder.done:
            return None
        if not self._run.has_ended() and ("KILL" in ladder.sent or self._is_before()):
            ended = verdict(None, int(signal.SIGKILL), None, True)
            if self._is_before():
                ended.update(signal=None, reason="cancelled")
            ended["sent"] = ladder.sent
            self._run.write_record("exit", ended)
        return self._finish(ladder.sent, ladder.left)

    def _is_before(self) -> bool:
        return bool(self._run.locks.record("hb").get("at") == "before")

    def _finish(self, sent: "list[str]", left: "dict[int, Process]") -> "Json":
        record = self._run.describe()
        noted = [[process.pid, process.start] for process in left.values()]
        found = list(record.get("leftovers") or [])
        for process in still_alive(self._run.locks.record("hb").get("left")) + still_alive(noted):
            if process not in found:
                found.append(process)
        held = self._run.locks.record("hb").get("held")
        self._run.close()
        return {"record": record, "sent": sent, "left": found, "held": held}
