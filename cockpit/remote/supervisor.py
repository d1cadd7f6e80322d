#!/usr/bin/env python3
"""Runs jobs on a host and answers for them; shipped as text and run by the host's own Python >= 3.6.

    supervisor.py serve               the agent: requests as JSON lines on stdin, frames on stdout

A job never depends on us: its output goes straight to a file, an `sh` between supervisor and job
keeps its exit code if the supervisor dies, and every fact lies in the run's folder, in records that
are allocated at the start and written in place, so that a full disk loses none:

    ROOT/v1/HOST-ID/RUN-ID/     0700; its mkdir is the claim, so that a second start finds it
      spec.json    what was asked, without the values of the environment
      sup.json     who supervises and what the job is: pids with start times, boot, cards
      lock         flock, held by the supervisor for life
      job.lock     flock, inherited by the job
      log          stdout and stderr of the job, appended
      hb           sign of life every 2 s, phase, hole of the log, progress of a stop
      exit         how it ended, by the supervisor; exit.shim: by the sh, if the supervisor is gone
      stop.json    the stop that was asked for
      sup.log      our own tracebacks
"""

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import traceback

MYPY = False
if MYPY:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple, Union  # noqa: F401

    Json = Dict[str, Any]

PROTOCOL = 1
VERSION = "1"
MAGIC = 0x434B5031

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}$")
CARD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,79}$")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")

RECORD_BYTES = {"exit": 512, "exit.shim": 512, "stop.json": 512, "hb": 2048, "sup.json": 8192}
MAX_LEFT = 12
"""Processes named in an exit record, so that it always fits."""
HEARTBEAT_S = 2.0
STALLED_S = 30.0
KILL_S = 10.0
"""How long KILL may take before what is left counts as unkillable."""
STRAGGLER_S = 2.0
"""How long the rest of a run may outlive its job before it is signalled on or called left over."""
STARTING_S = 60.0
MIB = 1 << 20
KEEP_HEAD_BYTES = 4 * MIB
ROOT_FREE_MIB = 256
START_FREE_MIB = 16
INODES_FREE_PCT = 1.0

MAX_LINE_BYTES = 2 * MIB
MAX_QUEUED_BYTES = MIB
"""While more than this waits to be sent no request is read; tails stop at a quarter of it."""
CHUNK_BYTES = 64 * 1024
READ_BYTES = 256 * 1024
ANSWER_BYTES = 200 * 1024
MAX_TAILS = 64
MAX_CARDS = 64
MAX_RUNS = 2000
POLL_S = 0.05
IDLE_EXIT_S = 300.0
"""An agent that hears nothing for so long is alone: its client pings."""

NETWORK_FS = ("nfs", "cifs", "smb", "lustre", "ceph", "gluster", "beegfs", "gpfs", "afs", "9p")
PR_SET_CHILD_SUBREAPER = 36
FALLOC_PUNCH_HOLE_KEEP_SIZE = 3

SHIM = """\
trap : HUP INT QUIT TERM USR1 USR2
(exec "$@" 2>&3 3>&-)
code=$?
printf '{"code":%d}' "$code" 1<>"$COCKPIT_DIR/exit.shim"
exit "$code"
"""
"""The traps are handlers, so the job does not inherit them; `exec` takes no builtin for a program;
the sh's own words ("Terminated") go nowhere, the job's go to the log; `1<>` writes in place."""


class Refused(Exception):
    """A request that is answered with a code and facts instead of a result."""

    def __init__(self, code, **facts):
        # type: (str, Any) -> None
        Exception.__init__(self, code)
        self.code = code
        self.facts = facts


# ---------------------------------------------------------------- text, files, folders


def to_bytes(text):
    # type: (str) -> bytes
    """UTF-8 whatever the locale: Python 3.6 under LC_ALL=C would take ASCII only."""
    return text.encode("utf-8", "surrogateescape")


def to_path(text):
    # type: (str) -> str
    """A path of a request as this interpreter names files, `~` expanded."""
    return os.path.expanduser(os.fsdecode(to_bytes(text)))


