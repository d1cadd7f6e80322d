"""Findings from samples: memory nearly full, a lost card, a driver that does not answer, OOM kills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cockpit.domain.incidents import Evidence, Finding
from cockpit.domain.models import HostSample


@dataclass(frozen=True, slots=True)
class Signal:
    """A condition that began (`open`) or ended (`close`) on a host or on one of its cards."""

    action: Literal["open", "close"]
    finding: Finding
    gpu: int | None = None
    evidence: tuple[Evidence, ...] = ()


class HostWatch:
    """The sample detectors of one host; they remember only what their rules need."""

    def feed(self, sample: HostSample) -> list[Signal]:
        """What changed with this sample."""
        return []
