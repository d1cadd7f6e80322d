"""The process table: who is alive, who belongs to a run, and signals to no one else."""

import errno
import os
import re
import signal

from supervisor_files import MIB, Folder, read_file  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Process:
    """A line of the process table; pid and start together identify it."""

    __slots__ = ("group", "parent", "pid", "session", "start", "state")

    def __init__(self, pid: int, fields: "list[bytes]") -> None:
        self.pid = pid
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.start = int(fields[19])

    @property
    def alive(self) -> bool:
        """A zombie still takes signals, and is not alive."""
        return self.state not in (b"Z", b"X", b"x")


def read_process(pid: int) -> "Process | None":
    text = read_file("/proc/%d/stat" % pid, 4096)
    fields = text[text.rfind(b")") + 2 :].split()  # the name before it may hold anything
    return Process(pid, fields) if len(fields) > 19 else None


def process_table() -> "dict[int, Process]":
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def first_orphan(session: int, gone: int) -> "Process | None":
    """The oldest process of a session whose parent we have become. It may have ended in the same moment: then
    its end, which is collected next, is the job's."""
    found = [
        process
        for process in process_table().values()
        if process.parent == os.getpid() and process.session == session and process.pid != gone
    ]
    return min(found, key=lambda process: process.start) if found else None


def is_alive(pid: "Any", start: "Any") -> bool:
    process = read_process(pid) if isinstance(pid, int) and pid > 0 else None
    return process is not None and process.alive and process.start == start


def still_alive(noted: "Any") -> "list[dict[str, Any]]":
    """Those of the noted [pid, start] that live, as a client is told of them."""
    return [
        {
            "pid": pid,
            "started_ticks": start,
            "command": command_of(pid),
            "state": state_of(pid),
        }
        for pid, start in noted_pairs(noted)
        if is_alive(pid, start)
    ]


def noted_pairs(noted: "Any") -> "list[tuple[int, int]]":
    """The [pid, start] of a record, as far as they are some."""
    pairs = noted if isinstance(noted, list) else []
    return [
        (pair[0], pair[1])
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(n, int) for n in pair)
    ]


def state_of(pid: int) -> str:
    """The letter of its state: D waits in the kernel, where no signal reaches it."""
    process = read_process(pid)
    return "" if process is None else process.state.decode("ascii", "replace")


def strays_of(job: "Process | None") -> "list[list[int]]":
    """Children of ours that the job is not: orphans that came to us when they left it."""
    own = os.getpid()
    path = "/proc/self/task/%d/children" % own
    if os.path.exists(path):
        pids = [int(pid) for pid in read_file(path).split()]
        found = [process for process in map(read_process, pids) if process is not None]
    else:
        found = [process for process in process_table().values() if process.parent == own]
    return [
        [process.pid, process.start]
        for process in found
        if process.alive and (job is None or process.pid != job.pid)
    ]


def send_signal(pid: int, start: int, number: int) -> bool:
    """Signal the process that started at `start`, and no other that got its number since."""
    handle: "int | None" = None
    try:
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            try:
                handle = os.pidfd_open(pid)
            except OSError as error:
                if error.errno != errno.ENOSYS:
                    return False
        if not is_alive(pid, start):
            return False
        if handle is not None:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        if handle is not None:
            os.close(handle)


def command_of(pid: int) -> str:
    words = read_file("/proc/%d/cmdline" % pid, 4096).rstrip(b"\0").split(b"\0")
    return b" ".join(words).decode("utf-8", "replace")[:200]


def holds_a_card(pid: int) -> bool:
    try:
        return any(
            re.match(r"/dev/nvidia\d", os.readlink("/proc/%d/fd/%s" % (pid, name)))
            for name in os.listdir("/proc/%d/fd" % pid)
        )
    except OSError:
        return False


class Members:
    """Finds what lives of one run: below its supervisor, in its session, or carrying its mark.
    Never by a name: jobs rename themselves."""

    def __init__(
        self,
        run: "Folder",
        job: "tuple[int | None, int | None]",
        supervisor: "int | None" = None,
        known: "Any" = None,
    ) -> None:
        """`job` is its pid and start; `known` are [pid, start] of others that were seen to be its own."""
        self._mark = b"COCKPIT_RUN=" + os.fsencode(os.path.basename(run.path))
        self._folder = os.fstat(run.fd)
        self._job = job
        self._supervisor = supervisor
        self._known: "dict[int, int]" = dict(noted_pairs(known))

    def alive(self) -> "dict[int, Process]":
        """The cheap look, and the thorough one when that finds nobody."""
        return self.scan(False) or self.scan(True)

    def scan(self, deep: bool) -> "dict[int, Process]":
        """Those alive, by pid; `deep` reads every environment too."""
        table = process_table()
        spared = self._spared(table)
        found = {
            pid: table[pid]
            for pid in self._descendants(table, self._seeds(table, deep))
            if pid not in spared and table[pid].alive
        }
        self._known = {pid: process.start for pid, process in found.items()}
        return found

    def _seeds(self, table: "dict[int, Process]", deep: bool) -> "set[int]":
        seeds = {pid for pid, start in self._known.items() if _same(table, pid, start)}
        pid, start = self._job
        if pid is not None and _same(
            table, pid, start
        ):  # else its session's number may be another's
            seeds.update(other.pid for other in table.values() if other.session == pid)
        if self._supervisor is not None:
            seeds.add(self._supervisor)
        if deep:
            seeds.update(pid for pid in table if pid not in seeds and self._is_marked(pid))
        return seeds

    def _is_marked(self, pid: int) -> bool:
        items = read_file("/proc/%d/environ" % pid, 4 * MIB).split(b"\0")
        return self._mark in items and self._is_ours(items)

    def _is_ours(self, items: "list[bytes]") -> bool:
        """Not so if it names the folder of a run that is called the same and kept elsewhere."""
        named = [item[12:] for item in items if item.startswith(b"COCKPIT_DIR=")]
        try:
            return not named or os.path.samestat(os.stat(named[-1]), self._folder)
        except OSError:
            return True

    def _spared(self, table: "dict[int, Process]") -> "set[int]":
        """Ourselves, all above us, and the supervisor."""
        spared = {0, 1, os.getpid()}
        if self._supervisor is not None:
            spared.add(self._supervisor)
        above = table.get(os.getpid())
        while above is not None and above.parent not in spared:
            spared.add(above.parent)
            above = table.get(above.parent)
        return spared

    @staticmethod
    def _descendants(table: "dict[int, Process]", seeds: "set[int]") -> "set[int]":
        children: "dict[int, list[int]]" = {}
        for process in table.values():
            children.setdefault(process.parent, []).append(process.pid)
        found: "set[int]" = set()
        todo = [pid for pid in seeds if pid in table]
        while todo:
            pid = todo.pop()
            if pid not in found:
                found.add(pid)
                todo.extend(children.get(pid, ()))
        return found


def _same(table: "dict[int, Process]", pid: int, start: "int | None") -> bool:
    return pid in table and table[pid].start == start
