"""The engine's clock, a seam: logic is told the time and never asks the system for it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """`now_s` never goes back and has no epoch; `wall_s` is seconds since 1970."""

    def now_s(self) -> float: ...

    def wall_s(self) -> float: ...


class SystemClock:
    def now_s(self) -> float:
        return time.monotonic()

    def wall_s(self) -> float:
        return time.time()
