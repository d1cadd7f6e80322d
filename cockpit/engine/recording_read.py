"""A recording read as what a stranger sent: bounded in every way, and played as far as it goes.

Blocking: a thread of its own calls it.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from cockpit.config.paths import Home, expanded
from cockpit.domain.recording import (
    END_KIND,
    LINE_LIMIT,
    MOST_HOSTS,
    MOST_SPAN_S,
    PART,
    BadLine,
    Frame,
    Header,
    read_frame,
    read_header,
)
from cockpit.errors import DataError, StorageError

MOST_PACKED: Final = 64 << 20
MOST_UNPACKED: Final = 128 << 20
MOST_FRAMES: Final = 500_000
_CHUNK: Final = 64 * 1024
_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Recording:
    """A whole recording; `is_whole` is False when its file ends before its end."""

    name: str
    header: Header
    frames: tuple[Frame, ...]
    is_whole: bool

    @property
    def begin_s(self) -> float:
        return self.frames[0].at_s

    @property
    def end_s(self) -> float:
        return self.frames[-1].at_s


def find_recording(home: Home, given: str) -> Path:
    """A path, or a name in the home's recordings; one that is still being written too."""
    path = expanded(given)
    choices = [path] if os.sep in given else [path, home.recordings / given]
    for choice in (*choices, *(one.with_name(one.name + PART) for one in choices)):
        try:
            if choice.exists():
                return choice
        except OSError:
            continue
    return path


def read_recording(path: Path) -> Recording:
    """Raises DataError with line and reason, StorageError."""
    lines = _Lines(path)
    try:
        with _opened(path) as file:
            return _read(path, lines, file)
    except OSError as error:
        why = error.strerror or str(error)
        raise StorageError("recording_unreadable", file=str(path), why=why) from error


def _opened(path: Path) -> BinaryIO:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise IsADirectoryError(21, "Is a directory")
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return os.fdopen(fd, "rb")


def _read(path: Path, lines: _Lines, file: BinaryIO) -> Recording:
    header: Header | None = None
    frames: list[Frame] = []
    hosts: set[str] = set()
    has_end = False
    number = 0
    for line in lines.of(file):
        number += 1
        try:
            if header is None:
                header = read_header(line)
                hosts.update(one.name for one in header.hosts)
                continue
            frame = _placed(read_frame(line), frames)
        except BadLine as error:
            raise DataError("recording_bad", file=str(path), line=number, why=str(error)) from None
        has_end = frame.kind == END_KIND
        if frame.host is not None and frame.host not in hosts and len(hosts) < MOST_HOSTS:
            hosts.add(frame.host)
        if frame.host is None or frame.host in hosts:
            frames.append(frame)
        if len(frames) > MOST_FRAMES:
            raise _refused(path, f"more than {MOST_FRAMES} frames")
    if header is None:
        raise _refused(
            path, "it is empty" if not lines.was_cut else "it ends within its first line"
        )
    if not frames:
        raise _refused(path, "nothing is recorded in it")
    return Recording(path.name, header, tuple(frames), has_end and not lines.was_cut)


def _placed(frame: Frame, before: list[Frame]) -> Frame:
    """Time never goes back; far beyond the beginning it is no recording of ours."""
    if not before:
        return frame
    if frame.at_s - before[0].at_s > MOST_SPAN_S:
        raise BadLine("a time that is more than a day after the first one")
    return replace(frame, at_s=max(frame.at_s, before[-1].at_s))


class _Lines:
    """Lines out of a compressed file, or a plain one; a last line that is cut off is left out."""

    def __init__(self, path: Path) -> None:
        self.was_cut = False
        self._path = path
        self._taken = 0

    def of(self, file: BinaryIO) -> Iterator[bytes]:
        rest = b""
        for chunk in self._chunks(file):
            self._taken += len(chunk)
            if self._taken > MOST_UNPACKED:
                raise _refused(self._path, f"more than {MOST_UNPACKED >> 20} MiB unpacked")
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            if len(rest) > LINE_LIMIT:
                raise _refused(self._path, "a line that is longer than 1 MiB")
        if rest:
            self.was_cut = True

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        packed = first = file.read(_CHUNK)
        size = 0
        unpacker = zlib.decompressobj(31) if first.startswith(_MAGIC) else None
        while packed:
            size += len(packed)
            if size > MOST_PACKED:
                raise _refused(self._path, f"more than {MOST_PACKED >> 20} MiB")
            if unpacker is None:
                yield packed
            elif not unpacker.eof:
                yield from self._unpacked(unpacker, packed)
            packed = file.read(_CHUNK)
        if unpacker is not None and not unpacker.eof:
            self.was_cut = True

    def _unpacked(self, unpacker: zlib._Decompress, packed: bytes) -> Iterator[bytes]:
        while packed and not unpacker.eof:
            try:
                chunk = unpacker.decompress(packed, _CHUNK)
            except zlib.error as error:
                raise _refused(self._path, f"it is damaged: {error}") from None
            yield chunk
            packed = unpacker.unconsumed_tail


def _refused(path: Path, why: str) -> DataError:
    return DataError("recording_bad", file=str(path), why=why)
