"""The byte-equal local copy of a run's log. Its size is the offset from which a tail resumes.

Bytes are in the file before anything else hears of them, so a crash on our side loses and repeats nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cockpit.config.paths import Home, ensure_private_dir, tilde
from cockpit.domain.models import HostName, RunId
from cockpit.errors import StorageError

_MAX_GAPS_BYTES = 1 << 20
KEPT_COPIES = 8
"""Of a log that its job cut to nothing again and again: the first ones, and the last."""


def mirror_path(home: Home, host: HostName, run: RunId) -> Path:
    """Where the copy is: host and run names are checked identifiers, never a host's free text."""
    return home.root / "runs" / host / run / "log"


class Mirror:
    """One log file, 0600, written at the offsets that the host states. What never came is noted beside it."""

    def __init__(
        self,
        path: Path,
        limit_bytes: int | None = None,
        on_full: Callable[[StorageError], None] = lambda _error: None,
    ) -> None:
        """Beyond `limit_bytes`, and on a full disk, nothing more is kept: whoever listens goes on."""
        self.path = path
        self.full: StorageError | None = None
        """Why nothing more is kept; the next session begins where the copy ends."""
        self._limit = limit_bytes
        self._on_full = on_full
        self._kept = 0
        self._gaps_path = path.with_name("gaps")
        with _told(path):
            for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
                ensure_private_dir(folder)
            self._fd: int | None = os.open(path, _FLAGS, 0o600)
            self._size = os.fstat(self._fd).st_size
            self._gaps = _read_gaps(self._gaps_path)
            self._kept = self._size

    @property
    def size(self) -> int:
        """The offset of the byte that comes next."""
        return self._size

    def write(self, offset: int, data: bytes) -> bytes:
        """Put `data` at `offset`; returns the part that is new. Raises StorageError."""
        fresh = data[max(0, self._size - offset) :] if offset < self._size else data
        if not fresh or self._fd is None:
            return b""
        start = offset + len(data) - len(fresh)
        if self.full is None:
            self._keep(self._fd, start, fresh)
        self._size = start + len(fresh)
        return fresh

    def _keep(self, fd: int, start: int, data: bytes) -> None:
        if self._limit is not None and start + len(data) > self._limit:
            self._is_full("mirror_limit")
            return
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(fd, view, start)
                view, start = view[written:], start + written
                self._kept = start
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise StorageError(path=str(self.path), why=error.strerror) from error
            self._is_full("mirror_disk_full")

    def _is_full(self, code: str) -> None:
        self.full = StorageError(code, path=tilde(self.path))
        self._on_full(self.full)

    def skip_to(self, offset: int) -> None:
        """What is before `offset` will not come: leave a gap, so that offsets stay true. Raises StorageError."""
        if self._fd is None or offset <= self._size:
            return
        if self.full is not None:
            self._size = offset
            return
        with _told(self.path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(self._gaps_path, flags, 0o600)
            try:
                os.write(fd, f"{self._size} {offset}\n".encode())
            finally:
                os.close(fd)
            os.ftruncate(self._fd, offset)
        if self._gaps and self._gaps[-1][1] == self._size:
            self._gaps[-1] = (self._gaps[-1][0], offset)
        else:
            self._gaps.append((self._size, offset))
        self._size = self._kept = offset

    def start_over(self) -> None:
        """The job truncated its own log: what we have is kept beside it, and the copy begins anew."""
        if self._fd is None or not self._size:
            return
        with _told(self.path):
            os.close(self._fd)
            self._fd = None
            self.path.replace(self._free_name())
            self._gaps_path.unlink(missing_ok=True)
            self._fd = os.open(self.path, _FLAGS | os.O_EXCL, 0o600)
        self._gaps, self._size, self._kept, self.full = [], 0, 0, None

    def _free_name(self) -> Path:
        names = [self.path.with_name(f"log.{number}") for number in range(1, KEPT_COPIES + 1)]
        return next((name for name in names if not name.exists()), names[-1])

    def read(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset`, up to the next gap; b"" at the end and in a gap."""
        if self._fd is None:
            return b""
        limit = min(limit, max(0, self._kept - offset))
        for start, end in self._gaps:
            if offset < end:
                limit = min(limit, max(0, start - offset))
                break
        with _told(self.path):
            return os.pread(self._fd, limit, offset)

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """(first, end) of what never came, in order."""
        return tuple(self._gaps)

    def gap_end(self, offset: int) -> int | None:
        """Where the log goes on when the byte at `offset` never came; None when it did."""
        return next((end for start, end in self._gaps if start <= offset < end), None)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(path=str(path), why=error.strerror or str(error)) from error


def _read_gaps(path: Path) -> list[tuple[int, int]]:
    try:
        with path.open("rb") as file:
            lines = file.read(_MAX_GAPS_BYTES).splitlines()
    except FileNotFoundError:
        return []
    gaps = []
    for line in lines:
        start, _blank, end = line.partition(b" ")
        if start.isdigit() and end.isdigit() and int(start) < int(end):
            gaps.append((int(start), int(end)))
    return sorted(gaps)
