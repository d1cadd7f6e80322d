"""stdout and stderr of a command that goes on for hours: a slow reader never holds up the loop, a gone one is
noticed.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from typing import TextIO

from cockpit.transport.own_thread import in_own_thread

AT_ONCE_BYTES = 4096
"""PIPE_BUF: a pipe that is writable takes this much without blocking."""
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO})


class ReaderGone(Exception):
    """Nobody reads what we print: the pipe is closed, or the terminal has vanished."""


class OutStream:
    """One of our descriptors. Raises ReaderGone, and OSError where a disk is full."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        if self._fd < 0:
            raise ReaderGone
        try:
            while view:
                if len(view) <= AT_ONCE_BYTES and self._is_writable(0):
                    written = os.write(self._fd, view)
                else:
                    written = await in_own_thread(self._write_patiently, view)
                view = view[written:]
        except OSError as error:
            if error.errno in _GONE:
                raise ReaderGone from error
            raise

    def _write_patiently(self, view: memoryview) -> int:
        while True:
            try:
                return os.write(self._fd, view)
            except BlockingIOError:  # somebody else set O_NONBLOCK on what we share with them
                self._is_writable(1000)

    def _is_writable(self, wait_ms: int) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(wait_ms))


class TalkStream:
    """Where we talk to a person: what cannot be said is dropped, and nothing ends for it."""

    def __init__(self, fd: int) -> None:
        self._stream = OutStream(fd)
        self._is_gone = False

    async def write(self, text: str) -> None:
        if self._is_gone or not text:
            return
        try:
            await self._stream.write(text.encode("utf-8", "replace") + b"\n")
        except (ReaderGone, OSError):
            self._is_gone = True


def standard_streams() -> tuple[OutStream, TalkStream]:
    """stdout and stderr; what was printed the usual way comes first."""
    return OutStream(_descriptor(sys.stdout)), TalkStream(_descriptor(sys.stderr))


def _descriptor(stream: TextIO | None) -> int:
    """A command that was started with its stdout closed has a reader as little as one in a broken pipe."""
    if stream is None:
        return -1
    stream.flush()
    return stream.fileno()
