"""What a host's sh tells of a run, read by the same table as remote/supervisor_run.py reads its files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cockpit.domain.models import RunId
from cockpit.domain.run_record import number_of
from cockpit.engine.sh_link import ShAnswer

Record = dict[str, object]
SH_ONLY = "sh_only"
STARTING_S = 60.0
SIGKILL = 9


@dataclass(frozen=True, slots=True)
class HostLife:
    """Which host it is, and which life of it."""

    host_id: str
    boot_id: str
    pid1_start: str


@dataclass(frozen=True, slots=True)
class FileStat:
    size: int
    changed_s: int
    inode: int


def file_stats(answer: ShAnswer) -> dict[str, FileStat]:
    """By path: the lines of `stat`, as far as they make sense."""
    found = {}
    for words in answer.each("file"):
        fields = words.split(" ", 3)
        at = fields[3].find("/") if len(fields) == 4 else -1
        if at >= 0 and all(field.isdigit() and len(field) < 20 for field in fields[:3]):
            found[fields[3][at:]] = FileStat(int(fields[0]), int(fields[1]), int(fields[2]))
    return found


def run_answer(run: RunId, spec: Record, told: ShAnswer, life: HostLife) -> Record:
    """The run's record in the form that an agent by Python answers with; who reads it checks it."""
    return _Reading(run, spec, told, life).record()


def parse(text: str | None) -> Record:
    try:
        value = json.loads(text.strip(" \0\n") if text else "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _Reading:
    def __init__(self, run: RunId, spec: Record, told: ShAnswer, life: HostLife) -> None:
        self._run = run
        self._spec = spec
        self._told = told
        self._life = life
        self._supervisor = parse(told.last("sup.json"))
        self._beat = parse(told.last("hb"))
        self._stats = {path.rsplit("/", 1)[-1]: stat for path, stat in file_stats(told).items()}
        self._now_s = _number(told.last("now_s"))

    def record(self) -> Record:
        supervisor, spec, log = self._supervisor, self._spec, self._stats.get("log")
        own = self._stats.get(self._run)
        cards = [card for card in _items(supervisor.get("cards")) if isinstance(card, dict)]
        answer: Record = {
            "run": self._run,
            "now_s": self._now_s,
            "folder": self._told.last("folder"),
            **{key: spec.get(key) for key in ("profile", "kind", "argv", "cwd", "tags", "notes")},
            "claimed_s": spec.get("claimed_s", own.changed_s if own else None),
            "started_s": supervisor.get("started_s"),
            "heard_s": self._beat.get("wall_s"),
            "gpus": [card.get("index") for card in cards],
            "gpu_uuids": [card.get("uuid") for card in cards],
            "job_pid": supervisor.get("job_pid"),
            "job_started_ticks": supervisor.get("job_start"),
            "log_hole": self._beat.get("hole"),
            "log_bytes": log.size if log else None,
        }
        answer.update(self._state())
        return answer

    def _state(self) -> Record:
        """By files alone, in the order in which they were read."""
        ended = parse(self._told.last("exit"))
        if ended:
            return self._ended(ended)
        if self._supervisor and self._supervisor.get("host_id") != self._life.host_id:
            return {"state": "other_host"}
        if self._told.last("supervised"):
            return {"state": "running", **_given(self._living(None))}
        if not self._supervisor:
            return self._without_supervisor()
        return self._orphaned()

    def _orphaned(self) -> Record:
        """`at`: what ran when the supervisor, where there is one, was last heard of."""
        at, noted = self._beat.get("at"), self._beat.get("ended")
        ended = noted if isinstance(noted, dict) else self._shim_record()
        same = self._is_same_life()
        alive = same and (self._told.last("alive") or any(self._told.each("process")))
        if alive and (not ended or at == "after"):
            by_sh = self._supervisor.get("mode") == "sh"
            answer = self._living(SH_ONLY if by_sh else "supervisor_died")
            phases = {"before": "starting", "after": "stopping"}
            return {"state": phases.get(str(at), "running"), **_given(answer)}
        if ended:
            return self._ended(ended)
        if not same:
            return self._lost("host_restarted")
        if at == "before":
            return self._lost("hook_cut_off" if self._beat.get("hook") else "never_started")
        return self._lost("killed_without_record")

    def _living(self, degraded: str | None) -> Record:
        if parse(self._told.last("stop.json")):
            sent = self._beat.get("sent")
            return {"state": "stopping", "by": "cockpit", "degraded": degraded, "signals": sent}
        phase = self._beat.get("phase") if degraded is None else None
        return {"state": phase, "degraded": degraded}

    def _without_supervisor(self) -> Record:
        own = self._stats.get(self._run)
        if own is not None and (self._now_s or 0.0) - own.changed_s < STARTING_S:
            return {"state": "starting"}
        return {"state": "lost", "reason": "never_started"}

    def _ended(self, ended: Mapping[str, object]) -> Record:
        return {
            "state": "exited",
            **{key: ended.get(key) for key in ("code", "signal", "reason", "by", "oom_kills")},
            "ended_s": ended.get("wall_s"),
            "signals": ended.get("sent"),
            "leftovers": list(self._processes()),
        }

    def _lost(self, reason: str) -> Record:
        answer: Record = {"state": "lost", "reason": reason, "ended_s": self._beat.get("wall_s")}
        if reason == "killed_without_record":
            answer["oom_kills"] = self._oom_kills()
        return answer

    def _shim_record(self) -> Record:
        code = parse(self._told.last("exit.shim")).get("code")
        if not isinstance(code, int) or isinstance(code, bool):
            return {}
        stopped = bool(parse(self._told.last("stop.json")))
        kills = self._oom_kills()
        number = code - 128 if 128 < code < 160 else None
        reason = "exited" if number is None else "signal"
        if number == SIGKILL and kills and not stopped:
            reason = "oom_killed"
        written = self._stats.get("exit.shim")
        return {
            "code": code if number is None else None,
            "signal": number,
            "reason": reason,
            "by": "cockpit" if stopped else "job",
            "oom_kills": kills,
            "wall_s": written.changed_s if written else None,
        }

    def _is_same_life(self) -> bool:
        boot, first = self._supervisor.get("boot_id"), self._supervisor.get("pid1_start")
        return (boot, str(first)) == (self._life.boot_id, self._life.pid1_start)

    def _oom_kills(self) -> int | None:
        """How many more than at the run's start, of the same cgroup."""
        before, now = _items(self._supervisor.get("oom")), _items(_json(self._told.last("oom")))
        if len(before) != 2 or len(now) != 2 or before[0] != now[0]:
            return None
        if not isinstance(before[1], int) or not isinstance(now[1], int):
            return None
        return max(0, now[1] - before[1])

    def _processes(self) -> Iterator[Record]:
        seen = set()
        for words in self._told.each("process"):
            pid, _, rest = words.partition(" ")
            start, _, command = rest.partition(" ")
            if pid.isdigit() and start.isdigit() and len(pid + start) < 36 and pid not in seen:
                seen.add(pid)
                yield {"pid": int(pid), "started_ticks": int(start), "command": command.strip()}


def _given(answer: Record) -> Record:
    return {key: value for key, value in answer.items() if value is not None}


def _items(value: object) -> list[object]:
    return value[:256] if isinstance(value, list) else []


def _json(text: str | None) -> object:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return None


def _number(text: str | None) -> float | None:
    return number_of({"text": _json(text)}, "text")
