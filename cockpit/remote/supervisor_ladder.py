"""How a run is stopped: step by step, and until nothing of it is left."""

import signal

from supervisor_processes import Members, Process, send_signal  # type: ignore[import-not-found]

KILL_S = 10.0
"""How long KILL may take before what is left counts as unkillable."""
STRAGGLER_S = 2.0
"""How long the rest of a run may outlive its job before it is signalled on or called left over."""


class Ladder:
    """INT to the job's group, TERM to all of the run, then freeze and KILL until nothing is left."""

    STEPS = ("INT", "TERM", "KILL")

    def __init__(
        self, members: "Members", group: "int | None", grace_s: "tuple[float, float]"
    ) -> None:
        self._members = members
        self._group = group
        self._grace_s = (grace_s[0], grace_s[1], KILL_S)
        self._step = -1
        self._since = 0.0
        self._alone_since: "float | None" = None
        self.sent: "list[str]" = []
        self.left: "dict[int, Process]" = {}
        self.done = False

    def hurry(self, grace_s: "tuple[float, float]") -> None:
        """A second request may shorten what the first allowed."""
        old = self._grace_s
        self._grace_s = (min(old[0], grace_s[0]), min(old[1], grace_s[1]), KILL_S)

    def advance(self, now: float, job_ended: bool) -> None:
        """Do what is due; `done` when nothing is left or nothing helps."""
        due = self._step < 0 or now >= self._until(now, job_ended)
        self.left = self._members.scan(True) if due else self._members.alive()
        if not self.left or (due and self._step == len(self.STEPS) - 1):
            self.done = True
        elif due:
            self._next_step(now)
        elif self._step == len(self.STEPS) - 1:
            self._kill()

    def _until(self, now: float, job_ended: bool) -> float:
        until = self._since + self._grace_s[self._step]
        if not job_ended or self._step == len(self.STEPS) - 1:
            return until
        if self._alone_since is None:
            self._alone_since = now
        return min(until, max(self._alone_since, self._since) + STRAGGLER_S)

    def _next_step(self, now: float) -> None:
        self._step += 1
        self._since = now
        name = self.STEPS[self._step]
        if name == "KILL":
            self._kill()
        else:
            targets = [p for p in self.left.values() if name != "INT" or p.group == self._group]
            if not targets:
                return self._next_step(now)
            for process in targets:
                self._send(process, getattr(signal, "SIG" + name))
                if process.state == b"T":  # stopped: it could not hear us
                    self._send(process, signal.SIGCONT)
        self.sent.append(name)

    def _kill(self) -> None:
        """Freeze first, look again, then kill: nothing forks away in between."""
        for process in self.left.values():
            self._send(process, signal.SIGSTOP)
        self.left.update(self._members.scan(True))
        for process in self.left.values():
            self._send(process, signal.SIGKILL)

    @staticmethod
    def _send(process: "Process", number: int) -> None:
        try:
            send_signal(process.pid, process.start, number)
        except PermissionError:
            pass  # another user's, started through sudo: it is reported as left
