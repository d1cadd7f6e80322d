"""A long log is kept from filling the disk: its middle is given back, and every offset stays."""

import ctypes
import os

from supervisor_events import Events  # type: ignore[import-not-found]
from supervisor_files import MIB, Folder  # type: ignore[import-not-found]
from supervisor_host import disk_space  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

KEEP_HEAD_BYTES = 4 * MIB
FALLOC_PUNCH_HOLE_KEEP_SIZE = 3
LEAST_LIMIT_MIB = 16
WARN_AT = 0.8


class LogTrimmer:
    """Gives the middle of a long log back to the disk. Offsets stay, the start and the end too."""

    def __init__(
        self, run: "Folder", log: int, spec: "Json", life: "Json", events: "Events"
    ) -> None:
        self._run = run
        self._log = log
        self._limit = limit_bytes(run.path, spec)
        self._life = life
        self._events = events
        self._works: "bool | None" = None

    def trim(self) -> None:
        """The hole is declared before it is made, so that no reader takes its zeros for text."""
        size, head = os.fstat(self._log).st_size, min(KEEP_HEAD_BYTES, self._limit // 4)
        if not self._limit or size < self._limit * WARN_AT or not self._can_punch(size):
            return
        before = self._life.get("hole")
        start, end = before or [head, head]
        upto = (size - (self._limit - head)) // 4096 * 4096
        if upto - end < max(self._limit // 16, 4096):
            return
        self._life["hole"] = [start, upto]
        self._run.locks.write_record("hb", self._life)
        if not punch_hole(self._log, end, upto - end):
            self._life["hole"] = before
            self._run.locks.write_record("hb", self._life)

    def _can_punch(self, size: int) -> bool:
        """Tried once on a file of its own, well before the log is at its limit."""
        if self._works is None:
            self._works = can_punch(self._run)
            if not self._works:
                facts = {"size_mib": size // MIB, "limit_mib": self._limit // MIB}
                self._events.note("log_not_trimmed", **facts)
        return self._works


def limit_bytes(path: str, spec: "Json") -> int:
    """What the spec says, and no more than its share of what is free now; 0 keeps all."""
    limit_mib = spec.get("log_max_mib") or 0
    share_pct = spec.get("log_share_pct")
    if limit_mib and share_pct:
        share_mib = disk_space(path)["free_mib"] * share_pct / 100.0
        limit_mib = min(limit_mib, max(share_mib, LEAST_LIMIT_MIB))
    return int(limit_mib * MIB)


def can_punch(run: "Folder") -> bool:
    name = "hole.%d" % os.getpid()
    try:
        run.create(name, b"\1" * 8192)
        fd = run.open(name, os.O_RDWR)
        try:
            return punch_hole(fd, 4096, 4096)
        finally:
            os.close(fd)
            os.unlink(name, dir_fd=run.fd)
    except OSError:
        return True  # no room for the trial: the log itself will show


def punch_hole(fd: int, start: int, length: int) -> bool:
    try:
        call = ctypes.CDLL(None, use_errno=True).fallocate64
    except (OSError, AttributeError):
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return bool(call(fd, FALLOC_PUNCH_HOLE_KEEP_SIZE, start, length) == 0)
