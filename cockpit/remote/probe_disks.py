"""File systems that could hold someone's data: space, inodes, IO. A dead NFS mount hangs nobody.

Runs on hosts: Python >= 3.6, stdlib only. Every stat runs on a thread that is left behind when it
does not come back; a mount that hangs is listed without numbers until it answers.
"""

import _thread
import os
import stat
import time

from probe_processes import number, read_all  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOCAL = {
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "bcachefs", "overlay",
    "aufs", "ntfs3", "exfat", "vfat", "9p", "virtiofs",
}  # fmt: skip
SHARED = {
    "nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "beegfs", "gpfs", "glusterfs", "afs", "orangefs",
}  # fmt: skip
NO_DATA = ("fuse.lxcfs", "fuse.gvfsd-fuse", "fuse.portal", "fuse.snapfuse", "fuse.fusectl")
SYSTEM = (
    "/proc", "/sys", "/dev", "/run", "/boot", "/snap", "/var/lib/docker", "/var/lib/containers",
    "/var/lib/kubelet",
)  # fmt: skip
DISKS_MAX, HUNG_MAX = 32, 4
EVERY_S, LIMIT_S = 10.0, 3.0
IO_S, FOCUS_IO_S = 5.0, 2.0


class Round:
    """One look at every mount, on a thread of its own; `asking` is the mount it is at."""

    def __init__(self, hung: "set[str]") -> None:
        self.hung = hung
        self.asking = None  # type: str | None
        self.disks = None  # type: list[dict[str, Any]] | None
        self.began = time.monotonic()

    def run(self) -> None:
        disks = []  # type: list[dict[str, Any]]
        try:
            self._look(disks)
        except Exception:  # noqa: BLE001 - the edge of a thread: one strange mount must not end the rest
            pass
        self.asking, self.disks = None, disks

    def _look(self, disks: "list[dict[str, Any]]") -> None:
        seen = set()  # type: set[Any]
        for source, mount, kind in mounts():
            if len(disks) >= DISKS_MAX:
                break
            if mount in self.hung:
                disks.append({"mount": mount, "fstype": kind})
                continue
            self.asking = mount
            try:
                about, size = os.stat(mount), os.statvfs(mount)
            except (OSError, ValueError):
                continue
            key = source if source.startswith("/dev/") else about.st_dev
            if stat.S_ISDIR(about.st_mode) and size.f_blocks and key not in seen:
                seen.add(key)
                disks.append(dict(numbers(size), mount=mount, fstype=kind, device=about.st_dev))


def numbers(size: "os.statvfs_result") -> "dict[str, Any]":
    """Space that a user may still take, and inodes where the file system counts them."""
    unit = size.f_frsize
    told = {"total_mib": size.f_blocks * unit >> 20, "free_mib": size.f_bavail * unit >> 20}  # type: dict[str, Any]
    if size.f_files:
        told["inodes_free_pct"] = round(100.0 * size.f_favail / size.f_files, 1)
    return told


class DiskWatch:
    """Looks at every mount in the background; `poll` gives the list when there is news."""

    def __init__(self) -> None:
        self.round = None  # type: Round | None
        self.hung = {}  # type: dict[str, Round]
        self.disks = []  # type: list[dict[str, Any]]
        self.taken = None  # type: Round | None
        self.io_before = {}  # type: dict[int, tuple[int, int]]
        self.io_at = 0.0

    @property
    def ready(self) -> bool:
        return self.round is not None and self.round.disks is not None

    def poll(self, now: float, focus: bool = False) -> "list[dict[str, Any]] | None":
        """Begin a round when one is due, give up one that hangs; the disks if there is news."""
        self._give_up(now)
        current, news = self.round, False
        if current is not None and current.disks is not None and current is not self.taken:
            self.taken, self.disks, news = current, current.disks, True
        if current is None or (current.disks is not None and now - current.began >= EVERY_S):
            self.round = Round(set(self.hung))
            _thread.start_new_thread(self.round.run, ())
        return self._with_io(now, news, (FOCUS_IO_S if focus else IO_S) - 0.05)

    def _give_up(self, now: float) -> None:
        """Leave a round to its hanging mount; a mount that came back is asked again."""
        for mount, stuck in list(self.hung.items()):
            if stuck.disks is not None:
                del self.hung[mount]
        current = self.round
        if current is None or current.disks is not None or now - current.began <= LIMIT_S:
            return
        asking = current.asking
        if asking is not None and len(self.hung) < HUNG_MAX:
            self.hung[asking] = current
            self.round = None

    def _with_io(self, now: float, news: bool, period_s: float) -> "list[dict[str, Any]] | None":
        span = now - self.io_at
        if not news and span < period_s:
            return None
        before, self.io_before, self.io_at = self.io_before, io_counters(), now
        told = []
        for disk in self.disks:
            shown = {name: value for name, value in disk.items() if name != "device"}
            new, old = (
                self.io_before.get(disk.get("device", -1)),
                before.get(disk.get("device", -1)),
            )
            if new and old and span > 0.05 and new[0] >= old[0] and new[1] >= old[1]:
                shown["read_mib_s"] = round((new[0] - old[0]) / 2048.0 / span, 2)
                shown["write_mib_s"] = round((new[1] - old[1]) / 2048.0 / span, 2)
            told.append(shown)
        return told


def mounts(raw: "bytes | None" = None) -> "list[tuple[str, str, str]]":
    """(source, mount, type) of the mounts worth asking, short paths first and shared ones last."""
    raw = read_all("/proc/self/mounts", 1 << 20) if raw is None else raw
    found = []
    for line in raw.split(b"\n"):
        parts = line.split(b" ")
        if len(parts) < 4:
            continue
        source, mount, kind = (_unescaped(part) for part in parts[:3])
        shared = kind in SHARED or (kind.startswith("fuse.") and kind not in NO_DATA)
        if not shared and kind not in LOCAL:
            continue
        system = any(mount == place or mount.startswith(place + "/") for place in SYSTEM)
        if system or (kind in ("overlay", "aufs") and mount != "/"):
            continue
        found.append((shared, len(mount), source, mount, kind))
    return [entry[2:] for entry in sorted(found)[:256]]


def _unescaped(raw: bytes) -> str:
    """A field of /proc/self/mounts: blanks and the like are octal there."""
    if b"\\" in raw:
        for code, char in (
            (b"\\040", b" "),
            (b"\\011", b"\t"),
            (b"\\012", b"\n"),
            (b"\\134", b"\\"),
        ):
            raw = raw.replace(code, char)
    return os.fsdecode(raw)


def io_counters() -> "dict[int, tuple[int, int]]":
    """Device number -> sectors read and written."""
    counters = {}
    for line in read_all("/proc/diskstats", 1 << 18).split(b"\n"):
        parts = line.split()
        if len(parts) < 10:
            continue
        major, minor, reads, writes = (number(parts[place]) for place in (0, 1, 5, 9))
        if None not in (major, minor, reads, writes):
            counters[os.makedev(major, minor)] = (reads, writes)
    return counters


def wait_first(watch: DiskWatch, limit_s: float) -> None:
    """Give the first round a moment, so that the first sample has disks."""
    end = time.monotonic() + limit_s
    while not watch.ready and time.monotonic() < end:
        time.sleep(0.002)
