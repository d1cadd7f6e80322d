"""How much on this host waits for CPU, disks and memory, and how often a container's CPU quota stops it.

Runs on hosts: Python >= 3.6, stdlib only. Files stay open; what a kernel does not have is None.
"""

import os

from probe_host import Opened  # type: ignore[import-not-found]
from probe_processes import number, read, read_all  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS = (("cpu", b"some"), ("io", b"some"), ("io", b"full"), ("memory", b"full"))
NAMES = ("pressure_cpu_pct", "pressure_io_pct", "pressure_io_full_pct", "pressure_mem_full_pct")
QUOTA_EVERY_S = 5.0


class PressureReader:
    """The numbers that the other readings of a tick do not have."""

    def __init__(self, root: str = "") -> None:
        self.files = {
            kind: Opened("%s/proc/pressure/%s" % (root, kind), 512)
            for kind in ("cpu", "io", "memory")
        }
        self.quota = CpuQuota(root)
        self.quota_at = None  # type: float | None

    def read(self, now: float) -> "dict[str, Any]":
        """The shares of the last ten seconds; the quota's numbers now and then."""
        texts = {kind: opened.read() or b"" for kind, opened in self.files.items()}
        told = {
            name: _avg10(texts[kind], line)
            for name, (kind, line) in zip(NAMES, KINDS)  # noqa: B905 - `strict` is not in Python 3.6
        }  # type: dict[str, Any]
        if self.quota_at is None or now - self.quota_at >= QUOTA_EVERY_S - 0.05:
            self.quota_at = now
            told.update(self.quota.read())
        return told


def _avg10(raw: bytes, kind: bytes) -> "float | None":
    """The share of ten seconds out of `some avg10=1.23 avg60=…`."""
    for line in raw.split(b"\n"):
        words = line.split()
        if words[:1] == [kind] and len(words) > 1 and words[1].startswith(b"avg10="):
            try:
                share = float(words[1][6:])
            except ValueError:
                return None
            return share if 0.0 <= share <= 100.0 else None
    return None


class CpuQuota:
    """The nearest cgroup with a CPU limit: how many cores it allows, and how often it made us wait."""

    def __init__(self, root: str = "") -> None:
        self.root = root
        self.cores, folder = self._nearest()
        self.stat = Opened(folder + "/cpu.stat", 4096) if folder else None
        self.before = None  # type: tuple[int, int] | None

    def read(self) -> "dict[str, Any]":
        """cpu_quota_cores, and of its periods since the last look the share that were cut short."""
        told = {"cpu_quota_cores": self.cores, "cpu_throttled_pct": None}  # type: dict[str, Any]
        raw = (self.stat.read() if self.stat else None) or b""
        values = dict(line.split()[:2] for line in raw.split(b"\n") if len(line.split()) >= 2)
        periods, cut = number(values.get(b"nr_periods")), number(values.get(b"nr_throttled"))
        if periods is None or cut is None:
            return told
        before, self.before = self.before, (periods, cut)
        if before is not None and periods > before[0] and cut >= before[1]:
            told["cpu_throttled_pct"] = round(
                min(100.0, 100.0 * (cut - before[1]) / (periods - before[0])), 1
            )
        elif before is not None and periods == before[0]:
            told["cpu_throttled_pct"] = 0.0
        return told

    def _nearest(self) -> "tuple[float | None, str]":
        """From the own cgroup up; inside a container the own path is often that of the outside."""
        for base, path, limit in self._places():
            path = "/" + path.strip("/")
            for _ in range(32):
                folder = (base + path).rstrip("/")
                cores = limit(folder)
                if cores is not None:
                    return cores, folder
                if path in ("/", ""):
                    break
                path = path.rsplit("/", 1)[0] or "/"
        return None, ""

    def _places(self) -> "list[tuple[str, str, Any]]":
        found = []  # type: list[tuple[str, str, Any]]
        root = self.root
        for line in read_all(root + "/proc/self/cgroup", 65536).split(b"\n"):
            parts = line.split(b":", 2)
            if len(parts) != 3:
                continue
            path = os.fsdecode(parts[2])
            if parts[0] == b"0" and parts[1] == b"":
                found.append((root + "/sys/fs/cgroup", path, _limit_two))
            elif b"cpu" in parts[1].split(b","):
                found.append((root + "/sys/fs/cgroup/cpu", path, _limit_one))
                found.append((root + "/sys/fs/cgroup/cpu,cpuacct", path, _limit_one))
        return found


def _limit_two(folder: str) -> "float | None":
    words = (read(folder + "/cpu.max", 64) or b"").split()
    return _cores(words[0], words[1]) if len(words) == 2 else None


def _limit_one(folder: str) -> "float | None":
    return _cores(
        read(folder + "/cpu.cfs_quota_us", 64) or b"",
        read(folder + "/cpu.cfs_period_us", 64) or b"",
    )


def _cores(quota: bytes, period: bytes) -> "float | None":
    allowed, every = number(quota), number(period)
    if not allowed or not every or allowed <= 0 or every <= 0:
        return None
    cores = float(allowed) / float(every)
    return round(cores, 2)