def read_file(path, limit=65536):
    # type: (str, int) -> bytes
    """At most `limit` bytes of a file; nothing when it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return read_descriptor(fd, limit)
    finally:
        os.close(fd)


def read_descriptor(fd, limit):
    # type: (int, int) -> bytes
    parts, left = [], limit
    try:
        while left > 0:
            part = os.read(fd, min(left, 65536))
            if not part:
                break
            parts.append(part)
            left -= len(part)
    except OSError:
        pass
    return b"".join(parts)


def parse_object(data):
    # type: (bytes) -> Json
    """The JSON object in a record; an empty or torn one is an empty object."""
    try:
        value = json.loads(data.decode("utf-8", "replace").strip(" \0\n") or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class Folder:
    """A directory that is ours alone, held open so that a changed path cannot lead us elsewhere."""

    def __init__(self, path, create=False):
        # type: (str, bool) -> None
        self.path = path
        if create:
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                pass
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        status = os.fstat(self.fd)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            self.close()
            raise Refused("unsafe_folder", path=path)

    def close(self):
        # type: () -> None
        os.close(self.fd)

    def __enter__(self):
        # type: () -> Folder
        return self

    def __exit__(self, *_why):
        # type: (object) -> None
        self.close()

    def open(self, name, flags):
        # type: (str, int) -> int
        """A plain file of this folder, never through a link."""
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(name, flags, 0o600, dir_fd=self.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a plain file", name)
        return fd

    def read(self, name, limit=65536):
        # type: (str, int) -> bytes
        try:
            fd = self.open(name, os.O_RDONLY)
        except OSError:
            return b""
        try:
            return read_descriptor(fd, limit)
        finally:
            os.close(fd)

    def record(self, name):
        # type: (str) -> Json
        """What a record says; read again once, in case it was being written."""
        return parse_object(self.read(name)) or parse_object(self.read(name))

    def allocate(self, name):
        # type: (str) -> None
        """Give a record its blocks now, while there is room."""
        self._write(name, os.O_CREAT | os.O_EXCL, b" " * (RECORD_BYTES[name] - 1) + b"\n")

    def write_record(self, name, value):
        # type: (str, Json) -> None
        """Overwrite a record in place: no new block is needed, whatever the disk's state."""
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        self._write(name, 0, data.ljust(RECORD_BYTES[name] - 1)[: RECORD_BYTES[name] - 1] + b"\n")

    def create(self, name, data):
        # type: (str, bytes) -> None
        self._write(name, os.O_CREAT | os.O_EXCL, data)

    def replace(self, name, data):
        # type: (str, bytes) -> None
        """A new version of a file, all of it or none."""
        temporary = "%s.%d" % (name, os.getpid())
        self._write(temporary, os.O_CREAT | os.O_TRUNC, data)
        os.rename(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def _write(self, name, flags, data):
        # type: (str, int, bytes) -> None
        fd = self.open(name, os.O_WRONLY | flags)
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(fd, data[done:], done)
            os.fsync(fd)
        finally:
            os.close(fd)

    def is_held(self, name):
        # type: (str) -> bool
        """Whether someone alive holds the exclusive lock on a file. Asked by a shared lock, so that
        two who ask do not take each other for the holder."""
        try:
            fd = self.open(name, os.O_RDWR)
        except OSError:
            return False
        try:
            return not try_lock(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)


def try_lock(fd, kind=fcntl.LOCK_EX):
    # type: (int, int) -> bool
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
        return True
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise


def lock_within(fd, limit_s):
    # type: (int, float) -> bool
    """Take an exclusive lock that others hold for an instant only."""
    until = time.monotonic() + limit_s
    while not try_lock(fd):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


# ---------------------------------------------------------------- processes


class Process:
    """A line of the process table; pid and start together identify it."""

    __slots__ = ("group", "parent", "pid", "session", "start", "state")

    def __init__(self, pid, fields):
        # type: (int, List[bytes]) -> None
        self.pid = pid
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.start = int(fields[19])

    @property
    def alive(self):
        # type: () -> bool
        """A zombie still takes signals, and is not alive."""
        return self.state not in (b"Z", b"X", b"x")


def read_process(pid):
    # type: (int) -> Optional[Process]
    text = read_file("/proc/%d/stat" % pid, 4096)
    fields = text[text.rfind(b")") + 2 :].split()  # the name before it may hold anything
    return Process(pid, fields) if len(fields) > 19 else None


def process_table():
    # type: () -> Dict[int, Process]
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def is_alive(pid, start):
    # type: (Any, Any) -> bool
    process = read_process(pid) if isinstance(pid, int) and pid > 0 else None
    return process is not None and process.alive and process.start == start


def send_signal(pid, start, number):
    # type: (int, int, int) -> bool
    """Signal the process that started at `start`, and no other that got its number since."""
    handle = None  # type: Optional[int]
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


def command_of(pid):
    # type: (int) -> str
    words = read_file("/proc/%d/cmdline" % pid, 4096).rstrip(b"\0").split(b"\0")
    return b" ".join(words).decode("utf-8", "replace")[:200]


def holds_a_card(pid):
    # type: (int) -> bool
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

    def __init__(self, run, job_pid, job_start, supervisor=None):
        # type: (str, Optional[int], Optional[int], Optional[int]) -> None
        self._mark = b"COCKPIT_RUN=" + run.encode()
        self._job = (job_pid, job_start)
        self._supervisor = supervisor
        self._known = {}  # type: Dict[int, int]

    def scan(self, deep):
        # type: (bool) -> Dict[int, Process]
        """Those alive, by pid; `deep` reads every environment too."""
        table = process_table()
        spared = self._spared(table)
        found = {
            pid: table[pid]
            for pid in self._descendants(table, self._seeds(table, deep))
            if pid not in spared and table[pid].alive
        }
        self._known.update((pid, process.start) for pid, process in found.items())
        return found

    def _seeds(self, table, deep):
        # type: (Dict[int, Process], bool) -> Set[int]
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

    def _is_marked(self, pid):
        # type: (int) -> bool
        return self._mark in read_file("/proc/%d/environ" % pid, 4 * MIB).split(b"\0")

    def _spared(self, table):
        # type: (Dict[int, Process]) -> Set[int]
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
    def _descendants(table, seeds):
        # type: (Dict[int, Process], Set[int]) -> Set[int]
        children = {}  # type: Dict[int, List[int]]
        for process in table.values():
            children.setdefault(process.parent, []).append(process.pid)
        found, todo = set(), [pid for pid in seeds if pid in table]  # type: Set[int], List[int]
        while todo:
            pid = todo.pop()
            if pid not in found:
                found.add(pid)
                todo.extend(children.get(pid, ()))
        return found


def _same(table, pid, start):
    # type: (Dict[int, Process], int, Optional[int]) -> bool
    return pid in table and table[pid].start == start


class Ladder:
    """INT to the job's group, TERM to all of the run, then freeze and KILL until nothing is left."""

    STEPS = ("INT", "TERM", "KILL")

    def __init__(self, members, group, grace_s):
        # type: (Members, Optional[int], Tuple[float, float]) -> None
        self._members = members
        self._group = group
        self._grace_s = (grace_s[0], grace_s[1], KILL_S)
        self._step = -1
        self._since = 0.0
        self._alone_since = None  # type: Optional[float]
        self.sent = []  # type: List[str]
        self.left = {}  # type: Dict[int, Process]
        self.done = False

    def hurry(self, grace_s):
        # type: (Tuple[float, float]) -> None
        """A second request may shorten what the first allowed."""
        old = self._grace_s
        self._grace_s = (min(old[0], grace_s[0]), min(old[1], grace_s[1]), KILL_S)

    def advance(self, now, job_ended):
        # type: (float, bool) -> None
        """Do what is due; `done` when nothing is left or nothing helps."""
        due = self._step < 0 or now >= self._until(now, job_ended)
        self.left = self._members.scan(due) or self._members.scan(True)
        if not self.left or (due and self._step == len(self.STEPS) - 1):
            self.done = True
        elif due:
            self._next_step(now)
        elif self._step == len(self.STEPS) - 1:
            self._kill()

    def _until(self, now, job_ended):
        # type: (float, bool) -> float
        until = self._since + self._grace_s[self._step]
        if not job_ended or self._step == len(self.STEPS) - 1:
            return until
        if self._alone_since is None:
            self._alone_since = now
        return min(until, max(self._alone_since, self._since) + STRAGGLER_S)

    def _next_step(self, now):
        # type: (float) -> None
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

    def _kill(self):
        # type: () -> None
        """Freeze first, look again, then kill: nothing forks away in between."""
        for process in self.left.values():
            self._send(process, signal.SIGSTOP)
        self.left.update(self._members.scan(True))
        for process in self.left.values():
            self._send(process, signal.SIGKILL)

    @staticmethod
    def _send(process, number):
        # type: (Process, int) -> None
        try:
            send_signal(process.pid, process.start, number)
        except PermissionError:
            pass  # another user's, started through sudo: it is reported as left


# ---------------------------------------------------------------- this host


def incarnation():
    # type: () -> Json
    """Which life of this host or container it is. A restarted container keeps its boot id: what
    differs is when its first process started."""
    first = read_process(1)
    return {
        "boot_id": read_file("/proc/sys/kernel/random/boot_id", 64).decode().strip(),
        "pid1_start": None if first is None else first.start,
    }


def host_id():
    # type: () -> str
    """Tells hosts apart that share a home, by the platform's own name for the instance if it has one."""
    settings = read_file("/proc/1/environ", MIB).split(b"\0")
    named = dict(item.split(b"=", 1) for item in settings if b"=" in item)
    name = socket.gethostname()
    for key in (b"RUNPOD_POD_ID", b"VAST_CONTAINERLABEL", b"CONTAINER_ID"):
        if named.get(key):
            name = named[key].decode("utf-8", "replace")
            break
    machine = read_file("/etc/machine-id", 64).strip()
    digest = hashlib.sha256(machine + b"\0" + to_bytes(name)).hexdigest()[:10]
    return (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "host") + "-" + digest


def oom_kills():
    # type: () -> Tuple[str, Optional[int]]
    """(file, count) of processes killed for memory: of our cgroup, else of the whole kernel."""
    own = {}  # type: Dict[str, str]
    for line in read_file("/proc/self/cgroup").decode("utf-8", "replace").splitlines():
        _number, names, path = (line.split(":", 2) + ["", ""])[:3]
        own.update((name, path) for name in names.split(","))
    for path in (
        "/sys/fs/cgroup%s/memory.events" % own.get("", ""),
        "/sys/fs/cgroup/memory.events",
        "/sys/fs/cgroup/memory%s/memory.oom_control" % own.get("memory", ""),
        "/sys/fs/cgroup/memory/memory.oom_control",
        "/proc/vmstat",
    ):
        count = oom_count(path)
        if count is not None:
            return path, count
    return "", None


def oom_count(path):
    # type: (str) -> Optional[int]
    found = re.search(rb"^oom_kill (\d+)$", read_file(path), re.MULTILINE)
    return int(found.group(1)) if found else None


def oom_kills_since(baseline):
    # type: (Any) -> Optional[int]
    """How many more than at the run's start; None when it cannot be known."""
    if not isinstance(baseline, list) or len(baseline) != 2 or not isinstance(baseline[1], int):
        return None
    before = int(baseline[1])
    count = oom_count(str(baseline[0]))
    return None if count is None else max(0, count - before)


def mounted_type(path):
    # type: (str) -> str
    """The type of the file system that holds a path."""
    real, best, kind = os.path.realpath(path), "", ""
    for line in os.fsdecode(read_file("/proc/self/mounts", MIB)).splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), fields[1])
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, fields[2]
    return kind


def is_remote(path):
    # type: (str) -> bool
    """Whether locks on it may not reach this kernel only: network and most user-space file systems."""
    kind = mounted_type(path)
    if kind.startswith("fuse"):
        return kind not in ("fuseblk", "fuse.fuse-overlayfs")
    return kind.startswith(NETWORK_FS)


def disk_space(path):
    # type: (str) -> Json
    """Room where `path` is or would be."""
    path = os.path.abspath(path)
    while not os.path.exists(path) and path != "/":
        path = os.path.dirname(path)
    room = os.statvfs(path)
    return {
        "path": path,
        "free_mib": room.f_bavail * room.f_frsize // MIB,
        "total_mib": room.f_blocks * room.f_frsize // MIB,
        "inodes_free_pct": 100.0 * room.f_favail / room.f_files if room.f_files else None,
    }


def check_space(path, needed_mib):
    # type: (str, int) -> None
    room = disk_space(path)
    if room["free_mib"] < needed_mib:
        raise Refused("disk_full", path=path, free_mib=room["free_mib"], needed_mib=needed_mib)
    if room["inodes_free_pct"] is not None and room["inodes_free_pct"] < INODES_FREE_PCT:
        raise Refused("no_inodes", path=path, inodes_free_pct=room["inodes_free_pct"])


