"""The host's own numbers out of /proc, cgroups and file systems; whatever cannot be read is None.

Runs on hosts: Python >= 3.6, stdlib only. Files of /proc are kept open and read from their start.
"""

import os
import time

from probe_processes import number, read, read_all  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VIRTUAL_NETS = (b"lo", b"veth", b"docker", b"br-", b"virbr", b"cni", b"flannel", b"cali", b"ifb")
NO_LIMIT = 1 << 60
CPU_NAMES = ("cpu_pct", "steal_pct", "iowait_pct")


class Opened:
    """A file of /proc, held open; `read` gives its present text or None."""

    def __init__(self, path: str, limit: int = 65536) -> None:
        self.path, self.limit = path, limit
        self.fd = None  # type: int | None

    def read(self) -> "bytes | None":
        try:
            if self.fd is None:
                self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self.fd, self.limit, 0)
        except OSError:
            if self.fd is not None:
                os.close(self.fd)
                self.fd = None
            return None


class HostReader:
    """CPU, memory, network and cgroup numbers of each tick."""

    def __init__(self) -> None:
        self.stat = Opened("/proc/stat", 4096)
        self.meminfo = Opened("/proc/meminfo", 8192)
        self.loadavg = Opened("/proc/loadavg", 128)
        self.net = Opened("/proc/net/dev")
        self.cgroup = Cgroup()
        self.cpu_before = None  # type: list[int] | None
        self.net_before = None  # type: tuple[float, int, int] | None
        self.due = 0.0
        self.reads = 0
        up = (read("/proc/uptime", 128) or b"").split()
        self.uptime_from = (_real(up[0]) if up else None, time.monotonic())
        self.cpu_now()

    def read(self, focus: bool = False) -> "dict[str, Any]":
        """The numbers of now, every two seconds (every one on focus); in between nothing is new."""
        now = time.monotonic()
        if self.reads > 1 and now < self.due - 0.05:
            return {}
        self.reads += 1
        self.due = now + (1.0 if focus else 2.0)
        numbers = self.memory()
        numbers.update(self.cpu_now())
        numbers.update(self.net_now(now))
        numbers.update(self.cgroup.read(now))
        numbers.update(self.shm_now())
        load = (self.loadavg.read() or b"").split()
        numbers["load1"] = _real(load[0]) if load else None
        up, at = self.uptime_from
        numbers["uptime_s"] = round(up + now - at, 1) if up is not None else None
        return numbers

    def cpu_now(self) -> "dict[str, Any]":
        """Busy, stolen and waiting-for-a-disk shares since the last call; the last counts as idle."""
        line = (self.stat.read() or b"").split(b"\n", 1)[0].split()
        ticks = [int(part) for part in line[1:9] if part.isdigit()]
        if line[:1] != [b"cpu"] or len(ticks) < 4 or len(ticks) != len(line[1:9]):
            return dict.fromkeys(CPU_NAMES)
        before, self.cpu_before = self.cpu_before, ticks
        if before is None or len(before) != len(ticks):
            return dict.fromkeys(CPU_NAMES)
        spent = [max(0, ticks[place] - old) for place, old in enumerate(before)]
        total = sum(spent)
        if total < 5 and sum(ticks) >= sum(before):
            self.cpu_before = before
            return {}
        if not total:
            return dict.fromkeys(CPU_NAMES)
        waited = spent[4] if len(spent) > 4 else 0
        idle = spent[3] + waited
        stolen = spent[7] if len(spent) > 7 else 0
        return {
            "cpu_pct": round(100.0 * (total - idle) / total, 1),
            "steal_pct": round(100.0 * stolen / total, 1),
            "iowait_pct": round(100.0 * waited / total, 1),
        }

    def memory(self) -> "dict[str, Any]":
        """RAM by what could be given back, and swap."""
        raw = self.meminfo.read() or b""
        total, free = _kib(raw, b"MemTotal:"), _kib(raw, b"MemAvailable:")
        if free is None:
            parts = [_kib(raw, name) for name in (b"MemFree:", b"Buffers:", b"\nCached:")]
            known = [part for part in parts if part is not None]
            free = sum(known) if len(known) == len(parts) else None
        swap, unused = _kib(raw, b"SwapTotal:"), _kib(raw, b"SwapFree:")
        return {
            "mem_total_mib": total >> 10 if total is not None else None,
            "mem_used_mib": _used(total, free),
            "swap_total_mib": swap >> 10 if swap is not None else None,
            "swap_used_mib": _used(swap, unused),
        }

    def net_now(self, now: float) -> "dict[str, Any]":
        """Rates over real interfaces: bridges and veths would count the same bytes again."""
        received = sent = 0
        raw = self.net.read()
        if raw is None:
            return {}
        for line in raw.split(b"\n")[2:]:
            name, colon, rest = line.partition(b":")
            parts = rest.split()
            if not colon or len(parts) < 9 or name.strip().startswith(VIRTUAL_NETS):
                continue
            received += number(parts[0]) or 0
            sent += number(parts[8]) or 0
        before, self.net_before = self.net_before, (now, received, sent)
        if before is None or now - before[0] < 0.05 or received < before[1] or sent < before[2]:
            return {"net_rx_mib_s": None, "net_tx_mib_s": None}
        unit = (now - before[0]) * 1048576.0
        return {
            "net_rx_mib_s": round((received - before[1]) / unit, 3),
            "net_tx_mib_s": round((sent - before[2]) / unit, 3),
        }

    def shm_now(self) -> "dict[str, Any]":
        try:
            size = os.statvfs("/dev/shm")
        except OSError:
            return {"shm_free_mib": None, "shm_total_mib": None}
        unit = size.f_frsize
        return {
            "shm_free_mib": size.f_bavail * unit >> 20,
            "shm_total_mib": size.f_blocks * unit >> 20,
        }


