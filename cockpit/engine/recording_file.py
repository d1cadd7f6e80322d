"""A recording on disk: written piece by piece so that a crash leaves a readable file, finished under its own name.

Blocking: a thread of its own calls it.
"""

from __future__ import annotations

import heapq
import json
import os
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from cockpit.config.paths import ensure_private_dir, tilde
from cockpit.domain.models import HostName
from cockpit.domain.recording import END_KIND, PART, SUFFIX, Header, header_record
from cockpit.engine.recording_mask import FrameMask
from cockpit.engine.recording_rows import line_of, log_fields
from cockpit.engine.tape import Snapshot
from cockpit.errors import StorageError

MOST_RAW_BYTES: Final = 96 << 20
"""Of one recording, unpacked: what a reader takes, with room to spare."""
_LEVEL: Final = 6
_STALE_S: Final = 3600.0


class RecordingFile:
    """Raises StorageError from every method; a failure leaves what was written before it."""

    def __init__(self, folder: Path, stem: str, mask: FrameMask) -> None:
        self._folder = folder
        self._stem = stem
        self._mask = mask
        self._fd = -1
        self._packer = zlib.compressobj(_LEVEL, wbits=31)
        self._raw_bytes = 0
        self.name = ""

    def begin(self, header: Header, tapes: Sequence[tuple[HostName | None, Snapshot]]) -> None:
        """The file with all that was before."""
        try:
            ensure_private_dir(self._folder)
            self._open()
        except OSError as error:
            raise self._failed(error) from error
        mask = self._mask.line
        self._write([mask(json.dumps(header_record(header)).encode())])
        told = [self._told(host, snapshot) for host, snapshot in tapes]
        self._write(line for _at_s, line in heapq.merge(*told, key=lambda one: one[0]))

    def write(self, lines: Iterable[bytes], mask: FrameMask) -> None:
        """What follows, covered by what is known by then."""
        self._write(map(mask.line, lines))

    def finish(self, at_s: float) -> None:
        """The end, and the final name."""
        self._write([line_of(at_s, END_KIND, None, {})])
        try:
            self._put(self._packer.flush())
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1
            os.rename(self._path(PART), self._path(""))
        except OSError as error:
            raise self._failed(error) from error

    def abandon(self) -> None:
        """No more can be written. What is there stays, if it is anything."""
        if self._fd >= 0:
            with suppress(OSError):
                os.close(self._fd)
            self._fd = -1

    def _told(self, host: HostName | None, snapshot: Snapshot) -> list[tuple[float, bytes]]:
        """Frames of one host by their time, secrets covered."""
        found = [(time_of(line), self._mask.line(line)) for line in snapshot.frames()]
        for at_s, run, offset, number, data in snapshot.pieces:
            fields = log_fields(run, offset, number, self._mask.log(data))
            found.append((at_s, line_of(at_s, "log", host, fields)))
        found.sort(key=lambda one: one[0])
        return found

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        stem, number = self._stem, 1
        while self._path("").exists() or self._path(PART).exists():
            number += 1
            self._stem = f"{stem}-{number}"
        self._fd = os.open(self._path(PART), flags, 0o600)
        self.name = self._path("").name

    def _path(self, ending: str) -> Path:
        return self._folder / f"{self._stem}{SUFFIX}{ending}"

    def _write(self, lines: Iterable[bytes]) -> None:
        """All of it on its way to the disk before it returns: what comes later may never come."""
        try:
            for line in lines:
                self._raw_bytes += len(line) + 1
                if self._raw_bytes <= MOST_RAW_BYTES:
                    self._put(self._packer.compress(line + b"\n"))
            self._put(self._packer.flush(zlib.Z_SYNC_FLUSH))
        except OSError as error:
            raise self._failed(error) from error

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def _failed(self, error: OSError) -> StorageError:
        self.abandon()
        return StorageError(
            "recording_failed", path=tilde(self._folder), why=error.strerror or str(error)
        )


def time_of(line: bytes) -> float:
    """Of a frame that our recorder wrote: its time comes first."""
    return float(line[5 : line.index(b",")])


def make_room(folder: Path, limit_bytes: int, spare_bytes: int, now_s: float | None = None) -> None:
    """Remove the oldest recordings until the rest and what comes fit. Those of a writer that died get their name."""
    now_s = time.time() if now_s is None else now_s
    found: list[tuple[float, int, Path]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith((SUFFIX, SUFFIX + PART)) and entry.is_file(
                    follow_symlinks=False
                ):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime, status.st_size, Path(entry.path)))
    except OSError:
        return
    found.sort()
    held = sum(size for _at_s, size, _path in found)
    for at_s, size, path in found:
        is_stale = path.name.endswith(PART) and now_s - at_s > _STALE_S
        if path.name.endswith(PART) and not is_stale:
            continue
        with suppress(OSError):
            if held + spare_bytes > limit_bytes:
                path.unlink()
                held -= size
            elif is_stale:
                path.rename(path.with_name(path.name.removesuffix(PART)))
