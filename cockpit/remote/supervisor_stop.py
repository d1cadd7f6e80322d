"""A stop as the agent sees it through: by the run's supervisor, or by itself."""

import signal
import time

from supervisor_ladder import KILL_S, Ladder  # type: ignore[import-not-found]
from supervisor_processes import Process, command_of, is_alive, send_signal  # type: ignore[import-not-found]
from supervisor_run import Run, verdict  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Stop:
    """A stop that is under way: by the run's supervisor, or by us when it is gone or does not move."""

    SLACK_S = 15.0

    def __init__(self, run: "Run", asked: "Json") -> None:
        self._run = run
        self._number = int(run.record("stop.json").get("number", 0)) + 1
        default = run.grace_s()
        self._grace_s = (
            float(default[0] if asked.get("int_s") is None else asked["int_s"]),
            float(default[1] if asked.get("term_s") is None else asked["term_s"]),
        )
        self._patience_until = time.monotonic() + sum(self._grace_s) + KILL_S + self.SLACK_S
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
        if life.get("stops", 0) >= self._number:
            return self._finish(life.get("sent") or [], {})
        if not self._run.is_supervised() or now > self._patience_until:
            state = self._run.describe()
            if state["state"] == "exited" and not state["leftovers"]:
                return self._finish(life.get("sent") or [], {})
            supervisor = self._run.record("sup.json")
            self._ladder = Ladder(self._run.members(), supervisor.get("job_pid"), self._grace_s)
        return None

    def _climb(self, now: float) -> "Json | None":
        ladder = self._ladder
        assert ladder is not None
        supervisor = self._run.record("sup.json")
        job_alive = is_alive(supervisor.get("job_pid"), supervisor.get("job_start"))
        ladder.advance(now, not job_alive)
        if not ladder.done:
            return None
        if "KILL" in ladder.sent and not self._run.has_ended():
            ended = verdict(None, int(signal.SIGKILL), None, True)
            ended["sent"] = ladder.sent
            self._run.write_record("exit", ended)
        return self._finish(ladder.sent, ladder.left)

    def _finish(self, sent: "list[str]", left: "dict[int, Process]") -> "Json":
        record = self._run.describe()
        leftovers = list(record.get("leftovers") or [])
        named = {process["pid"] for process in leftovers}
        life_left = self._run.locks.record("hb").get("left") or []
        for pid, start in life_left + [[process.pid, process.start] for process in left.values()]:
            if pid not in named and is_alive(pid, start):
                leftovers.append({"pid": pid, "started_ticks": start, "command": command_of(pid)})
        self._run.close()
        return {"record": record, "sent": sent, "left": leftovers}
