"""File systems that could hold someone's data: space, inodes, IO. A dead NFS mount hangs nobody.

Runs on hosts: Python >= 3.6, stdlib only. Every stat runs on a thread that is left behind when it
does not come back; a mount that hangs is listed without numbers until it answers.
"""

import _thread
import os
import stat
import time

from probe_processes import number, read_all

LOCAL = {
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "bcachefs", "overlay",
    "aufs", "ntfs3", "exfat", "vfat", "9p", "virtiofs",
}  # fmt: skip
SHARED = {
    "nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "beegfs", "gpfs", "glusterfs", "afs", "orangefs",
}  # fmt: skip
NO_DATA = ("fuse.lxcfs", "fuse.gvfsd-fuse", "fuse.portal", "fuse.snapfuse", "fuse.fusectl")
SYSTEM = ("/proc", "/sys", "/dev", "/run", "/boot", "/snap", "/var/lib/docker", "/var/lib/containers",
          "/var/lib/kubelet")  # fmt: skip
DISKS_MAX, HUNG_MAX = 32, 4
EVERY_S, LIMIT_S = 10.0, 3.0


class DiskWatch(object):
    """Asks every mount in the background; `changed` gives the list when it is new."""

    def __init__(self):
        self.lock = _thread.allocate_lock()
        self.done = None
        self.started_at = None
        self.asking = None
        self.hung = {}
        self.io_before = None
        self.io_at = 0.0
        self.disks = []

    def poll(self, now):
        """Start a round when one is due, give up one that hangs; the disks if there is news."""
        if self.started_at is not None and self.done is None and now - self.started_at > LIMIT_S:
            if self.asking is not None and len(self.hung) < HUNG_MAX:
                self.hung[self.asking] = self.round
                self.started_at = None
        due = self.started_at is None or (self.done is not None and now - self.started_at >= EVERY_S)
        found, news = self.done, False
        if found is not None and found is not self.disks:
            self.disks, news = found, True
        if due:
            self.done, self.started_at, self.asking = None, now, None
            self.round = Round(self, dict(self.hung))
            _thread.start_new_thread(self.round.run, ())
        return self._with_io(now, news)

    def _with_io(self, now, news):
        if not news and now - self.io_at < 1.9:
            return None
        counters = io_counters() if any(disk.get("device") for disk in self.disks) else {}
        before, span = self.io_before or {}, now - self.io_at
        self.io_before, self.io_at = counters, now
        told = []
        for disk in self.disks:
            shown = {key: value for key, value in disk.items() if key != "device"}
            new, old = counters.get(disk.get("device")), before.get(disk.get("device"))
            if new and old and span > 0.05 and new[0] >= old[0] and new[1] >= old[1]:
                shown["read_mib_s"] = round((new[0] - old[0]) / 2048.0 / span, 2)
                shown["write_mib_s"] = round((new[1] - old[1]) / 2048.0 / span, 2)
            told.append(shown)
        return told


class Round(object):
    """One look at every mount, on a thread of its own."""

    def __init__(self, watch, hung):
        self.watch, self.hung = watch, hung

    def run(self):
        try:
            disks = self._look()
        except Exception:  # noqa: BLE001 - the edge of a thread: one strange mount must not end the rest
            disks = self.watch.disks
        if self.watch.round is self:
            self.watch.done = disks
        for mount, stuck in list(self.watch.hung.items()):
            if stuck is self:
                self.watch.hung.pop(mount, None)

    def _look(self):
        disks, seen = [], set()
        for source, mount, kind in mounts():
            if len(disks) >= DISKS_MAX:
                break
            entry = {"mount": mount, "fstype": kind}
            if mount in self.hung:
                disks.append(entry)
                continue
            if self.watch.round is self:
                self.watch.asking = mount
            try:
                about = os.stat(mount)
                size = os.statvfs(mount)
            except (OSError, ValueError):
                continue
            key = source if source.startswith("/dev/") else about.st_dev
            if not stat.S_ISDIR(about.st_mode) or not size.f_blocks or key in seen:
                continue
            seen.add(key)
            entry["total_mib"] = size.f_blocks * size.f_frsize >> 20
            entry["free_mib"] = size.f_bavail * size.f_frsize >> 20
            if size.f_files:
                entry["inodes_free_pct"] = round(100.0 * size.f_favail / size.f_files, 1)
            entry["device"] = (os.major(about.st_dev), os.minor(about.st_dev))
            disks.append(entry)
        return disks


def mounts(raw=None):
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


def _unescaped(raw):
    """A field of /proc/self/mounts: blanks and the like are octal there."""
    if b"\\" in raw:
        for code, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
            raw = raw.replace(code, char)
    return os.fsdecode(raw)


def io_counters():
    """(major, minor) -> sectors read and written."""
    counters = {}
    for line in read_all("/proc/diskstats", 1 << 18).split(b"\n"):
        parts = line.split()
        if len(parts) < 10:
            continue
        major, minor, reads, writes = (number(parts[place]) for place in (0, 1, 5, 9))
        if None not in (major, minor, reads, writes):
            counters[(major, minor)] = (reads, writes)
    return counters


def wait_first(watch, limit_s):
    """Give the first round a moment, so that the first sample has disks."""
    end = time.monotonic() + limit_s
    while watch.done is None and time.monotonic() < end:
        time.sleep(0.002)
