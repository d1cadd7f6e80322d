"""The start of a run: checks, its folder as the claim, its supervisor, and the first reply."""

import json
import os
import select
import shutil
import time

from supervisor_environment import check_python  # type: ignore[import-not-found]
from supervisor_files import (  # type: ignore[import-not-found]
    Folder,
    Refused,
    parse_object,
    read_file,
    to_bytes,
    to_path,
)
from supervisor_host import check_space, host_id, is_remote, shared_memory_folder  # type: ignore[import-not-found]
from supervisor_restart import claim_attempt  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]
from supervisor_spawn import spawn  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


def check_cwd(spec: "Json") -> None:
    cwd = to_path(spec["cwd"])
    if not os.path.isdir(cwd) or not os.access(cwd, os.X_OK):
        raise Refused("no_cwd", path=cwd)
    check_space(cwd, spec["disk_free_mib"])
    check_python(spec)


def claim(folder: str, spec: "Json", host: str) -> str:
    """Make the run's folder with all of its records. Raises FileExistsError when it is taken."""
    path = os.path.join(folder, spec["run"])
    os.mkdir(path, 0o700)
    try:
        kept = {
            key: value
            for key, value in spec.items()
            if key not in ("env", "env_defaults", "script")
        }
        kept["script"] = None if spec["script"] is None else ""
        kept["env_names"] = sorted(set(spec["env"]) | set(spec["env_defaults"]))
        kept["claimed_s"] = time.time()
        with Folder(path) as run:
            locks = local_locks(path, spec["run"], host)
            kept["locks"] = None if locks is None else locks.path
            for name in (
                "exit",
                "exit.shim",
                "hook",
                "stop.json",
                "go.json",
                "sup.json",
                "events.jsonl",
            ):
                run.allocate(name)
            claim_attempt(run, 1)
            lay_locks(locks or run)
            run.create("log", b"")
            if spec.get("script") is not None:
                run.create("script", to_bytes(spec["script"]))
            run.replace("spec.json", json.dumps(kept, sort_keys=True).encode())
            os.fsync(run.fd)
    except BaseException:
        forget(path)
        raise
    return path


def lay_locks(folder: "Folder") -> None:
    for name in ("lock", "job.lock"):
        folder.create(name, b"")
    folder.allocate("hb")


def renew(run: "Run", host: str, attempt: int) -> None:
    """Claim another attempt of a lost run and make its records ready. Raises FileExistsError."""
    claim_attempt(run, attempt)
    for name in ("exit", "exit.shim", "hook", "stop.json"):
        run.renew_record(name)
    if isinstance(run.spec.get("locks"), str) and run.locks is run:
        locks = local_locks(run.path, run.id, host)
        if locks is not None:
            with locks:
                lay_locks(locks)


def local_locks(path: str, run: str, host: str) -> "Folder | None":
    """A folder for locks and signs of life on this kernel, when the run's own is on the network."""
    shared = shared_memory_folder() if is_remote(path) else None
    if shared is None:
        return None
    shared.close()
    path = shared.path
    for name in ("runs", host):
        path = os.path.join(path, name)
        Folder(path, create=True).close()
    path = os.path.join(path, run)
    shutil.rmtree(path, ignore_errors=True)
    return Folder(path, create=True)


def forget(path: str) -> None:
    """Take back a claim that came to nothing, so that the same run can be started again."""
    shutil.rmtree(path, ignore_errors=True)


def has_begun(run: "Run") -> bool:
    """Whether a supervisor that died without a reply has left more than its folder: a run that lives
    or has lived is never taken back."""
    return bool(run.record("sup.json") or run.has_ended() or run.locks.is_held("job.lock"))


class Start:
    """A supervisor that was spawned and has not replied yet. `is_new`: its run's folder was made for it."""

    LIMIT_S = 60.0

    def __init__(self, path: str, order: "Json", is_new: bool = True) -> None:
        self._path = path
        self._is_new = is_new
        self._reply = spawn(path, order)
        self._until = time.monotonic() + self.LIMIT_S
        self._said = b""

    def step(self, now: float) -> "Json | None":
        """The answer once there is one; Refused when the run did not start."""
        if not select.select([self._reply], [], [], 0)[0]:
            if now > self._until:
                raise Refused("start_slow", path=self._path)
            return None
        self._said += os.read(self._reply, 65536)
        os.close(self._reply)
        reply = parse_object(self._said)
        with Run(self._path, host_id()) as run:
            if reply.get("ok") or (self._is_new and not reply and has_begun(run)):
                return {"existed": False, "record": run.describe()}
        trace = read_file(os.path.join(self._path, "sup.log"))[-2000:].decode("utf-8", "replace")
        if self._is_new:
            forget(self._path)
        raise Refused(
            reply.get("error", "supervisor_failed"), **reply.get("facts", {"trace": trace})
        )