def shared_memory_folder():
    # type: () -> Optional[Folder]
    """Ours on /dev/shm, which every process of this kernel sees and a restart empties."""
    try:
        return Folder("/dev/shm/cockpit-%d" % os.geteuid(), create=True)
    except (OSError, Refused):
        return None


# ---------------------------------------------------------------- where runs are kept


class Store:
    """The folders that may hold runs of this host, and the choice of one for a new run."""

    def __init__(self, given=None):
        # type: (Optional[str]) -> None
        self.host = host_id()
        self.given = given

    def candidates(self):
        # type: () -> Iterator[str]
        """In the order of preference: what the platform keeps over a stop, then the user's own state."""
        for hint in ("/root/autodl-tmp", "/workspace", "/home/featurize/work"):
            if os.path.isdir(hint) and os.access(hint, os.W_OK | os.X_OK):
                yield os.path.join(hint, ".cockpit")
        state = os.environ.get("XDG_STATE_HOME", "")
        if os.path.isabs(state):
            yield os.path.join(state, "cockpit")
        home = os.path.expanduser("~")
        if os.path.isabs(home):
            yield os.path.join(home, ".local", "state", "cockpit")
        for shared in ("/var/tmp", "/tmp"):
            yield os.path.join(shared, "cockpit-%d" % os.geteuid())

    def choose(self, given=None):
        # type: (Optional[str]) -> str
        """The folder of this host's runs in the first root that will do; a given one must do."""
        given = given or self.given
        if given is not None:
            root = os.path.realpath(to_path(given))
            try:
                folder = self._make(root)
            except OSError as error:
                raise Refused("run_root", path=root, why=error.strerror or str(error)) from error
            check_space(folder, START_FREE_MIB)
            self._remember(root)
            return folder
        return self._choose_default()

    def _choose_default(self):
        # type: () -> str
        refusal = Refused("run_root", path="", why="no candidate")
        for root in self.candidates():
            try:
                folder = self._make(root)
                check_space(folder, ROOT_FREE_MIB)
                return folder
            except OSError as error:
                refusal = Refused("run_root", path=root, why=error.strerror or str(error))
            except Refused as error:
                refusal = error
        raise refusal

    def _make(self, root):
        # type: (str) -> str
        os.makedirs(os.path.dirname(root), 0o700, exist_ok=True)
        try:
            os.mkdir(root, 0o700)
        except FileExistsError:
            pass
        status = os.lstat(root)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (0, os.geteuid()):
            raise Refused("unsafe_folder", path=root)
        if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            raise Refused("unsafe_folder", path=root)
        path = root
        for name in ("v1", self.host):
            path = os.path.join(path, name)
            Folder(path, create=True).close()
        return path

    def _remember(self, root):
        # type: (str) -> None
        """Note a root that only its spec names, so that an agent that is told nothing finds it."""
        try:
            with Folder(self._choose_default()) as folder:
                roots = self._noted(folder)
                if root not in roots:
                    data = json.dumps({"roots": (roots + [root])[-50:]}).encode()
                    folder.replace("roots.json", data)
        except (OSError, Refused):
            pass

    @staticmethod
    def _noted(folder):
        # type: (Folder) -> List[str]
        roots = parse_object(folder.read("roots.json")).get("roots")
        return [root for root in roots if isinstance(root, str)] if isinstance(roots, list) else []

    def roots(self):
        # type: () -> List[str]
        """Every root that may hold runs, whether or not there is room for more."""
        found = [os.path.realpath(to_path(self.given))] if self.given else []
        found.extend(self.candidates())
        for root in list(found):
            try:
                with Folder(os.path.join(root, "v1", self.host)) as folder:
                    found.extend(self._noted(folder))
            except (OSError, Refused):
                pass
        return list(dict.fromkeys(found))

    def find(self, run):
        # type: (str) -> Run
        """Raises Refused when there is none."""
        for root in self.roots():
            for host in [self.host] + self._other_hosts(root):
                try:
                    return Run(os.path.join(root, "v1", host, run), self.host)
                except (OSError, Refused):
                    pass
        raise Refused("unknown_run", run=run)

    def _other_hosts(self, root):
        # type: (str) -> List[str]
        try:
            return [name for name in os.listdir(os.path.join(root, "v1")) if name != self.host]
        except OSError:
            return []

    def newest(self):
        # type: () -> List[str]
        """Folders of this host's runs, the newest first."""
        found = []
        for root in self.roots():
            try:
                with Folder(os.path.join(root, "v1", self.host)) as folder:
                    for name in os.listdir(folder.path):
                        if RUN_ID.match(name):
                            path = os.path.join(folder.path, name)
                            found.append((os.lstat(path).st_mtime, path))
            except (OSError, Refused):
                pass
        return [path for _made, path in sorted(found, reverse=True)[:MAX_RUNS]]


class Run(Folder):
    """One run's folder, and what its files say of it."""

    def __init__(self, path, host):
        # type: (str, str) -> None
        Folder.__init__(self, path)
        self.id = os.path.basename(path)
        self._host = host
        self.spec = parse_object(self.read("spec.json", 4 * MIB))
        locks = self.spec.get("locks")
        try:
            self.locks = Folder(locks) if isinstance(locks, str) else self
        except (OSError, Refused):
            self.locks = self  # gone with a restart: held by nobody, like ours

    def close(self):
        # type: () -> None
        if getattr(self, "locks", self) is not self:
            self.locks.close()
        Folder.close(self)

    def __enter__(self):
        # type: () -> Run
        return self

    def is_supervised(self):
        # type: () -> bool
        return self.locks.is_held("lock")

    def has_ended(self):
        # type: () -> bool
        """Cheaply: is there any record of an end?"""
        return self.read("exit", 1) == b"{" or self.read("exit.shim", 1) == b"{"

    def members(self):
        # type: () -> Members
        supervisor = self.record("sup.json")
        return Members(self.id, supervisor.get("job_pid"), supervisor.get("job_start"))

    def grace_s(self):
        # type: () -> Tuple[float, float]
        stop = self.spec.get("stop") or {}
        return float(stop.get("int_s", 15.0)), float(stop.get("term_s", 10.0))

    def describe(self):
        # type: () -> Json
        """The run's record for the client: what was asked, and the state by the table below."""
        supervisor, life = self.record("sup.json"), self.locks.record("hb")
        cards = supervisor.get("cards") or []
        answer = {
            "run": self.id,
            "now_s": time.time(),
            "folder": self.path,
            "profile": self.spec.get("profile"),
            "kind": self.spec.get("kind"),
            "argv": [word[:500] for word in self.spec.get("argv", [])[:64]],
            "cwd": self.spec.get("cwd"),
            "tags": self.spec.get("tags"),
            "notes": self.spec.get("notes"),
            "claimed_s": self.spec.get("claimed_s"),
            "started_s": supervisor.get("started_s"),
            "heard_s": life.get("wall_s"),
            "gpus": [card["index"] for card in cards],
            "gpu_uuids": [card["uuid"] for card in cards],
            "job_pid": supervisor.get("job_pid"),
            "job_started_ticks": supervisor.get("job_start"),
            "log_hole": life.get("hole"),
            "log_bytes": self._log_bytes(),
        }  # type: Json
        answer.update(self._state(supervisor, life))
        return answer

    def _log_bytes(self):
        # type: () -> Optional[int]
        try:
            return os.stat("log", dir_fd=self.fd, follow_symlinks=False).st_size
        except OSError:
            return None

    def _state(self, supervisor, life):
        # type: (Json, Json) -> Json
        """By files alone, in this order: the lock is looked at before the record of the end, since
        a supervisor writes the one before it lets go of the other."""
        supervised = self.is_supervised()
        ended = self.record("exit")
        if ended:
            return self._ended(ended)
        if supervisor and supervisor.get("host_id") != self._host:
            return {"state": "other_host"}
        if supervised:
            return self._living(supervisor, life)
        if not supervisor:
            return self._without_supervisor()
        return self._orphaned(supervisor, life)

    def _ended(self, ended):
        # type: (Json) -> Json
        return {
            "state": "exited",
            "code": ended.get("code"),
            "signal": ended.get("signal"),
            "reason": ended.get("reason"),
            "by": ended.get("by"),
            "ended_s": ended.get("wall_s"),
            "oom_kills": ended.get("oom_kills"),
            "signals": ended.get("sent"),
            "leftovers": [
                {"pid": pid, "started_ticks": start, "command": command_of(pid)}
                for pid, start in ended.get("left") or []
                if is_alive(pid, start)
            ],
        }

    def _living(self, supervisor, life):
        # type: (Json, Json) -> Json
        answer = {"state": life.get("phase") or "starting"}  # type: Json
        if self.record("stop.json"):
            answer["state"] = "stopping"
            answer["signals"] = life.get("sent")
        if answer["state"] == "queued":
            answer["waiting_for"] = life.get("waiting_for")
        beat = life.get("mono_s")
        if isinstance(beat, float) and time.monotonic() - beat > STALLED_S:
            answer["degraded"] = "supervisor_stalled"
        return answer

    def _without_supervisor(self):
        # type: () -> Json
        age_s = time.time() - os.fstat(self.fd).st_mtime
        if age_s < STARTING_S:
            return {"state": "starting"}
        return {"state": "lost", "reason": "never_started"}

    def _orphaned(self, supervisor, life):
        # type: (Json, Json) -> Json
        ended = self._shim_record(supervisor)
        if ended:
            return self._ended(ended)
        now = incarnation()
        if any(supervisor.get(key) != value for key, value in now.items()):
            return self._lost("host_restarted", supervisor, life)
        job = (supervisor.get("job_pid"), supervisor.get("job_start"))
        if self.locks.is_held("job.lock") or is_alive(*job):
            state = "stopping" if self.record("stop.json") else "running"
            return {"state": state, "degraded": "supervisor_died"}
        ended = self._shim_record(supervisor)  # it may have come between the two looks
        return (
            self._ended(ended) if ended else self._lost("killed_without_record", supervisor, life)
        )

    def _shim_record(self, supervisor):
        # type: (Json) -> Json
        shim = self.record("exit.shim")
        if not isinstance(shim.get("code"), int):
            return {}
        kills = oom_kills_since(supervisor.get("oom"))
        ended = verdict(shim["code"], None, kills, bool(self.record("stop.json")))
        ended["wall_s"] = os.stat("exit.shim", dir_fd=self.fd, follow_symlinks=False).st_mtime
        return ended

    @staticmethod
    def _lost(reason, supervisor, life):
        # type: (str, Json, Json) -> Json
        answer = {"state": "lost", "reason": reason, "ended_s": life.get("wall_s")}
        if reason == "killed_without_record":
            answer["oom_kills"] = oom_kills_since(supervisor.get("oom"))
        return answer


