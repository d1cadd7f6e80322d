"""Facts of a host that a run depends on: which life it is in, memory kills, disks, file systems."""

import hashlib
import os
import re
import socket

from supervisor_files import MIB, Folder, Refused, read_file, to_bytes  # type: ignore[import-not-found]
from supervisor_processes import read_process  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

INODES_FREE_PCT = 1.0
NETWORK_FS = ("nfs", "cifs", "smb", "lustre", "ceph", "gluster", "beegfs", "gpfs", "afs", "9p")


def incarnation() -> "Json":
    """Which life of this host or container it is. A restarted container keeps its boot id: what
    differs is when its first process started."""
    first = read_process(1)
    return {
        "boot_id": read_file("/proc/sys/kernel/random/boot_id", 64).decode().strip(),
        "pid1_start": None if first is None else first.start,
    }


def host_id() -> str:
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


def oom_kills() -> "tuple[str, int | None]":
    """(file, count) of processes killed for memory: of our cgroup, else of the whole kernel."""
    own: "dict[str, str]" = {}
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


def oom_count(path: str) -> "int | None":
    found = re.search(rb"^oom_kill (\d+)$", read_file(path), re.MULTILINE)
    return int(found.group(1)) if found else None


def oom_kills_since(baseline: "Any") -> "int | None":
    """How many more than at the run's start; None when it cannot be known."""
    if not isinstance(baseline, list) or len(baseline) != 2 or not isinstance(baseline[1], int):
        return None
    before = int(baseline[1])
    count = oom_count(str(baseline[0]))
    return None if count is None else max(0, count - before)


def mounted_type(path: str) -> str:
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


def is_remote(path: str) -> bool:
    """Whether locks on it may not reach this kernel only: network and most user-space file systems."""
    kind = mounted_type(path)
    if kind.startswith("fuse"):
        return kind not in ("fuseblk", "fuse.fuse-overlayfs")
    return kind.startswith(NETWORK_FS)


def disk_space(path: str) -> "Json":
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


def check_space(path: str, needed_mib: int) -> None:
    """A file system that counts no blocks at all says nothing about its room. Raises Refused."""
    room = disk_space(path)
    if room["free_mib"] < needed_mib and room["total_mib"]:
        raise Refused("disk_full", path=path, free_mib=room["free_mib"], needed_mib=needed_mib)
    if room["inodes_free_pct"] is not None and room["inodes_free_pct"] < INODES_FREE_PCT:
        raise Refused("no_inodes", path=path, inodes_free_pct=room["inodes_free_pct"])


def shared_memory_folder() -> "Folder | None":
    """Ours on /dev/shm, which every process of this kernel sees and a restart empties."""
    try:
        return Folder("/dev/shm/cockpit-%d" % os.geteuid(), create=True)
    except (OSError, Refused):
        return None
