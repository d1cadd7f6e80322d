"""A search through a run's whole log, slice by slice between the agent's other work."""

import os
import time

from supervisor_files import MIB, Refused  # type: ignore[import-not-found]
from supervisor_run import Run  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

SLICE_BYTES = MIB
BUDGET_S = 2.0
"""Of one request: whoever asked goes on from where it ended, or has lost interest."""
PATTERN_BYTES = 512


class Search:
    """Looks for plain bytes before or behind an offset. `step` answers once it knows."""

    eager = True
    """The agent does not wait between two steps of it."""

    def __init__(self, run: "Run", request: "Json") -> None:
        pattern = request["text"].encode("utf-8", "surrogateescape")
        if not 0 < len(pattern) <= PATTERN_BYTES:
            raise Refused("bad_request", key="text")
        self._run = run
        self._fold = request.get("ignore_case") is True
        self._pattern = pattern.lower() if self._fold else pattern
        self._backward = request.get("backward") is True
        offset = int(request["offset"])
        self._log = run.open("log", os.O_RDONLY)
        self._size = os.fstat(self._log).st_size
        self._at = min(max(0, offset), self._size)
        self._until = time.monotonic() + BUDGET_S

    def step(self, now: float) -> "Json | None":
        try:
            return self._step(now)
        except OSError:
            self._close()
            raise

    def _step(self, now: float) -> "Json | None":
        """One slice, with the length of the pattern beyond its end."""
        if self._backward:
            start, end = max(0, self._at - SLICE_BYTES), self._at
        else:
            start, end = self._at, min(self._size, self._at + SLICE_BYTES)
        data = os.pread(self._log, end - start + len(self._pattern) - 1, start)
        if self._fold:
            data = data.lower()
        found = data.rfind(self._pattern) if self._backward else data.find(self._pattern)
        self._at = start if self._backward else end
        if found >= 0:
            return self._answer(start + found)
        is_through = start == 0 if self._backward else end >= self._size
        if is_through or now >= self._until:
            return self._answer(None)
        return None

    def _answer(self, hit: "int | None") -> "Json":
        self._close()
        return {"hit": hit, "at": self._at, "size": self._size}

    def _close(self) -> None:
        os.close(self._log)
        self._run.close()