def verdict(code, number, kills, stopped):
    # type: (Optional[int], Optional[int], Optional[int], bool) -> Json
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


# ---------------------------------------------------------------- cards


class CardLocks:
    """Who holds which card: a lock file for each, held for a run's life, and a queue of tickets.
    The kernel lets go of them when the last process of the run is gone."""

    def __init__(self, folder):
        # type: (Folder) -> None
        self._folder = folder
        self._queue = Folder(os.path.join(folder.path, "queue"), create=True)
        self._held = {}  # type: Dict[str, int]
        self._ticket = ("", -1)

    def take(self, run, request, free_mib):
        # type: (str, Json, Dict[str, int]) -> Tuple[List[Json], str]
        """(cards, "") when `count` of them could be locked, else ([], who or what is in the way)."""
        mutex = self._folder.open("gpu-all.lock", os.O_RDWR | os.O_CREAT)
        try:
            if not lock_within(mutex, 10.0):
                return [], "gpu-all.lock"
            ahead = self._ahead(request)
            if ahead:
                self._queue_up(run, request)
                return [], ahead
            cards, in_the_way = self._lock_some(run, request, free_mib)
            if not cards:
                self._queue_up(run, request)
            else:
                self._leave_queue()
            return cards, in_the_way
        finally:
            os.close(mutex)

    def _lock_some(self, run, request, free_mib):
        # type: (str, Json, Dict[str, int]) -> Tuple[List[Json], str]
        taken, in_the_way = [], []  # type: List[Json], List[str]
        for card in request["cards"]:
            if len(taken) == request["count"]:
                break
            free = free_mib.get(card["uuid"])
            if free is not None and free < (request.get("min_free_mib") or 0):
                in_the_way.append("GPU %d: %d MiB free" % (card["index"], free))
            elif self._lock(run, card["uuid"], request.get("share")):
                taken.append(card)
            else:
                in_the_way.append("GPU %d: %s" % (card["index"], self._holder(card["uuid"])))
        if len(taken) == request["count"]:
            return taken, ""
        self.release()
        return [], ", ".join(in_the_way)[:500] or "too few cards"

    def _lock(self, run, card, share):
        # type: (str, str, Any) -> bool
        fd = self._folder.open(lock_name(card), os.O_RDWR | os.O_CREAT)
        if not try_lock(fd, fcntl.LOCK_SH if share else fcntl.LOCK_EX):
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.pwrite(fd, run.encode(), 0)
        os.set_inheritable(fd, True)  # the job keeps the card if the supervisor dies
        self._held[card] = fd
        return True

    def _holder(self, card):
        # type: (str) -> str
        return self._folder.read(lock_name(card), 64).decode("ascii", "replace") or "another run"

    def keep(self, run, share):
        # type: (str, Any) -> None
        """Lock again what was deleted under us: some systems clear /dev/shm at a logout."""
        for card, fd in list(self._held.items()):
            if os.fstat(fd).st_nlink == 0:
                self._lock(run, card, share)

    def release(self):
        # type: () -> None
        """Unlock for every process that has inherited the descriptors."""
        for fd in self._held.values():
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)
        self._held.clear()

    def _queue_up(self, run, request):
        # type: (str, Json) -> None
        if self._ticket[0] or not request.get("wait_s"):
            return
        name = "%020d-%s" % (int(time.monotonic() * 1e9), run)
        fd = self._queue.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try_lock(fd)
        os.pwrite(fd, json.dumps([card["uuid"] for card in request["cards"]]).encode(), 0)
        self._ticket = (name, fd)

    def _leave_queue(self):
        # type: () -> None
        name, fd = self._ticket
        if name:
            self._ticket = ("", -1)
            os.unlink(name, dir_fd=self._queue.fd)
            os.close(fd)

    def _ahead(self, request):
        # type: (Json) -> str
        """The first run before us in the queue that wants a card that we want."""
        wanted = {card["uuid"] for card in request["cards"]}
        for name in sorted(os.listdir(self._queue.path)):
            if name == self._ticket[0]:
                break
            if not self._queue.is_held(name):
                os.unlink(name, dir_fd=self._queue.fd)
                continue
            try:
                theirs = json.loads(self._queue.read(name).decode())
            except ValueError:
                continue
            if wanted.intersection(theirs):
                return "queue: " + name.partition("-")[2]
        return ""


def lock_name(card):
    # type: (str) -> str
    return "gpu-%s.lock" % card.replace("/", "_")


def free_memory():
    # type: () -> Dict[str, int]
    """Free MiB by card, by NVML, else nvidia-smi; empty where neither answers in time."""
    return in_child(free_by_nvml, 10.0) or in_child(free_by_smi, 20.0)


def free_by_nvml():
    # type: () -> Dict[str, int]
    if "__file__" in globals():
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import pynvml

    pynvml.nvmlInit()
    free = {}
    for index in range(pynvml.nvmlDeviceGetCount()):
        card = pynvml.nvmlDeviceGetHandleByIndex(index)
        uuid = pynvml.nvmlDeviceGetUUID(card)
        uuid = uuid.decode() if isinstance(uuid, bytes) else uuid
        free[uuid] = pynvml.nvmlDeviceGetMemoryInfo(card).free // MIB
    return free


