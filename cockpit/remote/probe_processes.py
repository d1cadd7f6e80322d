"""Who uses a card: NVML's process lists, checked, merged, and named from /proc.

Runs on hosts: Python >= 3.6, stdlib only. A pid that is not of this namespace says so.
"""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_card import Card, CardReader  # type: ignore[import-not-found]

CONTAINER_ENVIRON = 256 * 1024
HERTZ = float(os.sysconf("SC_CLK_TCK") or 100)
INITIAL_PID_NAMESPACE = "pid:[4026531836]"
MARKER = b"COCKPIT_RUN="
PID_MAX = 1 << 22
"""The kernel's own bound: the driver may speak of pids of the host, beyond a container's limit."""


def read(path: str, limit: int = 65536) -> "bytes | None":
    """A file's first bytes; None when it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return os.read(fd, limit)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_all(path: str, limit: int) -> bytes:
    """A file that comes in pieces (environ, kernel lists), up to `limit` bytes."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    parts, size = [], 0  # type: list[bytes], int
    try:
        while size < limit:
            part = os.read(fd, limit - size)
            if not part:
                break
            parts.append(part)
            size += len(part)
    except OSError:
        pass
    finally:
        os.close(fd)
    return b"".join(parts)


def text(raw: bytes, limit: int = 512) -> str:
    return raw[:limit].decode("utf-8", "replace")


def number(raw: "bytes | None") -> "int | None":
    """A whole number out of /proc; None for anything else."""
    try:
        return int(raw) if raw is not None else None
    except ValueError:
        return None


class Users:
    """Names of uids out of /etc/passwd alone: a directory service could hang."""

    def __init__(self) -> None:
        self.names = {}  # type: dict[int, str]
        for line in read_all("/etc/passwd", 1 << 20).split(b"\n"):
            parts = line.split(b":")
            uid = number(parts[2]) if len(parts) > 2 else None
            if uid is not None:
                self.names.setdefault(uid, text(parts[0], 64))

    def name(self, uid: int) -> str:
        return self.names.get(uid, str(uid))


