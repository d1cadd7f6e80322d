"""A run's whole log to a file on this computer, byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.domain.models import RunId
from cockpit.engine.agent import RunAgent
from cockpit.errors import StorageError

PIECE_BYTES = 256 * 1024


async def save_log(agent: RunAgent, run: RunId, target: Path) -> int:
    """Copy it; returns its size. A file that exists is never replaced; one half written is removed.

    Raises RunUnknown, StorageError, TransportError.
    """
    try:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise StorageError("file_exists", path=str(target)) from None
    except OSError as error:
        raise StorageError(path=str(target), why=error.strerror or str(error)) from error
    whole = False
    try:
        size = await _copy(agent, run, fd, target)
        whole = True
    finally:
        os.close(fd)
        if not whole:
            os.unlink(target)
    return size


async def _copy(agent: RunAgent, run: RunId, fd: int, target: Path) -> int:
    offset = 0
    while True:
        piece = await agent.read(run, offset, PIECE_BYTES)
        if not piece.data:
            return offset
        try:
            os.pwrite(fd, piece.data, piece.offset)
        except OSError as error:
            raise StorageError(path=str(target), why=error.strerror or str(error)) from error
        offset = piece.offset + len(piece.data)
