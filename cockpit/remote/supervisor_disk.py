"""Free space where a run writes: said before the job meets a full disk, and once it has room again."""

import os

from supervisor_driver import in_child  # type: ignore[import-not-found]
from supervisor_events import Events  # type: ignore[import-not-found]
from supervisor_files import to_path  # type: ignore[import-not-found]
from supervisor_host import disk_space, is_remote  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

LOW_MIB = 200
LOW_PCT = 2.0
ROOMY_MIB = 20 * 1024
"""A fiftieth of a very large disk is room enough: with this much free no share counts as low."""
LOW_INODES_PCT = 2.0
ROOM_AGAIN = 1.5
"""How many times the low mark must be free before it counts as room again."""
LOOK_S = 2.0
NEAR_LOOK_S = 0.25
REMOTE_LOOK_S = 30.0
ANSWER_S = 5.0


class DiskWatch:
    """Looks at the disks of a run's log and of its working folder."""

    def __init__(self, paths: "list[str]", events: "Events", life: "Json") -> None:
        self._disks = [Disk(path) for path in one_a_disk(paths)]
        self._events = events
        self._life = life
        self.wait_s = LOOK_S

    def look(self, now: float) -> None:
        for disk in self._disks:
            change = disk.look(now)
            if change:
                self._events.note(change, **disk.facts())
        self._life["disk_low"] = any(disk.is_low for disk in self._disks)
        self.wait_s = min([disk.wait_s for disk in self._disks] + [LOOK_S])


class Disk:
    """One of them, and whether it was low when last seen."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_low = False
        self.wait_s = LOOK_S
        self._room: "Json" = {}
        self._is_remote = is_remote(path)
        self._next_at = 0.0

    def facts(self) -> "Json":
        return {
            key: self._room[key] for key in ("path", "free_mib", "total_mib", "inodes_free_pct")
        }

    def look(self, now: float) -> str:
        """disk_low or disk_ok when that has changed, else nothing."""
        if now < self._next_at:
            return ""
        self._next_at = now + (REMOTE_LOOK_S if self._is_remote else 0.0)
        self._room = self._ask()
        if not self._room:
            return ""
        is_low = lowness(self._room, ROOM_AGAIN if self.is_low else 1.0) > 1.0
        is_near = not self._is_remote and lowness(self._room, 10.0) > 1.0
        self.wait_s = NEAR_LOOK_S if is_near and not is_low else LOOK_S
        changed, self.is_low = is_low != self.is_low, is_low
        return "" if not changed else "disk_low" if is_low else "disk_ok"

    def _ask(self) -> "Json":
        """A file server that hangs must not hang us: it is asked from a process that we can give up."""
        if not self._is_remote:
            try:
                return dict(disk_space(self.path))
            except OSError:
                return {}
        room = in_child(lambda: disk_space(self.path), ANSWER_S)
        if not room:
            self._next_at = float("inf")
        return dict(room)


def lowness(room: "Json", factor: float) -> float:
    """Above 1 when less is free than `factor` times the low marks."""
    share_mib = min(room["total_mib"] * LOW_PCT / 100.0, ROOMY_MIB)
    low_mib = factor * max(LOW_MIB, share_mib)
    worst = low_mib / max(room["free_mib"], 0.001) if room["total_mib"] else 0.0
    if room["inodes_free_pct"] is not None:
        worst = max(worst, factor * LOW_INODES_PCT / max(room["inodes_free_pct"], 0.001))
    return float(worst)


def one_a_disk(paths: "list[str]") -> "list[str]":
    """The first path on each device; one that cannot be looked at is left out."""
    found: "dict[int, str]" = {}
    for path in map(to_path, paths):
        try:
            found.setdefault(os.stat(path).st_dev, path)
        except OSError:
            pass
    return list(found.values())