class ProcessReader:
    """Lists of a card's processes, with what /proc adds. Remembers what does not change."""

    def __init__(self, users: Users) -> None:
        self.users = users
        self.other_lists = None  # type: Any
        self.known = {}  # type: dict[int, dict[str, Any]]
        self.versions = {"Compute": [3, 2], "Graphics": [3, 2]}
        self.check_holders = os.path.exists("/dev/nvidiactl") and _own_namespace()

    def of_card(self, reader: "CardReader", card: "Card") -> "list[dict[str, Any]] | None":
        """The processes of `card`; None when they cannot be known this time."""
        sizes, answered = {}, False  # type: dict[int, int | None], bool
        for kind in ("Compute", "Graphics"):
            listed = self._list(reader, card, kind)
            if listed is None:
                continue
            answered = True
            for pid, size in _by_pid(listed).items():
                before = sizes.get(pid)
                sizes[pid] = size if before is None else max(before, size or 0)
        if not answered:
            return [] if {"Compute", "Graphics"} <= card.off else None
        now = time.monotonic()
        self._forget(now)
        total = card.now.get("mem_total_mib")
        return [self._details(pid, size, total, now) for pid, size in list(sizes.items())[:512]]

    def _list(self, reader: "CardReader", card: "Card", kind: str) -> "list[Any] | None":
        """The newest version of the list that can be believed. Raises for a lost card."""
        if kind in card.off:
            return None
        nvml, best = reader.nvml, None  # type: Any, list[Any] | None
        for version in self.versions[kind]:
            call = getattr(nvml, "nvmlDeviceGet%sRunningProcesses_v%d" % (kind, version), None)
            name = "%s_v%d" % (kind, version)
            listed = reader.ask(card, name, call, card.handle) if call else None  # type: list[Any] | None
            if listed is not None and self._plausible(listed):
                return listed
            best = best if best is not None else listed
        if best is None:
            if all("%s_v%d" % (kind, version) in card.off for version in self.versions[kind]):
                card.off.add(kind)
            return None
        if kind == "Compute":
            other = self._other_list(card.now["uuid"])
            if other is not None:
                return other
        return [entry for entry in best if self._plausible([entry])]

    def _other_list(self, uuid: str) -> "list[Any] | None":
        """The processes of a card by nvidia-smi, which is loaded for drivers that need it."""
        if self.other_lists is None:
            from probe_smi_lists import SmiLists  # type: ignore[import-not-found]

            self.other_lists = SmiLists()
        found = self.other_lists.of_card(uuid)  # type: list[Any] | None
        return found

    def _plausible(self, listed: "list[Any]") -> bool:
        """A driver once changed the struct under the same symbol: its pids are no pids."""
        return all(0 < entry.pid <= PID_MAX for entry in listed)

    def _forget(self, now: float) -> None:
        if len(self.known) > 256:
            self.known = {pid: kept for pid, kept in self.known.items() if now - kept["at"] < 60.0}

    def _details(
        self, pid: int, size: "int | None", total: "int | None", now: float
    ) -> "dict[str, Any]":
        used = size >> 20 if size is not None and 0 <= size < 1 << 54 else None
        if used is not None and total and used > 2 * total:
            used = None
        process = {"pid": pid, "mem_used_mib": used}  # type: dict[str, Any]
        stat = read("/proc/%d/stat" % pid, 4096)
        fields = stat[stat.rfind(b")") + 1 :].split() if stat else []
        if stat is None or len(fields) < 20:
            process["visible"] = False
            return process
        started = number(fields[19])
        known = self.known.get(pid)
        if known is None or known["started"] != started:
            known = self.known[pid] = self._meet(pid, stat, started)
        process.update(known["told"])
        busy = (number(fields[11]) or 0) + (number(fields[12]) or 0)
        if known["busy"] is not None and now > known["at"] and process.get("visible", True):
            share = (busy - known["busy"]) / HERTZ / (now - known["at"])
            process["cpu_pct"] = round(max(0.0, 100.0 * share), 1)
        if known["at"] != now:
            known["busy"], known["at"] = busy, now
        return process

    def _meet(self, pid: int, stat: bytes, started: "int | None") -> "dict[str, Any]":
        """What does not change while a process lives."""
        known = {  # type: dict[str, Any]
            "started": started,
            "busy": None,
            "at": time.monotonic(),
            "told": {"visible": False},
        }
        if self.check_holders and not _holds_a_card(pid):
            return known
        told = {  # type: dict[str, Any]
            "started_ticks": started,
            "name": text(stat[stat.find(b"(") + 1 : stat.rfind(b")")], 64),
            "command": text(
                (read("/proc/%d/cmdline" % pid, 4096) or b"").replace(b"\0", b" ").strip(), 1000
            ),
            "run": run_of(pid),
        }
        try:
            told["user"] = self.users.name(os.stat("/proc/%d" % pid).st_uid)
        except OSError:
            pass
        known["told"] = {key: value for key, value in told.items() if value not in (None, "")}
        return known


def run_of(pid: int) -> "str | None":
    """The run of ours that a process belongs to, by its environment; readable for our own user's."""
    environ = b"\0" + read_all("/proc/%d/environ" % pid, CONTAINER_ENVIRON)
    start = environ.find(b"\0" + MARKER)
    if start < 0:
        return None
    start += 1 + len(MARKER)
    end = environ.find(b"\0", start)
    return text(environ[start : end if end >= 0 else len(environ)], 128) or None


def _by_pid(listed: "list[Any]") -> "dict[int, int | None]":
    """Memory by pid; a process in several MIG instances counts with the sum."""
    sizes = {}  # type: dict[int, int | None]
    for entry in listed:
        size = entry.usedGpuMemory
        size = size if size is not None and 0 <= size < 1 << 54 else None
        before = sizes.get(entry.pid)
        sizes[entry.pid] = size if before is None else before + (size or 0)
    return sizes


def _own_namespace() -> bool:
    try:
        return os.readlink("/proc/self/ns/pid") != INITIAL_PID_NAMESPACE
    except OSError:
        return False


def _holds_a_card(pid: int) -> bool:
    """Whether the process has a card open: the driver's pid may be another namespace's number."""
    folder = "/proc/%d/fd" % pid
    try:
        for name in os.listdir(folder)[:4096]:
            try:
                if os.readlink(folder + "/" + name).startswith("/dev/nvidia"):
                    return True
            except OSError:
                continue
    except OSError:
        return True
    return False
