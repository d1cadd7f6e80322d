"""Chunks of bytes in, whole lines out, with a limit: a host may send a line without an end."""

from __future__ import annotations

LINE_LIMIT = 1 << 20
"""Bytes. A sample of 16 cards with 100 processes each is about 300 kB."""


class LineTooLong(Exception):
    """More than the limit came without a newline."""


class LineSplitter:
    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._open: list[bytes] = []
        self._open_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their newline. Raises LineTooLong."""
        first_newline = chunk.find(b"\n")
        if first_newline < 0:
            self._keep(chunk)
            return []
        if self._open_bytes + first_newline > self._limit:
            raise LineTooLong
        if self._open:
            chunk = b"".join((*self._open, chunk))
            self._open.clear()
            self._open_bytes = 0
        *lines, rest = chunk.split(b"\n")
        if rest:
            self._keep(rest)
        return lines

    def _keep(self, part: bytes) -> None:
        self._open.append(part)
        self._open_bytes += len(part)
        if self._open_bytes > self._limit:
            raise LineTooLong
