"""One run as its files tell it. Its state is read from them by one table, and never guessed."""

import json
import os
import signal
import time

from supervisor_files import MIB, Folder, Refused, parse_object  # type: ignore[import-not-found]
from supervisor_host import incarnation, oom_kills_since  # type: ignore[import-not-found]
from supervisor_processes import Members, is_alive, noted_pairs, still_alive  # type: ignore[import-not-found]
from supervisor_session import ends_at_logout  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

STALLED_S = 30.0
STARTING_S = 60.0
MAX_RECORD_BYTES = 256 * 1024
"""With a page of others it still fits a frame."""
WORDS = ("profile", "kind", "argv", "cwd", "tags", "notes", "claimed_s")
"""What a record only repeats of the spec."""
SPOILT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading a record of a wrong form raises."""
PHASES = {"before": "starting", "after": "stopping"}
"""The states of a run whose hook runs."""
RESTARTING = ("on-failure", "always", "on-lost")


class Run(Folder):  # type: ignore[misc]
    """One run's folder, and what its files say of it."""

    def __init__(self, path: str, host: str) -> None:
        Folder.__init__(self, path)
        self.id = os.path.basename(path)
        self._host = host
        self.spec = parse_object(self.read("spec.json", 4 * MIB))
        locks = self.spec.get("locks")
        is_named = isinstance(locks, str) and os.path.basename(locks) == self.id
        try:
            self.locks = Folder(locks) if is_named else self
        except (OSError, ValueError, Refused):
            self.locks = self  # gone with a restart: held by nobody, like ours

    def close(self) -> None:
        if getattr(self, "locks", self) is not self:
            self.locks.close()
        Folder.close(self)

    def __enter__(self) -> "Run":
        return self

    def is_supervised(self) -> bool:
        return bool(self.locks.is_held("lock"))

    def has_ended(self) -> bool:
        """Cheaply: is there any record of an end?"""
        return any(self.read(name, 1) == b"{" for name in ("exit", "exit.shim"))

    def foremost(self) -> "tuple[int | None, int | None]":
        """Pid and start of the hook that runs, else of the job."""
        hook = noted_pairs([self.locks.record("hb").get("hook")])
        supervisor = self.record("sup.json")
        return hook[0] if hook else (supervisor.get("job_pid"), supervisor.get("job_start"))

    def members(self) -> "Members":
        return Members(self, self.foremost(), None, self.locks.record("hb").get("strays"))

    def grace_s(self, asked: "Json") -> "tuple[float, float]":
        """How long INT and TERM may take: as asked for, else as the spec says."""
        given = self.spec.get("stop")
        default = given if isinstance(given, dict) else {}
        return (
            number_in(asked, "int_s", number_in(default, "int_s", 15.0)),
            number_in(asked, "term_s", number_in(default, "term_s", 10.0)),
        )

    def describe(self) -> "Json":
        """The run's record for the client; of files that its job has spoilt, as much as is safe."""
        try:
            answer = self._describe()
            if not fits(answer):
                answer.update(dict.fromkeys(WORDS))
            if fits(answer):
                return answer
        except SPOILT:
            pass
        return {
            "run": self.id,
            "state": "lost",
            "reason": "bad_record",
            "now_s": time.time(),
            "claimed_s": os.fstat(self.fd).st_mtime,
        }

    def _describe(self) -> "Json":
        """What was asked, and the state by the table below."""
        supervisor, life = self.record("sup.json"), self.locks.record("hb")
        cards = supervisor.get("cards") or []
        policy = self.spec.get("restart") or {}
        answer: "Json" = {
            "run": self.id,
            "now_s": time.time(),
            "folder": self.path,
            "profile": self.spec.get("profile"),
            "kind": self.spec.get("kind"),
            "argv": [word[:500] for word in self.spec.get("argv", [])[:64]],
            "cwd": self.spec.get("cwd"),
            "tags": self.spec.get("tags"),
            "notes": self.spec.get("notes"),
            "claimed_s": self.spec.get("claimed_s", os.fstat(self.fd).st_mtime),
            "started_s": supervisor.get("started_s"),
            "heard_s": life.get("wall_s"),
            "gpus": [card["index"] for card in cards],
            "gpu_uuids": [card["uuid"] for card in cards],
            "job_pid": supervisor.get("job_pid"),
            "job_started_ticks": supervisor.get("job_start"),
            "log_hole": life.get("hole"),
            "log_bytes": self._log_bytes(),
            "attempt": life.get("attempt", 1),
            "restart_on": policy.get("on"),
            "restarts": policy.get("max") if policy.get("on") in RESTARTING else 0,
            "next_s": life.get("next_s"),
            "events": life.get("events", 0),
            "disk_low": life.get("disk_low", False),
        }
        answer.update(self._state(supervisor, life))
        return answer

    def _log_bytes(self) -> "int | None":
        try:
            return os.stat("log", dir_fd=self.fd, follow_symlinks=False).st_size
        except OSError:
            return None

    def _state(self, supervisor: "Json", life: "Json") -> "Json":
        """By files alone, in this order: the lock is looked at before the record of the end, since
        a supervisor writes the one before it lets go of the other."""
        supervised = self.is_supervised()
        ended = self.record("exit")
        if ended.get("reason") == "no_free_gpu":
            return dict(self._ended(ended), waiting_for=life.get("waiting_for"))
        if ended:
            return self._ended(ended)
        if supervisor and supervisor.get("host_id") != self._host:
            return {"state": "other_host"}
        if supervised:
            return self._living(supervisor, life)
        if not supervisor:
            return self._without_supervisor()
        return self._orphaned(supervisor, life)

    def _ended(self, ended: "Json") -> "Json":
        return {
            "state": "exited",
            "code": ended.get("code"),
            "signal": ended.get("signal"),
            "reason": ended.get("reason"),
            "by": ended.get("by"),
            "ended_s": ended.get("wall_s"),
            "oom_kills": ended.get("oom_kills"),
            "signals": ended.get("sent"),
            "leftovers": still_alive(ended.get("left")),
        }

    def _living(self, supervisor: "Json", life: "Json") -> "Json":
        answer: "Json" = {"state": life.get("phase") or "starting"}
        if self.record("stop.json"):
            answer["state"] = "stopping"
            answer["by"] = "cockpit"
            answer["signals"] = life.get("sent")
        if answer["state"] == "queued":
            answer.update(waiting_for=life.get("waiting_for"), position=life.get("position"))
        beat = life.get("mono_s")
        if isinstance(beat, float) and time.monotonic() - beat > STALLED_S:
            answer["degraded"] = "supervisor_stalled"
        return answer

    def _without_supervisor(self) -> "Json":
        age_s = time.time() - os.fstat(self.fd).st_mtime
        if age_s < STARTING_S:
            return {"state": "starting"}
        return {"state": "lost", "reason": "never_started"}

    def _orphaned(self, supervisor: "Json", life: "Json") -> "Json":
        at, noted = life.get("at"), life.get("ended")
        same = all(supervisor.get(key) == value for key, value in incarnation().items())
        alive = same and (self.locks.is_held("job.lock") or is_alive(*self.foremost()))
        ended = noted if isinstance(noted, dict) else self._shim_record(supervisor)
        if alive and (not ended or at == "after"):
            answer: "Json" = {
                "state": PHASES.get(str(at), "running"),
                "degraded": "supervisor_died",
            }
            if self.record("stop.json"):
                answer.update(state="stopping", by="cockpit")
            return answer
        if ended:
            return self._ended(ended)
        if not same:
            return self._lost("host_restarted", supervisor, life)
        if at == "before":
            reason = "hook_cut_off" if life.get("hook") else "never_started"
            return self._lost(reason, supervisor, life)
        ended = self._shim_record(supervisor)  # it may have come between the two looks
        return (
            self._ended(ended) if ended else self._lost("killed_without_record", supervisor, life)
        )

    def _shim_record(self, supervisor: "Json") -> "Json":
        shim = self.record("exit.shim")
        if not isinstance(shim.get("code"), int):
            return {}
        kills = oom_kills_since(supervisor.get("oom"))
        ended = verdict(shim["code"], None, kills, bool(self.record("stop.json")))
        ended["wall_s"] = os.stat("exit.shim", dir_fd=self.fd, follow_symlinks=False).st_mtime
        return ended

    @staticmethod
    def _lost(reason: str, supervisor: "Json", life: "Json") -> "Json":
        answer = {"state": "lost", "reason": reason, "ended_s": life.get("wall_s")}
        if reason == "killed_without_record":
            answer["oom_kills"] = oom_kills_since(supervisor.get("oom"))
            if not answer["oom_kills"] and ends_at_logout():
                answer["reason"] = "killed_at_logout"
        return answer


def fits(answer: "Json") -> bool:
    return len(json.dumps(answer)) <= MAX_RECORD_BYTES


def number_in(record: "Json", key: str, otherwise: float) -> float:
    value = record.get(key)
    return float(value) if isinstance(value, (int, float)) else otherwise


def verdict(code: "int | None", number: "int | None", kills: "int | None", stopped: bool) -> "Json":
    """How a run ended. A shell reports a signal as 128 + its number, and so do we read it."""
    if code is not None and 128 < code < 160:
        number = code - 128
    reason = "exited" if number is None else "signal"
    if number == signal.SIGKILL and kills and not stopped:
        reason = "oom_killed"
    return {
        "code": code if number is None else None,
        "signal": number,
        "reason": reason,
        "by": "cockpit" if stopped else "job",
        "oom_kills": kills,
        "wall_s": time.time(),
    }
