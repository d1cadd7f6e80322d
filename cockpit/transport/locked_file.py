"""Changing a small file that several programs of ours may change at once: locked, whole or not at all."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_locked(file: Path, change: Callable[[bytes], bytes], limit: int) -> None:
    """Put `change(old content)` in the file's place with mode 0600, on disk before it is seen. Raises OSError."""
    target = Path(os.path.realpath(file))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(target.parent) as folder:
        before = target.read_bytes() if target.exists() else b""
        if len(before) > limit:
            raise OSError(f"{target} is larger than {limit} bytes")
        after = change(before)
        if after != before:
            _write_whole(target, after)
            os.fsync(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Hold the folder's lock; a lock on the file itself would not survive its replacement."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _write_whole(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as opened:
            os.fchmod(opened.fileno(), 0o600)
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
