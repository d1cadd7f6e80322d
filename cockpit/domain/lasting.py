"""Conditions that last: they count when most of the recent time showed them, and are over when hardly any did."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Final, Literal

NEGLIGIBLE: Final = 1e-3


@dataclass(slots=True)
class Lasting:
    """The share of the last `tau_s` seconds or so in which something was the case; it forgets exponentially."""

    tau_s: float
    open_share: float = 0.6
    close_share: float = 0.1
    share: float = 0.0
    is_open: bool = False

    def feed(self, holds: bool, step_s: float) -> Literal["open", "close"] | None:
        """`step_s` is the time since the reading before, which this one stands for."""
        if not holds and self.share < NEGLIGIBLE and not self.is_open:
            self.share = 0.0
            return None
        kept = exp(-step_s / self.tau_s)
        self.share = self.share * kept + (1.0 - kept if holds else 0.0)
        if not self.is_open and self.share >= self.open_share:
            self.is_open = True
            return "open"
        if self.is_open and self.share <= self.close_share:
            self.is_open = False
            return "close"
        return None
