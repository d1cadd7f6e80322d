"""The byte-equal local copy of a run's log. Its size is the offset from which a tail resumes.

Bytes are in the file before anything else hears of them, so a crash on our side loses and repeats nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.config.paths import Home, ensure_private_dir
from cockpit.domain.models import HostName, RunId
from cockpit.errors import StorageError


def mirror_path(home: Home, host: HostName, run: RunId) -> Path:
    """Where the copy is: host and run names are checked identifiers, never a host's free text."""
    return home.root / "runs" / host / run / "log"


class Mirror:
    """One log file, 0600, written at the offsets that the host states."""

    def __init__(self, path: Path) -> None:
        ensure_private_dir(path.parent.parent.parent)
        ensure_private_dir(path.parent.parent)
        ensure_private_dir(path.parent)
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd: int | None = os.open(path, flags, 0o600)
            self._size = os.fstat(self._fd).st_size
        except OSError as error:
            raise StorageError(path=str(path), why=error.strerror or str(error)) from error

    @property
    def size(self) -> int:
        """The offset of the byte that comes next."""
        return self._size

    def write(self, offset: int, data: bytes) -> bytes:
        """Put `data` at `offset`; returns the part that is new. A gap stays a hole. Raises StorageError."""
        fresh = data[max(0, self._size - offset) :] if offset < self._size else data
        if not fresh or self._fd is None:
            return b""
        start = offset + len(data) - len(fresh)
        try:
            view = memoryview(fresh)
            while view:
                written = os.pwrite(self._fd, view, start)
                view, start = view[written:], start + written
        except OSError as error:
            raise StorageError(path=str(self.path), why=error.strerror or str(error)) from error
        self._size = start
        return fresh

    def skip_to(self, offset: int) -> None:
        """The host dropped what is before `offset`: leave a hole, so that offsets stay true."""
        if self._fd is not None and offset > self._size:
            os.ftruncate(self._fd, offset)
            self._size = offset

    def start_over(self) -> None:
        """The job truncated its own log: what we have is kept beside it, and the copy begins anew."""
        if self._fd is None:
            return
        os.close(self._fd)
        self._fd = None
        self.path.replace(self._free_name())
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_EXCL, 0o600)
        self._size = 0

    def _free_name(self) -> Path:
        number = 1
        while (name := self.path.with_name(f"log.{number}")).exists():
            number += 1
        return name

    def read(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset`; b"" at the end."""
        return b"" if self._fd is None else os.pread(self._fd, limit, offset)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
