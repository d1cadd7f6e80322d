"""Logs: sent from any byte on."""

import json
import os
import struct
import time

from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

CHUNK_BYTES = 128 * 1024


class Tail:
    """Sends a log from a byte offset on, within the client's window and its byte budget."""

    def __init__(self, run: "Run", asked: "Json") -> None:
        self._run = run
        self._offset = asked["offset"]
        self._window = asked["window"]
        self._budget = int(asked.get("budget") or 0)
        self._keep_up = int(asked.get("keep_up") or 0)
        self._unacknowledged = 0
        self._allowance = float(self._budget)
        self._allowed_at = time.monotonic()
        self._final: "Json | None" = None
        self._looked_at = 0.0
        self.ended = False
        self._files: "list[int]" = []
        try:
            for name in ("log", "exit", "exit.shim"):
                self._files.append(run.open(name, os.O_RDONLY))
        except OSError:
            self.close()
            raise
        self._log = self._files[0]

    def close(self) -> None:
        for fd in self._files:
            os.close(fd)
        self._run.close()

    def acknowledge(self, count: int) -> None:
        self._unacknowledged = max(0, self._unacknowledged - count)

    def step(self, now: float) -> "tuple[bytes, bytes] | None":
        """The next frame's kind and payload, or None when there is nothing to send at present."""
        size = os.fstat(self._log).st_size
        if size < self._offset:
            self._offset, self._final = 0, None
            return b"E", struct.pack(">Q", 0)
        if self._keep_up and size - self._offset > self._keep_up:
            return self._skip_to(size - self._keep_up // 2, True)
        if size == self._offset:
            return self._at_end(now)
        return self._data(now, size - self._offset)

    def _skip_to(self, offset: int, skipped: bool) -> "tuple[bytes, bytes]":
        start, self._offset = self._offset, offset
        return b"G", struct.pack(">QQB", start, offset, skipped)

    def _data(self, now: float, left: int) -> "tuple[bytes, bytes] | None":
        room = min(CHUNK_BYTES, left, self._window - self._unacknowledged)
        if self._budget:
            self._earn(now)
            if self._allowance < min(room, self._budget / 10.0):
                return None  # rather a piece now and then than every byte by itself
            room = min(room, int(self._allowance))
        data = os.pread(self._log, room, self._offset) if room > 0 else b""
        hole = self._run.locks.record("hb").get(
            "hole"
        )  # after the bytes: it is declared before it is made
        if hole and hole[0] <= self._offset < hole[1]:
            return self._skip_to(hole[1], False)
        if hole and self._offset < hole[0]:
            data = data[: hole[0] - self._offset]
        if not data:
            return None
        frame = struct.pack(">Q", self._offset) + data
        self._offset += len(data)
        self._unacknowledged += len(data)
        self._allowance -= len(data)
        return b"D", frame

    def _earn(self, now: float) -> None:
        earned = (now - self._allowed_at) * self._budget
        self._allowance = min(float(self._budget), self._allowance + earned)
        self._allowed_at = now

    def _has_record(self) -> bool:
        """Whether an end is recorded: records are written in place, so what is open stays theirs."""
        return any(os.pread(fd, 1, 0) == b"{" for fd in self._files[1:])

    def _at_end(self, now: float) -> "tuple[bytes, bytes] | None":
        """The end is told only when the log still has no more bytes after the run was seen ended."""
        if self._final is not None:
            self.ended = True
            return b"X", struct.pack(">Q", self._offset) + json.dumps(self._final).encode()
        if now - self._looked_at < 1.0 and not self._has_record():
            return None
        self._looked_at = now
        record = self._run.describe()
        if record["state"] not in ("exited", "lost"):
            return None
        self._final = record
        return self.step(now)
