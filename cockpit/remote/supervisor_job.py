"""A job as it is executed: its sh, its environment, and a process without our traces."""

import ctypes
import os
import signal

import supervisor_environment as environment  # type: ignore[import-not-found]
from supervisor_files import (  # type: ignore[import-not-found]
    Refused,
    lock_within,
    read_descriptor,
    to_bytes,
    to_path,
)
from supervisor_processes import Process, read_process  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Json = dict[str, Any]

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

SHIM = """\
trap : HUP INT QUIT TERM USR1 USR2
(exec "$@" 2>&3 3>&-)
code=$?
printf '{"code":%d}' "$code" 1<>"$COCKPIT_DIR/exit.shim"
exit "$code"
"""
"""The traps are handlers, so the job does not inherit them; `exec` takes no builtin for a program;
the sh's own words ("Terminated") go nowhere, the job's go to the log; `1<>` writes in place."""


JOB_DEFAULTS = {
    "PYTHONUNBUFFERED": "1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "COLUMNS": "120",
    "TQDM_MININTERVAL": "2",
}
"""Set for a job where its host and its profile say nothing."""


def visible_name(card: "Json") -> str:
    """An index, since vLLM does not take a card's uuid; a MIG slice has nothing but its uuid."""
    uuid = str(card["uuid"])
    return uuid if uuid.startswith("MIG-") else str(card["index"])


def set_subreaper() -> None:
    """Orphans of the job come to us, even those that left its session. Without ctypes the session
    and the mark in the environment must do. `top` shows us by a name of our own."""
    try:
        control = ctypes.CDLL(None).prctl
        control(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        control(PR_SET_NAME, b"cockpit-run", 0, 0, 0)
    except (OSError, AttributeError):
        pass


def become_job(log: int, umask: int, cwd: str) -> None:
    """In the child: its own session, default signals, no input, all output into the log. A shell
    that starts `job &` leaves SIGINT ignored, and Python would then never see a KeyboardInterrupt."""
    os.setsid()
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # KILL, STOP, and those that the C library keeps
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(umask)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(log, 3)
    os.chdir(cwd)


def start_process(
    run: "Run", argv: "list[bytes]", env: "dict[bytes, bytes]", log: int, umask: int, cwd: str
) -> "Process":
    """Fork a job or a hook and return once it is what it will be. Raises Refused when it cannot be."""
    lock = run.locks.open("job.lock", os.O_RDWR)
    lock_within(lock, 5.0)
    os.set_inheritable(lock, True)
    end, start = os.pipe()  # closed by the exec
    pid = os.fork()
    if pid == 0:
        try:
            become_job(log, umask, to_path(cwd))
            os.execve(b"/bin/sh", argv, env)
        except BaseException as error:  # noqa: BLE001 - its only way out is the pipe
            os.write(start, to_bytes(str(error)[:300]))
        os._exit(126)
    os.close(start)
    os.close(lock)
    why = read_descriptor(end, 4096).decode("utf-8", "replace")
    os.close(end)
    job = read_process(pid)
    if why or job is None:
        raise Refused("not_started", detail=why)
    return job


def job_command(spec: "Json", run: "Run", attempt: int) -> "list[bytes]":
    """The sh between supervisor and job, with the job as its words."""
    words = [os.fsencode(to_path(spec["argv"][0]))]
    words.extend(to_bytes(word) for word in spec["argv"][1:])
    if spec["script"] is not None:
        words.append(os.fsencode(os.path.join(run.path, "script")))
    if attempt > 1:
        words.extend(map(to_bytes, (spec.get("restart") or {}).get("resume_args") or []))
    return [b"sh", b"-c", SHIM.encode(), b"cockpit"] + words


def hook_command(text: str) -> "list[bytes]":
    """Shell text of the profile, below a sh that notes its code where a job's is not looked for."""
    shim = SHIM.replace("exit.shim", "hook").encode()
    return [b"sh", b"-c", shim, b"cockpit", b"sh", b"-c", to_bytes(text), b"cockpit-hook"]


def job_environment(
    spec: "Json",
    secrets: "dict[str, str]",
    run: "Run",
    cards: "list[Json]",
    tell: "Callable[..., None]",
) -> "dict[bytes, bytes]":
    """The host's own, then what the profile sets, then what no one may set."""
    env = environment.host_environment()
    for defaults in (spec["env_defaults"], JOB_DEFAULTS):
        for name, value in defaults.items():
            env.setdefault(name.encode(), to_bytes(value))
    for given in (spec["env"], secrets):
        env.update((name.encode(), to_bytes(value)) for name, value in given.items())
    first = [os.fsencode(to_path(folder)) for folder in spec["path_first"]]
    env[b"PATH"] = b":".join(first + [env.get(b"PATH") or b"/usr/local/bin:/usr/bin:/bin"])
    environment.expand_prefixes(env)
    caches = environment.move_caches(env, spec.get("data_dir"), os.path.dirname(run.path))
    if caches is not None:
        tell("caches_moved", path=caches)
    environment.complete(env)
    if not environment.activate(env):
        tell("activation_failed")
    return marked(env, run, cards)


def marked(env: "dict[bytes, bytes]", run: "Run", cards: "list[Json]") -> "dict[bytes, bytes]":
    """With the cards of the run, and the mark by which its processes are known."""
    env = dict(env)
    if cards:
        env[b"CUDA_DEVICE_ORDER"] = b"PCI_BUS_ID"  # NVML's order, which our indices follow
        env[b"CUDA_VISIBLE_DEVICES"] = ",".join(map(visible_name, cards)).encode()
    env[b"COCKPIT_RUN"] = run.id.encode()
    env[b"COCKPIT_DIR"] = os.fsencode(run.path)
    return env


def close_others(keep: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != keep:
            try:
                os.close(int(name))
            except OSError:
                pass  # the one that read the list