def free_by_smi():
    # type: () -> Dict[str, int]
    asked = ["nvidia-smi", "--query-gpu=uuid,memory.free", "--format=csv,noheader,nounits"]
    text = subprocess.check_output(asked, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = re.findall(r"^(\S+), *(\d+) *$", text.decode("ascii", "replace"), re.MULTILINE)
    return {uuid: int(free) for uuid, free in found}


def in_child(work, limit_s):
    # type: (Callable[[], Dict[str, int]], float) -> Dict[str, int]
    """Call into a driver that may hang from a process that we can give up."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            close_others(start)  # no lock of ours may outlive us in a hung driver
            os.write(start, json.dumps(work()).encode())
        except BaseException:  # noqa: BLE001 - a child that fails has no answer, and that is all
            pass
        os._exit(0)
    os.close(start)
    try:
        answered = select.select([end], [], [], limit_s)[0]
        return parse_object(read_descriptor(end, 65536)) if answered else {}
    finally:
        os.close(end)
        os.kill(child, signal.SIGKILL)
        wait_briefly(child)


def wait_briefly(child):
    # type: (int) -> None
    """Reap a killed child; one that hangs in the driver is left to the reaper."""
    for _try in range(100):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.01)


# ---------------------------------------------------------------- the supervisor of one run

WATCHED = {signal.SIGCHLD, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
"""Waited for rather than handled. TERM and INT change nothing: a host that shuts down tells the job
itself, and whoever wants the run to end asks for a stop."""


class Supervisor:
    """Starts one job, keeps its records, climbs the stop ladder when asked, and stays for the rest."""

    def __init__(self, run, order, reply):
        # type: (Run, Json, int) -> None
        self.run = run
        self.spec = order["spec"]
        self.secrets = order.pop("secrets")
        self.umask = order["umask"]
        self.reply = reply
        self.log = run.open("log", os.O_WRONLY | os.O_APPEND)
        self.cards = []  # type: List[Json]
        self.card_locks = None  # type: Optional[CardLocks]
        self.job = None  # type: Optional[Process]
        self.shim_gone = False
        self.status = None  # type: Optional[int]
        self.ended_at = 0.0
        self.recorded = False
        self.ladder = None  # type: Optional[Ladder]
        self.stop = {}  # type: Json
        self.life = {"phase": "starting", "sent": [], "stops": 0}  # type: Json
        self.beat_at = 0.0
        self.oom = oom_kills()

    def live(self):
        # type: () -> None
        """The whole life, from the locks to the last process of the run."""
        set_subreaper()
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        lock = self.run.locks.open("lock", os.O_RDWR)
        if not lock_within(lock, 5.0):
            raise Refused("locked")
        self.beat(force=True)
        if not self.reserve():
            return
        try:
            self.start_job()
        except Refused as refusal:
            self.give_up(refusal.code)
            raise
        self.announce("running")
        while not self.is_over():
            signal.sigtimedwait(WATCHED, self.patience_s())
            self.reap()
            self.follow_stop()
            self.record_end()
            self.beat()

    def patience_s(self):
        # type: () -> float
        busy = self.ladder is not None or (self.status is not None and not self.recorded)
        return 0.1 if busy else HEARTBEAT_S

    # cards

    def reserve(self):
        # type: () -> bool
        """Hold the cards that were asked for, in a queue if that was asked too; False ends the run."""
        request = self.spec["gpus"]
        if not request:
            return True
        self.card_locks = CardLocks(card_folder(self.run))
        until = time.monotonic() + request["wait_s"]
        while True:
            free = free_memory() if request.get("min_free_mib") else {}
            self.cards, in_the_way = self.card_locks.take(self.run.id, request, free)
            if self.cards:
                return True
            if not request["wait_s"]:
                raise Refused("no_free_gpu", holders=in_the_way)
            self.life["waiting_for"] = in_the_way
            self.announce("queued")
            signal.sigtimedwait(WATCHED, min(1.0, request["wait_s"]))
            self.beat(force=True)
            if self.run.record("stop.json"):
                return self.give_up("cancelled")
            if time.monotonic() > until:
                return self.give_up("no_free_gpu")

    def give_up(self, reason):
        # type: (str) -> bool
        ended = {"code": None, "signal": None, "reason": reason, "by": "cockpit"}  # type: Json
        ended["wall_s"] = time.time()
        self.run.write_record("exit", ended)
        return False

    # the job

    def start_job(self):
        # type: () -> None
        job_lock = self.run.locks.open("job.lock", os.O_RDWR)
        try_lock(job_lock)
        os.set_inheritable(job_lock, True)
        argv, env = self.command(), self.environment()
        trouble, hint = (
            os.pipe()
        )  # closed by the exec, so that we go on when the job is what it will be
        pid = os.fork()
        if pid == 0:
            try:
                become_job(self.log, self.umask, to_path(self.spec["cwd"]))
                os.execve(b"/bin/sh", argv, env)
            except BaseException as error:  # noqa: BLE001 - its only way out is the pipe
                os.write(hint, to_bytes(str(error)[:300]))
            os._exit(126)
        os.close(hint)
        os.close(job_lock)
        why = read_descriptor(trouble, 4096).decode("utf-8", "replace")
        os.close(trouble)
        if why:
            raise Refused("not_started", detail=why)
        self.secrets = {}
        self.job = read_process(pid)

    def command(self):
        # type: () -> List[bytes]
        words = [os.fsencode(to_path(self.spec["argv"][0]))]
        words.extend(to_bytes(word) for word in self.spec["argv"][1:])
        if self.spec.get("script") is not None:
            words.append(os.fsencode(os.path.join(self.run.path, "script")))
        return [b"sh", b"-c", SHIM.encode(), b"cockpit"] + words

    def environment(self):
        # type: () -> Dict[bytes, bytes]
        env = dict(os.environb)
        for defaults in (self.spec["env_defaults"], JOB_DEFAULTS):
            for name, value in defaults.items():
                env.setdefault(name.encode(), to_bytes(value))
        for given in (self.spec["env"], self.secrets):
            env.update((name.encode(), to_bytes(value)) for name, value in given.items())
        first = [os.fsencode(to_path(folder)) for folder in self.spec["path_first"]]
        env[b"PATH"] = b":".join(first + [env.get(b"PATH") or b"/usr/local/bin:/usr/bin:/bin"])
        if self.cards:
            env[b"CUDA_DEVICE_ORDER"] = b"PCI_BUS_ID"  # NVML's order, which our indices follow
            env[b"CUDA_VISIBLE_DEVICES"] = ",".join(map(visible_name, self.cards)).encode()
        env[b"COCKPIT_RUN"] = self.run.id.encode()
        env[b"COCKPIT_DIR"] = os.fsencode(self.run.path)
        return env

    def announce(self, phase):
        # type: (str) -> None
        """Make durable who we are, and only then tell whoever asked for the run."""
        self.life["phase"] = phase
        own = read_process(os.getpid())
        record = {
            "pid": os.getpid(),
            "start": None if own is None else own.start,
            "host_id": host_id(),
            "uid": os.geteuid(),
            "cards": self.cards,
            "oom": list(self.oom),
        }  # type: Json
        record.update(incarnation())
        if self.job is not None:
            record.update(job_pid=self.job.pid, job_start=self.job.start, started_s=time.time())
        self.run.write_record("sup.json", record)
        self.beat(force=True)
        self.answer({"ok": True})

    def answer(self, value):
        # type: (Json) -> None
        if self.reply >= 0:
            try:
                os.write(self.reply, json.dumps(value).encode() + b"\n")
            except OSError:
                pass  # who asked is gone; the run is not
            os.close(self.reply)
            self.reply = -1

    def reap(self):
        # type: () -> None
        """Collect every child; orphans of the job come to us too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.job is not None and pid == self.job.pid and self.status is None:
                self.job_is_gone(status)

    def job_is_gone(self, status):
        # type: (int) -> None
        """Its status is the job's, unless only the sh was killed: then the job is ours by now."""
        orphan = None if self.shim_gone or not os.WIFSIGNALED(status) else self.orphaned_job()
        if orphan is not None:
            self.shim_gone, self.job = True, orphan
        else:
            self.status, self.ended_at = status, time.monotonic()

    def orphaned_job(self):
        # type: () -> Optional[Process]
        table = process_table()
        orphans = [
            process
            for process in table.values()
            if process.parent == os.getpid() and self.job and process.session == self.job.session
        ]
        alive = [process for process in orphans if process.alive and process.pid != self.job_pid()]
        return min(alive, key=lambda process: process.start) if alive else None

    def job_pid(self):
        # type: () -> int
        return -1 if self.job is None else self.job.pid

    # stopping

    def follow_stop(self):
        # type: () -> None
        """Begin the ladder that stop.json asks for, hurry it when asked again, take the next step."""
        asked = self.run.record("stop.json")
        if asked and asked != self.stop:
            self.stop = asked
            grace_s = float(asked.get("int_s", 15.0)), float(asked.get("term_s", 10.0))
            if self.ladder is not None:
                self.ladder.hurry(grace_s)
            else:
                group = None if self.job is None else self.job.group
                self.ladder = Ladder(self.members(), group, grace_s)
        if self.ladder is None:
            return
        self.ladder.advance(time.monotonic(), self.status is not None)
        self.life["sent"] = self.ladder.sent
        if self.ladder.done:
            self.end_stop()

    def end_stop(self):
        # type: () -> None
        """Say what is left, in the record of the end if there can be one."""
        ladder, self.ladder = self.ladder, None
        self.reap()
        left = [] if ladder is None else list(ladder.left.values())
        if self.status is not None:
            self.write_end([] if ladder is None else ladder.sent, left)
        self.life["stops"] = self.stop.get("number", 0)
        self.life["left"] = [[process.pid, process.start] for process in left[:MAX_LEFT]]
        self.beat(force=True)

    def members(self):
        # type: () -> Members
        job = self.job
        return Members(
            self.run.id,
            None if job is None else job.pid,
            None if job is None else job.start,
            os.getpid(),
        )

    # the end

    def record_end(self):
        # type: () -> None
        """Write how the job ended once the rest of the run is gone, or has had its moment."""
        if self.status is None or self.recorded or self.ladder is not None:
            return
        left = list(self.members().scan(True).values())
        if not left or time.monotonic() - self.ended_at > STRAGGLER_S:
            self.write_end([], left)

    def write_end(self, sent, left):
        # type: (List[str], List[Process]) -> None
        if self.recorded:
            ended = self.run.record("exit")  # a stop of what was left over: the end itself stands
        elif self.status is not None and os.WIFSIGNALED(self.status):
            ended = self.verdict(None, os.WTERMSIG(self.status))
        else:
            ended = self.verdict(os.WEXITSTATUS(self.status or 0), None)
        ended["sent"] = sent
        ended["left"] = [[process.pid, process.start] for process in left[:MAX_LEFT]]
        self.run.write_record("exit", ended)
        self.recorded = True

    def verdict(self, code, number):
        # type: (Optional[int], Optional[int]) -> Json
        return verdict(code, number, oom_kills_since(list(self.oom)), bool(self.stop))

    def is_over(self):
        # type: () -> bool
        """Done when the end is recorded and nothing of the run lives. Until then what is left over
        can still be stopped, and keeps its cards while it holds one open."""
        if not self.recorded or self.ladder is not None:
            return False
        left = self.members().scan(True)
        if self.card_locks is not None and not any(holds_a_card(pid) for pid in left):
            self.card_locks.release()
        return not left

    # signs of life

    def beat(self, force=False):
        # type: (bool) -> None
        now = time.monotonic()
        if not force and now - self.beat_at < HEARTBEAT_S * 0.9:
            return
        self.beat_at = now
        self.trim_log()
        if self.card_locks is not None:
            self.card_locks.keep(self.run.id, self.spec["gpus"].get("share"))
        self.life.update(wall_s=time.time(), mono_s=now)
        self.run.locks.write_record("hb", self.life)

    def trim_log(self):
        # type: () -> None
        """Give the middle of a long log back to the disk. Offsets stay, the start and the end too;
        the hole is declared before it is made, so that no reader takes its zeros for text."""
        limit = int((self.spec["log_max_mib"] or 0) * MIB)
        size = os.fstat(self.log).st_size
        head = min(KEEP_HEAD_BYTES, limit // 4)
        start, end = self.life.get("hole") or [head, head]
        upto = (size - (limit - head)) // 4096 * 4096
        if not limit or upto - end < max(limit // 16, 4096):
            return
        before = self.life.get("hole")
        self.life["hole"] = [start, upto]
        self.run.locks.write_record("hb", self.life)
        if not punch_hole(self.log, end, upto - end):
            self.life["hole"] = before


JOB_DEFAULTS = {
    "PYTHONUNBUFFERED": "1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "COLUMNS": "120",
    "TQDM_MININTERVAL": "2",
}
"""Set for a job where its host and its profile say nothing."""


def visible_name(card):
    # type: (Json) -> str
    """An index, since vLLM does not take a card's uuid; a MIG slice has nothing but its uuid."""
    uuid = str(card["uuid"])
    return uuid if uuid.startswith("MIG-") else str(card["index"])


def card_folder(run):
    # type: (Run) -> Folder
    """Where every run of this user locks its cards: /dev/shm, else beside the runs."""
    folder = shared_memory_folder()
    if folder is not None:
        return folder
    return Folder(os.path.join(os.path.dirname(run.path), "cards"), create=True)


def set_subreaper():
    # type: () -> None
    """Orphans of the job come to us, even those that left its session. Without ctypes the session
    and the mark in the environment must do."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):
        pass


def punch_hole(fd, start, length):
    # type: (int, int, int) -> bool
    try:
        call = ctypes.CDLL(None, use_errno=True).fallocate64
    except (OSError, AttributeError):
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return bool(call(fd, FALLOC_PUNCH_HOLE_KEEP_SIZE, start, length) == 0)


def become_job(log, umask, cwd):
    # type: (int, int, str) -> None
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


def supervise(path, order, reply):
    # type: (str, Json, int) -> None
    """The life of a detached supervisor, in the process that `spawn` made for it."""
    supervisor = Supervisor(Run(path, host_id()), order, reply)
    try:
        supervisor.live()
    except Refused as refusal:
        supervisor.answer({"error": refusal.code, "facts": refusal.facts})


def spawn(path, order):
    # type: (str, Json) -> int
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


def detach(path, reply):
    # type: (str, int) -> int
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


def close_others(keep):
    # type: (int) -> None
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != keep:
            try:
                os.close(int(name))
            except OSError:
                pass  # the one that read the list


# ---------------------------------------------------------------- starting a run


def is_text(value):
    # type: (Any) -> bool
    return isinstance(value, str) and "\0" not in value


def is_texts(value):
    # type: (Any) -> bool
    return isinstance(value, list) and all(map(is_text, value))


def is_command(value):
    # type: (Any) -> bool
    return is_texts(value) and value[:1] not in ([], [""]) and not value[0].startswith("-")


def is_environment(value):
    # type: (Any) -> bool
    return isinstance(value, dict) and all(
        is_text(name) and bool(ENV_NAME.match(name)) and is_text(value[name]) for name in value
    )


def is_amount(value):
    # type: (Any) -> bool
    return isinstance(value, (int, float)) and 0 <= value < 1e9


def is_card(value):
    # type: (Any) -> bool
    """A uuid becomes a file's name, an index a part of an environment."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("index"), int)
        and is_text(value.get("uuid"))
        and bool(CARD_ID.match(value["uuid"]))
    )


def is_request_for_cards(value):
    # type: (Any) -> bool
    if not isinstance(value, dict) or not isinstance(value.get("cards"), list):
        return False
    cards, count = value["cards"], value.get("count")
    if not all(map(is_card, cards)) or len({card["uuid"] for card in cards}) != len(cards):
        return False
    return isinstance(count, int) and 0 < count <= MAX_CARDS and is_amount(value.get("wait_s"))


SPEC_FORM = {
    "run": lambda value: is_text(value) and bool(RUN_ID.match(value)),
    "profile": is_text,
    "kind": is_text,
    "argv": is_command,
    "cwd": is_text,
    "script": lambda value: value is None or is_text(value),
    "env": is_environment,
    "env_defaults": is_environment,
    "path_first": is_texts,
    "gpus": lambda value: value is None or is_request_for_cards(value),
    "stop": lambda value: all(is_amount(value[key]) for key in ("int_s", "term_s")),
    "run_root": lambda value: value is None or is_text(value),
    "log_max_mib": lambda value: value is None or is_amount(value),
    "disk_free_mib": is_amount,
    "tags": is_texts,
    "notes": lambda value: isinstance(value, dict) and is_texts(list(value.values())),
}  # type: Dict[str, Callable[[Any], bool]]


def check_spec(spec):
    # type: (Json) -> Json
    """A spec of the right form, or Refused with the key that is not."""
    for key, is_good in SPEC_FORM.items():
        if not is_good(spec[key]):
            raise Refused("bad_spec", key=key)
    request = spec["gpus"]
    if request is not None and request["count"] > len(request["cards"]):
        raise Refused("too_few_cards", count=request["count"], cards=len(request["cards"]))
    return spec


def check_cwd(spec):
    # type: (Json) -> None
    cwd = to_path(spec["cwd"])
    if not os.path.isdir(cwd) or not os.access(cwd, os.X_OK):
        raise Refused("no_cwd", path=cwd)
    check_space(cwd, spec["disk_free_mib"])


def claim(folder, spec, host):
    # type: (str, Json, str) -> str
    """Make the run's folder with all of its records. Raises FileExistsError when it is taken."""
    path = os.path.join(folder, spec["run"])
    os.mkdir(path, 0o700)
    try:
        kept = {
            key: value
            for key, value in spec.items()
            if key not in ("env", "env_defaults", "script")
        }
        kept["env_names"] = sorted(set(spec["env"]) | set(spec["env_defaults"]))
        kept["claimed_s"] = time.time()
        with Folder(path) as run:
            locks = local_locks(path, spec["run"], host)
            kept["locks"] = None if locks is None else locks.path
            for name in ("exit", "exit.shim", "stop.json", "sup.json"):
                run.allocate(name)
            for name in ("lock", "job.lock"):
                (locks or run).create(name, b"")
            (locks or run).allocate("hb")
            run.create("log", b"")
            if spec.get("script") is not None:
                run.create("script", to_bytes(spec["script"]))
            run.replace("spec.json", json.dumps(kept, sort_keys=True).encode())
            os.fsync(run.fd)
    except BaseException:
        forget(path)
        raise
    return path


def local_locks(path, run, host):
    # type: (str, str, str) -> Optional[Folder]
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


def forget(path):
    # type: (str) -> None
    """Take back a claim that came to nothing, so that the same run can be started again."""
    shutil.rmtree(path, ignore_errors=True)


class Start:
    """A supervisor that was spawned and has not replied yet."""

    LIMIT_S = 60.0

    def __init__(self, path, order):
        # type: (str, Json) -> None
        self._path = path
        self._reply = spawn(path, order)
        self._until = time.monotonic() + self.LIMIT_S
        self._said = b""

    def step(self, now):
        # type: (float) -> Optional[Json]
        """The answer once there is one; Refused when the run did not start."""
        if not select.select([self._reply], [], [], 0)[0]:
            if now > self._until:
                raise Refused("start_slow", path=self._path)
            return None
        self._said += os.read(self._reply, 65536)
        os.close(self._reply)
        reply = parse_object(self._said)
        if reply.get("ok"):
            with Run(self._path, host_id()) as run:
                return {"existed": False, "record": run.describe()}
        trace = read_file(os.path.join(self._path, "sup.log"))[-2000:].decode("utf-8", "replace")
        forget(self._path)
        raise Refused(
            reply.get("error", "supervisor_failed"), **reply.get("facts", {"trace": trace})
        )


# ---------------------------------------------------------------- stopping a run


class Stop:
    """A stop that is under way: by the run's supervisor, or by us when it is gone or does not move."""

    SLACK_S = 15.0

    def __init__(self, run, asked):
        # type: (Run, Json) -> None
        self._run = run
        self._number = int(run.record("stop.json").get("number", 0)) + 1
        default = run.grace_s()
        self._grace_s = (
            float(default[0] if asked.get("int_s") is None else asked["int_s"]),
            float(default[1] if asked.get("term_s") is None else asked["term_s"]),
        )
        self._patience_until = time.monotonic() + sum(self._grace_s) + KILL_S + self.SLACK_S
        self._ladder = None  # type: Optional[Ladder]
        state = run.describe()
        self._idle = state["state"] in ("lost", "other_host") or (
            state["state"] == "exited" and not state["leftovers"]
        )
        if state.get("degraded") == "supervisor_stalled":
            self._patience_until = 0.0
        if not self._idle:
            self._ask()

    def _ask(self):
        # type: () -> None
        int_s, term_s = self._grace_s
        self._run.write_record(
            "stop.json",
            {"number": self._number, "int_s": int_s, "term_s": term_s, "wall_s": time.time()},
        )
        supervisor = self._run.record("sup.json")
        if self._run.is_supervised() and supervisor:
            send_signal(supervisor["pid"], supervisor["start"], signal.SIGUSR1)

    def step(self, now):
        # type: (float) -> Optional[Json]
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

    def _climb(self, now):
        # type: (float) -> Optional[Json]
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

    def _finish(self, sent, left):
        # type: (List[str], Dict[int, Process]) -> Json
        record = self._run.describe()
        leftovers = list(record.get("leftovers") or [])
        named = {process["pid"] for process in leftovers}
        life_left = self._run.locks.record("hb").get("left") or []
        for pid, start in life_left + [[process.pid, process.start] for process in left.values()]:
            if pid not in named and is_alive(pid, start):
                leftovers.append({"pid": pid, "started_ticks": start, "command": command_of(pid)})
        self._run.close()
        return {"record": record, "sent": sent, "left": leftovers}


# ---------------------------------------------------------------- following a log


class Tail:
    """Sends a log from a byte offset on, within the client's window and its byte budget."""

    def __init__(self, run, asked):
        # type: (Run, Json) -> None
        self._run = run
        self._log = run.open("log", os.O_RDONLY)
        self._offset = asked["offset"]
        self._window = asked["window"]
        self._budget = int(asked.get("budget") or 0)
        self._keep_up = int(asked.get("keep_up") or 0)
        self._unacknowledged = 0
        self._allowance = float(self._budget)
        self._allowed_at = time.monotonic()
        self._final = None  # type: Optional[Json]
        self._looked_at = 0.0
        self.ended = False

    def close(self):
        # type: () -> None
        os.close(self._log)
        self._run.close()

    def acknowledge(self, count):
        # type: (int) -> None
        self._unacknowledged = max(0, self._unacknowledged - count)

    def step(self, now):
        # type: (float) -> Optional[Tuple[bytes, bytes]]
        """The next frame's kind and payload, or None when there is nothing to send at present."""
        size = os.fstat(self._log).st_size
        if size < self._offset:
            self._offset, self._final = 0, None
            return b"E", struct.pack(">Q", 0)
        if self._keep_up and size - self._offset > self._keep_up:
            return self._skip_to(size - self._keep_up // 2, True)
        if size == self._offset:
            return self._at_end(now)
        return self._data(now, size - self._offset)

    def _skip_to(self, offset, skipped):
        # type: (int, bool) -> Tuple[bytes, bytes]
        start, self._offset = self._offset, offset
        return b"G", struct.pack(">QQB", start, offset, skipped)

    def _data(self, now, left):
        # type: (float, int) -> Optional[Tuple[bytes, bytes]]
        room = min(CHUNK_BYTES, left, self._window - self._unacknowledged)
        if self._budget:
            self._earn(now)
            if self._allowance < min(room, self._budget / 10.0):
                return None  # rather a piece now and then than every byte by itself
            room = min(room, int(self._allowance))
        data = os.pread(self._log, room, self._offset) if room > 0 else b""
        hole = self._run.locks.record("hb").get(
            "hole"
        )  # after the bytes: it is declared before it is made
        if hole and hole[0] <= self._offset < hole[1]:
            return self._skip_to(hole[1], False)
        if hole and self._offset < hole[0]:
            data = data[: hole[0] - self._offset]
        if not data:
            return None
        frame = struct.pack(">Q", self._offset) + data
        self._offset += len(data)
        self._unacknowledged += len(data)
        self._allowance -= len(data)
        return b"D", frame

    def _earn(self, now):
        # type: (float) -> None
        earned = (now - self._allowed_at) * self._budget
        self._allowance = min(float(self._budget), self._allowance + earned)
        self._allowed_at = now

    def _at_end(self, now):
        # type: (float) -> Optional[Tuple[bytes, bytes]]
        """The end is told only when the log still has no more bytes after the run was seen ended."""
        if self._final is not None:
            self.ended = True
            return b"X", struct.pack(">Q", self._offset) + json.dumps(self._final).encode()
        if now - self._looked_at < 1.0 and not self._run.has_ended():
            return None
        self._looked_at = now
        record = self._run.describe()
        if record["state"] not in ("exited", "lost"):
            return None
        self._final = record
        return self.step(now)


# ---------------------------------------------------------------- the agent


class Output:
    """Frames on their way to the client, written as fast as it takes them."""

    def __init__(self, fd):
        # type: (int) -> None
        self._fd = fd
        self._waiting = bytearray()
        os.set_blocking(fd, False)

    def __len__(self):
        # type: () -> int
        return len(self._waiting)

    def send(self, kind, request, payload):
        # type: (bytes, int, bytes) -> None
        self._waiting += struct.pack(">cII", kind, request, len(payload)) + payload

    def send_object(self, kind, request, value):
        # type: (bytes, int, Json) -> None
        self.send(kind, request, json.dumps(value, separators=(",", ":")).encode())

    def flush(self):
        # type: () -> None
        while self._waiting:
            try:
                done = os.write(self._fd, memoryview(self._waiting)[: 4 * CHUNK_BYTES])
            except BlockingIOError:
                return
            del self._waiting[:done]


class Agent:
    """Answers one client about every run of this host, on one pair of pipes and in one thread."""

    def __init__(self, requests, output):
        # type: (int, Output) -> None
        self._requests = requests
        self._output = output
        self._store = Store()
        self._line = bytearray()
        self._heard_at = time.monotonic()
        self._open = True
        self._umask = os.umask(0o077)
        self._waiting = {}  # type: Dict[int, Union[Start, Stop]]
        self._tails = {}  # type: Dict[int, Tail]
        self._moving = False

    def serve(self):
        # type: () -> None
        """Until the client closes its end, or is silent for long."""
        hello = {"protocol": PROTOCOL, "version": VERSION, "python": sys.version.split()[0]}
        self._output.send_object(b"H", MAGIC, hello)
        while self._open and time.monotonic() - self._heard_at < IDLE_EXIT_S:
            self._output.flush()
            self._wait()
            self._step_waiting()
            self._step_tails()

    def _wait(self):
        # type: () -> None
        listens = [self._requests] if len(self._output) < MAX_QUEUED_BYTES else []
        talks = [1] if len(self._output) else []
        patience_s = 0.0 if self._moving else POLL_S if self._waiting or self._tails else 30.0
        readable, _writable, _none = select.select(listens, talks, [], patience_s)
        if readable:
            self._read()

    def _read(self):
        # type: () -> None
        data = os.read(self._requests, 65536)
        self._heard_at = time.monotonic()
        self._open = bool(data) and len(self._line) < MAX_LINE_BYTES
        self._line += data
        *lines, rest = self._line.split(b"\n")
        self._line = rest
        for line in lines:
            self._take(bytes(line))

    def _take(self, line):
        # type: (bytes) -> None
        request = parse_object(line)
        number = request.get("id")
        if not isinstance(number, int) or not 0 <= number < 1 << 32:
            number = 0
        try:
            method = self.METHODS.get(str(request.get("op")))
            if method is None:
                raise Refused("bad_request", op=str(request.get("op"))[:50])
            answer = method(self, number, request)
        except Refused as refusal:
            self._refuse(number, refusal)
        except (KeyError, TypeError, ValueError) as error:
            self._refuse(number, Refused("bad_request", why=repr(error)[:200]))
        except OSError as error:
            self._refuse(number, Refused("io", why=str(error)[:300]))
        else:
            if answer is not None:
                self._output.send_object(b"R", number, answer)

    def _refuse(self, number, refusal):
        # type: (int, Refused) -> None
        self._output.send_object(b"R", number, {"error": refusal.code, "facts": refusal.facts})

    def _step_waiting(self):
        # type: () -> None
        for number, waiting in list(self._waiting.items()):
            try:
                answer = waiting.step(time.monotonic())
            except Refused as refusal:
                answer = {"error": refusal.code, "facts": refusal.facts}
            except OSError as error:
                answer = {"error": "io", "facts": {"why": str(error)[:300]}}
            if answer is not None:
                del self._waiting[number]
                self._output.send_object(b"R", number, answer)

    def _step_tails(self):
        # type: () -> None
        """A chunk of each, so that a noisy one leaves the others, and the requests, their share."""
        self._moving = False
        if len(self._output) < MAX_QUEUED_BYTES // 4:
            self._moving = any([self._step_tail(number) for number in list(self._tails)])

    def _step_tail(self, number):
        # type: (int) -> bool
        tail = self._tails[number]
        try:
            frame = tail.step(time.monotonic())
        except OSError as error:
            self._refuse(number, Refused("io", why=str(error)[:300]))
            self._end_tail(number)
            return False
        if frame is not None:
            self._output.send(frame[0], number, frame[1])
        if tail.ended:
            self._end_tail(number)
        return frame is not None and not tail.ended

    def _end_tail(self, number):
        # type: (int) -> None
        tail = self._tails.pop(number, None)
        if tail is not None:
            tail.close()

    # requests

    def _on_open(self, _number, request):
        # type: (int, Json) -> Json
        """Say who this host is, and which folder for runs its configuration names."""
        self._store.given = request.get("run_root") or None
        answer = {"host_id": self._store.host, "now_s": time.time(), "root": None}  # type: Json
        answer.update(incarnation())
        try:
            answer["root"] = self._store.choose()
        except Refused as refusal:
            answer.update(error_of_root=refusal.code, facts_of_root=refusal.facts)
        return answer

    def _on_ping(self, _number, _request):
        # type: (int, Json) -> Json
        return {"now_s": time.time()}

    def _on_start(self, number, request):
        # type: (int, Json) -> Optional[Json]
        spec = check_spec(request["spec"])
        secrets = request.get("secrets") or {}
        if not is_environment(secrets):
            raise Refused("bad_spec", key="secrets")
        existing = self._existing(spec["run"])
        if existing is not None:
            return existing
        check_cwd(spec)
        try:
            path = claim(self._store.choose(spec.get("run_root")), spec, self._store.host)
        except FileExistsError:
            return self._existing(spec["run"])
        order = {"spec": spec, "secrets": secrets, "umask": self._umask}
        self._waiting[number] = Start(path, order)
        return None

    def _existing(self, run_id):
        # type: (str) -> Optional[Json]
        try:
            run = self._store.find(run_id)
        except Refused:
            return None
        with run:
            return {"existed": True, "record": run.describe()}

    def _on_list(self, _number, request):
        # type: (int, Json) -> Json
        """A page of records, the newest first; `next` is where the following one begins."""
        paths, records, size = self._store.newest(), [], 0
        at = int(request.get("skip", 0))
        while at < len(paths) and size < ANSWER_BYTES:
            try:
                with Run(paths[at], self._store.host) as run:
                    records.append(run.describe())
                    size += len(json.dumps(records[-1]))
            except (OSError, Refused):
                pass  # taken back meanwhile
            at += 1
        return {"runs": records, "next": at if at < len(paths) else None}

    def _on_status(self, _number, request):
        # type: (int, Json) -> Json
        with self._store.find(checked_id(request)) as run:
            return {"record": run.describe()}

    def _on_stop(self, number, request):
        # type: (int, Json) -> None
        self._waiting[number] = Stop(self._store.find(checked_id(request)), request)

    def _on_tail(self, number, request):
        # type: (int, Json) -> Json
        for key in ("offset", "window"):
            if not isinstance(request[key], int) or request[key] < 0:
                raise Refused("bad_request", key=key)
        if len(self._tails) >= MAX_TAILS or number in self._tails:
            raise Refused("too_many_tails", limit=MAX_TAILS)
        run = self._store.find(checked_id(request))
        self._tails[number] = Tail(run, request)
        return {"record": run.describe()}

    def _on_acknowledge(self, _number, request):
        # type: (int, Json) -> None
        tail = self._tails.get(request["tail"])
        if tail is not None:
            tail.acknowledge(int(request["bytes"]))

    def _on_untail(self, _number, request):
        # type: (int, Json) -> Json
        self._end_tail(request["tail"])
        return {}

    def _on_read(self, number, request):
        # type: (int, Json) -> None
        """Bytes of a log, as a frame of its own kind."""
        offset, length = int(request["offset"]), min(int(request["length"]), READ_BYTES)
        with self._store.find(checked_id(request)) as run:
            log = run.open("log", os.O_RDONLY)
            try:
                data = os.pread(log, max(0, length), max(0, offset))
                size = os.fstat(log).st_size
            finally:
                os.close(log)
        self._output.send(b"B", number, struct.pack(">QQ", offset, size) + data)

    def _on_signal(self, _number, request):
        # type: (int, Json) -> Json
        name, pid, start = request["name"], int(request["pid"]), int(request["started_ticks"])
        if name not in ("INT", "TERM", "KILL") or pid <= 1 or pid == os.getpid():
            raise Refused("bad_request", name=str(name)[:20], pid=pid)
        try:
            return {"sent": send_signal(pid, start, getattr(signal, "SIG" + name))}
        except PermissionError as error:
            raise Refused("not_yours", pid=pid) from error

    def _on_disk(self, _number, request):
        # type: (int, Json) -> Json
        return disk_space(to_path(request["path"]))

    METHODS = {
        "open": _on_open,
        "ping": _on_ping,
        "start": _on_start,
        "list": _on_list,
        "status": _on_status,
        "stop": _on_stop,
        "tail": _on_tail,
        "acknowledge": _on_acknowledge,
        "untail": _on_untail,
        "read": _on_read,
        "signal": _on_signal,
        "disk": _on_disk,
    }  # type: Dict[str, Callable[[Agent, int, Json], Optional[Json]]]


def checked_id(request):
    # type: (Json) -> str
    run = request.get("run")
    if not isinstance(run, str) or not RUN_ID.match(run):
        raise Refused("unknown_run", run=str(run)[:80])
    return run


def main(argv):
    # type: (List[str]) -> int
    if argv != ["serve"]:
        sys.stderr.write("usage: supervisor.py serve\n")
        return 64
    try:
        Agent(0, Output(1)).serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the client is gone; the runs are not
    finally:
        os.set_blocking(1, True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
