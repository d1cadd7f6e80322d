"""Frames on their way to the client: written as fast as it takes them, and no faster."""

import json
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

PIECE_BYTES = 256 * 1024


class Output:
    """Frames on their way to the client, written as fast as it takes them."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting = bytearray()
        os.set_blocking(fd, False)

    def __len__(self) -> int:
        return len(self._waiting)

    def send(self, kind: bytes, request: int, payload: bytes) -> None:
        self._waiting += struct.pack(">cII", kind, request, len(payload)) + payload

    def send_object(self, kind: bytes, request: int, value: "Json") -> None:
        self.send(kind, request, json.dumps(value, separators=(",", ":")).encode())

    def flush(self) -> None:
        while self._waiting:
            try:
                done = os.write(self._fd, memoryview(self._waiting)[:PIECE_BYTES])
            except BlockingIOError:
                return
            del self._waiting[:done]
