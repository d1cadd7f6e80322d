"""A run's whole log to a file on this computer, byte for byte."""

from __future__ import annotations

import os
from contextlib import aclosing
from pathlib import Path

from cockpit.domain.models import RunId
from cockpit.engine.agent_frames import Data
from cockpit.engine.host_agent import HostAgent
from cockpit.engine.read_log import read_log
from cockpit.errors import StorageError


async def save_log(agent: HostAgent, run: RunId, target: Path) -> int:
    """Copy it; returns its size. A file that exists is never replaced; one half written is removed.

    What the host has dropped is a hole in the copy too. Raises RunUnknown, StorageError, TransportError.
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


async def _copy(agent: HostAgent, run: RunId, fd: int, target: Path) -> int:
    size = 0
    async with aclosing(read_log(agent, run)) as pieces:
        async for piece in pieces:
            if not isinstance(piece, Data):
                continue
            try:
                _write_all(fd, piece.data, piece.offset)
            except OSError as error:
                raise StorageError(path=str(target), why=error.strerror or str(error)) from error
            size = piece.offset + len(piece.data)
    return size


def _write_all(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written
