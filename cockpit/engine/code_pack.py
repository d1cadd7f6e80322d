"""A run's code as it travels: every file's hash, and those that a host lacks as one compressed tar stream."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cockpit.domain.code_files import CodeFile, CodePlan, shown
from cockpit.errors import LaunchFailed

PIECE_BYTES = 256 * 1024
STEP_BYTES = 4 << 20
"""What compresses well shows progress all the same."""
_END = b"\0" * 2 * tarfile.BLOCKSIZE


@dataclass(frozen=True, slots=True)
class Hashed:
    """A file with what it holds; None for a link."""

    file: CodeFile
    sha: str | None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the stream, and how far it has got in the files themselves."""

    data: bytes
    done_bytes: int


def hashed(plan: CodePlan) -> tuple[Hashed, ...]:
    """Read every file. Raises LaunchFailed for one that went away or cannot be read."""
    return tuple(_hashed(Path(plan.root), file) for file in plan.files)


def _hashed(root: Path, file: CodeFile) -> Hashed:
    if file.link is not None:
        return Hashed(file, None)
    found, size = hashlib.sha256(), 0
    try:
        fd = open_file(root, file)
        try:
            while data := os.read(fd, PIECE_BYTES):
                found.update(data)
                size += len(data)
        finally:
            os.close(fd)
    except FileNotFoundError:
        raise changed(file) from None
    except OSError as error:
        raise _unreadable(file, error) from error
    return Hashed(CodeFile(file.path, size, file.mode), found.hexdigest())


def open_file(root: Path, file: CodeFile) -> int:
    """A plain file, and nothing that took its place meanwhile. Raises OSError."""
    path = os.path.join(os.fsencode(root), file.path)
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file")
    return fd


def _unreadable(file: CodeFile, error: OSError) -> LaunchFailed:
    text = error.strerror or str(error)
    return LaunchFailed("code_unreadable", path=shown(file.path), text=text)


def changed(file: CodeFile) -> LaunchFailed:
    return LaunchFailed("code_changed_here", path=shown(file.path))


def listing(files: Iterable[Hashed]) -> bytes:
    """What is to be on the host, as it is asked: path, mode, size, content, link."""
    rows = [
        [_text(one.file.path), one.file.mode, one.file.size, one.sha, _link(one.file)]
        for one in files
    ]
    return zlib.compress(json.dumps(rows).encode(), 6)


def tree_hash(files: Iterable[Hashed]) -> str:
    """One hash for all of it: the same code has the same."""
    found = hashlib.sha256()
    for one in files:
        content = one.sha or f"link {_link(one.file)}"
        found.update(one.file.path + f"\0{one.file.mode & 0o111}\0{content}\0".encode())
    return found.hexdigest()


def packed(root: Path, wanted: Iterable[tuple[Hashed, int]]) -> Iterator[Piece]:
    """The stream of those files, each from its offset; members are called SHA256@OFFSET.

    To be run off the loop. Raises LaunchFailed for a file that is not as it was.
    """
    squeeze = zlib.compressobj(1, zlib.DEFLATED, 31)
    done_bytes = 0
    for one, offset in wanted:
        info = tarfile.TarInfo(f"{one.sha}@{offset}")
        info.size = one.file.size - offset
        yield Piece(squeeze.compress(info.tobuf(tarfile.GNU_FORMAT)), done_bytes)
        for data in read_file(root, one.file, offset, info.size):
            done_bytes += len(data)
            yield Piece(squeeze.compress(data), done_bytes)
        yield Piece(squeeze.compress(b"\0" * (-info.size % tarfile.BLOCKSIZE)), done_bytes)
    yield Piece(squeeze.compress(_END) + squeeze.flush(), done_bytes)


def gathered(pieces: Iterator[Piece]) -> Piece | None:
    """Pieces enough for a trip to the loop and back; None at the end."""
    parts: list[bytes] = []
    size, first_bytes, done_bytes = 0, None, 0
    for piece in pieces:
        parts.append(piece.data)
        size += len(piece.data)
        done_bytes = piece.done_bytes
        first_bytes = done_bytes if first_bytes is None else first_bytes
        if size >= PIECE_BYTES or done_bytes - first_bytes >= STEP_BYTES:
            break
    return Piece(b"".join(parts), done_bytes) if parts else None


def read_file(root: Path, file: CodeFile, offset: int, left: int) -> Iterator[bytes]:
    try:
        fd = open_file(root, file)
    except OSError:
        raise changed(file) from None
    try:
        os.lseek(fd, offset, os.SEEK_SET)
        while left > 0:
            try:
                data = os.read(fd, min(PIECE_BYTES, left))
            except OSError as error:
                raise _unreadable(file, error) from error
            if not data:
                raise changed(file)
            left -= len(data)
            yield data
    finally:
        os.close(fd)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _link(file: CodeFile) -> str | None:
    return None if file.link is None else _text(file.link)
