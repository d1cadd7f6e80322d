"""Results on this computer's disk: their folder, parts on their way, and a last step that writes over nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from cockpit.domain.units import bytes_text
from cockpit.errors import StorageError

ROOM_BYTES = 64 << 20
PIECE_BYTES = 1 << 20
PARTS = ".cockpit-parts"


def moved(part: Path, name: bytes) -> bool:
    """False where that name is taken."""
    try:
        os.link(part, name)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if os.path.lexists(name):
            return False
        part.rename(os.fsdecode(name))
        return True
    part.unlink()
    return True


def make_target(target: Path, total_bytes: int, host: str) -> None:
    """The folder, with what keeps it out of the project's own repository."""
    try:
        above = target.parent
        if not above.is_dir():
            above.mkdir(parents=True)
            (above / ".gitignore").write_text("*\n")
        (target / PARTS).mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(target).free
    except OSError as error:
        raise storage_error(os.fsencode(target), error) from error
    if free_bytes < total_bytes + ROOM_BYTES:
        raise StorageError(
            "fetch_no_room", path=str(target), host=host, needed=bytes_text(total_bytes),
            free=bytes_text(free_bytes),
        )  # fmt: skip


def tidy(target: Path) -> None:
    shutil.rmtree(target / PARTS, ignore_errors=True)


def size_of(path: bytes) -> int | None:
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


def hash_of_file(path: bytes) -> str:
    with open(path, "rb") as file:
        return hash_of(file.fileno(), os.fstat(file.fileno()).st_size).hexdigest()


def hash_of(fd: int, size: int) -> hashlib._Hash:
    found = hashlib.sha256()
    for at in range(0, size, PIECE_BYTES):
        found.update(os.pread(fd, min(PIECE_BYTES, size - at), at))
    return found


def write_all(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written


def storage_error(path: bytes, error: OSError) -> StorageError:
    return StorageError(path=os.fsdecode(path), why=error.strerror or str(error))


UMASK = os.umask(0o077)
os.umask(UMASK)
