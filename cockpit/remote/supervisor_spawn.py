"""A supervisor of its own for a run: a process without ties to the agent that made it."""

import fcntl
import os
import sys
import traceback

from supervisor_adopt import Adopter  # type: ignore[import-not-found]
from supervisor_files import Refused  # type: ignore[import-not-found]
from supervisor_host import host_id  # type: ignore[import-not-found]
from supervisor_job import close_others  # type: ignore[import-not-found]
from supervisor_life import Supervisor  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


def supervise(path: str, order: "Json", reply: int) -> None:
    """The life of a detached supervisor, in the process that `spawn` made for it."""
    kind = Adopter if order.get("adopt") else Supervisor
    supervisor = kind(Run(path, host_id()), order, reply)
    try:
        supervisor.live()
    except Refused as refusal:
        supervisor.answer({"error": refusal.code, "facts": refusal.facts})


def spawn(path: str, order: "Json") -> int:
    """Detach a supervisor; returns where its one line of reply will come. It is a fork of ours and
    no new program: it needs no file of ours on the host, and secrets cross no pipe."""
    reply, answer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                supervise(path, order, detach(path, answer))
        except BaseException:  # noqa: BLE001 - a process edge: the trace goes to sup.log
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(0)
    os.close(answer)
    os.waitpid(child, 0)
    return reply


def detach(path: str, reply: int) -> int:
    """Let go of every descriptor and folder of the agent, so that its channel can close. What we
    open from now on is numbered from 10, out of the way of `exec 3>…` in a job's scripts, which
    would close a lock that it inherits. Returns the reply's new number."""
    reply = fcntl.fcntl(reply, fcntl.F_DUPFD_CLOEXEC, 10)
    null = os.open(os.devnull, os.O_RDWR)
    trace = os.open(os.path.join(path, "sup.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number, fd in ((0, null), (1, trace), (2, trace)):
        os.dup2(fd, number)
    close_others(reply)
    for number in range(3, 10):
        os.dup2(0, number, inheritable=False)
    os.chdir("/")
    return reply
