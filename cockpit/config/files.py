"""Writing files of ours: whole or not at all, readable by their owner alone, one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cockpit.config.paths import ensure_private_dir, tilde
from cockpit.errors import StorageError


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder against another cockpit that would write in it. Raises StorageError."""
    ensure_private_dir(folder)
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _storage(folder, error) from error
    try:
        with contextlib.suppress(
            OSError
        ):  # a file system without locks: better to write than to refuse
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_atomic(path: Path, text: str, mode: int = 0o600) -> None:
    """Put `text` in place of the file, synced to disk; a symbolic link keeps pointing. Raises StorageError."""
    target = Path(os.path.realpath(path))
    ensure_private_dir(target.parent)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise _storage(target, error) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise _storage(target, error) from error
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _storage(path: Path, error: OSError) -> StorageError:
    return StorageError(path=tilde(path), why=error.strerror or str(error))
