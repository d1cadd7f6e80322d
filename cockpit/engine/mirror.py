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
from cockpit.engine.mirror_gaps import Gaps, Span, Why
from cockpit.errors import StorageError

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
        with _told(path):
            for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
                ensure_private_dir(folder)
            self._fd: int | None = os.open(path, _FLAGS, 0o600)
            stat = os.fstat(self._fd)
            self._gaps = Gaps(path.with_name("gaps"))
            self._gaps.end_at(stat.st_size)
        self._size = self._kept = stat.st_size
        self._taken = stat.st_blocks * _BLOCK_BYTES

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
        if self._limit is not None and self._taken + len(data) > self._limit:
            self._is_full("mirror_limit")
            return
        self._taken += len(data)
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(fd, view, start)
                view, start = view[written:], start + written
                self._kept = start
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise self._trouble(error) from error
            self._is_full("mirror_disk_full")

    def _trouble(self, error: OSError) -> StorageError:
        return StorageError(path=str(self.path), why=error.strerror or str(error))

    def _is_full(self, code: str) -> None:
        self.full = StorageError(code, path=tilde(self.path))
        self._on_full(self.full)

    def skip_to(self, offset: int, why: Why = "dropped") -> None:
        """What is before `offset` will not come: leave a gap, so that offsets stay true. Raises StorageError."""
        if self._fd is None or offset <= self._size:
            return
        start, self._size = self._size, offset
        if self.full is not None:
            return
        try:
            self._gaps.add(start, offset, why)
            os.ftruncate(self._fd, offset)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise self._trouble(error) from error
            self._is_full("mirror_disk_full")
        else:
            self._kept = offset

    def next_skipped(self, most_taken: int) -> Span | None:
        """The first part that was skipped and may still be had, as far as the copy takes no more than `most_taken`."""
        room = most_taken - self._taken
        if self._fd is None or self.full is not None or room <= 0:
            return None
        for start, end in self._gaps.spans("skipped"):
            return start, min(end, start + room)
        return None

    def fill(self, offset: int, data: bytes) -> None:
        """Bytes of a skipped part, from its beginning on. Raises StorageError."""
        if self._fd is None:
            return
        with _told(self.path):
            view, at = memoryview(data), offset
            while view:
                written = os.pwrite(self._fd, view, at)
                view, at = view[written:], at + written
            self._taken += len(data)
            self._gaps.loaded(offset, offset + len(data))

    def give_up(self, start: int, end: int) -> None:
        """The host has dropped this part too before it was loaded. Raises StorageError."""
        with _told(self.path):
            self._gaps.loaded(start, end)
            self._gaps.add(start, end, "dropped")

    def start_over(self) -> None:
        """The job truncated its own log: what we have is kept beside it, and the copy begins anew."""
        if self._fd is None or not self._size:
            return
        with _told(self.path):
            os.close(self._fd)
            self._fd = None
            self.path.replace(self._free_name())
            self._gaps.forget()
            self._fd = os.open(self.path, _FLAGS | os.O_EXCL, 0o600)
        self._size = self._kept = self._taken = 0
        self.full = None

    def _free_name(self) -> Path:
        names = [self.path.with_name(f"log.{number}") for number in range(1, KEPT_COPIES + 1)]
        return next((name for name in names if not name.exists()), names[-1])

    def read(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset`, up to the next gap; b"" at the end and in a gap."""
        if self._fd is None:
            return b""
        limit = min(limit, max(0, self._kept - offset))
        for start, end in self._gaps.spans():
            if offset < end:
                limit = min(limit, max(0, start - offset))
                break
        with _told(self.path):
            return os.pread(self._fd, limit, offset)

    @property
    def gaps(self) -> tuple[Span, ...]:
        """(first, end) of what never came, in order."""
        return self._gaps.spans()

    def gap_at(self, offset: int) -> tuple[int, Why] | None:
        """Where the log goes on when the byte at `offset` never came, and why it did not; None when it did."""
        return self._gaps.at(offset)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


_BLOCK_BYTES = 512
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(path=str(path), why=error.strerror or str(error)) from error