class Cgroup:
    """Memory that this container or session may use, and how often the kernel killed for it."""

    def __init__(self) -> None:
        found = _memory_cgroup()
        self.folder = found[0] if found else None
        self.version = found[1] if found else 2
        two = self.version == 2
        self.current = self._file("memory.current" if two else "memory.usage_in_bytes")
        self.events = self._file("memory.events" if two else "memory.oom_control")
        self.vmstat = Opened("/proc/vmstat")
        self.alone = True  # on a machine of its own: what the kernel counts is ours
        self.slow_at = self.kills_at = None  # type: float | None
        self.kills = None  # type: int | None
        self.limit = self.cache = None  # type: int | None

    def _file(self, name: str) -> "Opened | None":
        return Opened(self.folder + "/" + name, 8192) if self.folder else None

    def read(self, now: float) -> "dict[str, Any]":
        if self.kills_at is None or now - self.kills_at >= (1.9 if self.limit is not None else 4.9):
            self.kills_at, self.kills = now, self._kills()
        numbers = {"cgroup_oom_kills": self.kills}  # type: dict[str, Any]
        if self.folder is None:
            return numbers
        if self.slow_at is None or now - self.slow_at >= 5.0:
            self.slow_at = now
            self._read_slow()
        used = number(self.current.read()) if self.current else None
        if self.limit is None or used is None:
            return dict(numbers, cgroup_used_mib=None, cgroup_limit_mib=None)
        numbers["cgroup_used_mib"] = max(0, used - (self.cache or 0)) >> 20
        numbers["cgroup_limit_mib"] = self.limit >> 20
        return numbers

    def _read_slow(self) -> None:
        """The limit, and the file cache that the kernel gives back before it kills."""
        two, folder = self.version == 2, self.folder or ""
        limit = number(read(folder + ("/memory.max" if two else "/memory.limit_in_bytes"), 64))
        self.limit = limit if limit is not None and limit < NO_LIMIT else None
        stat = b"\n" + read_all(folder + "/memory.stat", 16384)
        self.cache = _value(stat, b"\ninactive_file " if two else b"\ntotal_inactive_file ")

    def _kills(self) -> "int | None":
        raw = self.events.read() if self.events else None
        kills = _value(b"\n" + raw, b"\noom_kill ") if raw else None
        if self.alone and (kills is None or self.limit is None):
            whole = _value(self.vmstat.read() or b"", b"\noom_kill ")
            return kills if whole is None else whole
        return kills


def _memory_cgroup() -> "tuple[str, int] | None":
    """(folder, version) of the nearest cgroup with a memory limit."""
    one = two = None  # type: str | None
    for line in read_all("/proc/self/cgroup", 65536).split(b"\n"):
        parts = line.split(b":", 2)
        if len(parts) != 3:
            continue
        if parts[0] == b"0" and parts[1] == b"":
            two = os.fsdecode(parts[2])
        elif b"memory" in parts[1].split(b","):
            one = os.fsdecode(parts[2])
    found = None  # type: tuple[str, int] | None
    for root, path, version, name in (
        ("/sys/fs/cgroup/memory", one, 1, "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", two, 2, "memory.max"),
        ("/sys/fs/cgroup/unified", two, 2, "memory.max"),
    ):
        found = found or (_nearest(root, path, version, name) if path is not None else None)
    return found


def _nearest(root: str, path: str, version: int, name: str) -> "tuple[str, int] | None":
    """From the own cgroup up; inside a container the own path is often that of the outside."""
    first = None  # type: tuple[str, int] | None
    path = "/" + path.strip("/")
    for _ in range(32):
        folder = (root + path).rstrip("/")
        limit = read(folder + "/" + name, 64)
        if limit is not None:
            first = first or (folder, version)
            if (number(limit) or NO_LIMIT) < NO_LIMIT:
                return (folder, version)
        if path in ("/", ""):
            break
        path = path.rsplit("/", 1)[0] or "/"
    return first


def _value(raw: bytes, name: bytes) -> "int | None":
    """The number after `name` in a list of names and numbers."""
    start = raw.find(name)
    if start < 0:
        return None
    end = raw.find(b"\n", start + len(name))
    value = number(raw[start + len(name) : end if end >= 0 else len(raw)])  # type: int | None
    return value


def _kib(raw: bytes, name: bytes) -> "int | None":
    start = raw.find(name)
    if start < 0:
        return None
    value = number((raw[start + len(name) : start + 64].split() or [b""])[0])  # type: int | None
    return value


def _used(total: "int | None", free: "int | None") -> "int | None":
    return max(0, total - free) >> 10 if total is not None and free is not None else None


def _real(raw: bytes) -> "float | None":
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if 0.0 <= value < 1e12 else None
