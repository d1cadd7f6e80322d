"""Frames on their way to the client: written as fast as it takes them, and no faster."""

import json
import os
import struct
from collections import deque
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

PIECES = 16


class Output:
    """What waits to be written, kept in the pieces in which it came: a log is not copied around."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pieces: "deque[memoryview]" = deque()
        self._size = 0
        os.set_blocking(fd, False)

    def __len__(self) -> int:
        return self._size

    def send(self, kind: bytes, request: int, payload: bytes) -> None:
        for piece in (struct.pack(">cII", kind, request, len(payload)), payload):
            self._pieces.append(memoryview(piece))
            self._size += len(piece)

    def send_object(self, kind: bytes, request: int, value: "Json") -> None:
        self.send(kind, request, json.dumps(value, separators=(",", ":")).encode())

    def flush(self) -> None:
        """Write until all is gone or the client takes no more."""
        while self._pieces:
            try:
                done = os.writev(self._fd, list(islice(self._pieces, PIECES)))
            except BlockingIOError:
                return
            self._size -= done
            while self._pieces and done >= len(self._pieces[0]):
                done -= len(self._pieces.popleft())
            if done:
                self._pieces[0] = self._pieces[0][done:]
