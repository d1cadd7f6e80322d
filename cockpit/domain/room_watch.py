"""Room that runs out on a host: its memory (or the container's), /dev/shm, disks and their inodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cockpit.domain.detectors import LARGEST_STEP_S, Signal, finding_with
from cockpit.domain.incidents import FactValue, Family, Finding
from cockpit.domain.lasting import Lasting
from cockpit.domain.models import DiskSample, HostSample

FULL_SHARE: Final = 0.97
"""Of memory or /dev/shm; the kernel's killer acts at the limit itself."""
FULL_TAU_S: Final = 30.0
DISK_SHARE: Final = 0.01
DISK_MIB: Final = 1024
"""A disk is nearly full when less than both is free: 1 % of 100 TiB is a terabyte."""
DISK_TOTAL_MIB: Final = 4096
"""Smaller ones hold no data of a run."""
INODES_PCT: Final = 1.0
DISK_TAU_S: Final = 20.0
MOST_DISKS: Final = 64
EVERY_S: Final = 4.0


@dataclass(slots=True)
class RoomWatch:
    """The room on one host."""

    _states: dict[str, Lasting] = field(default_factory=dict)
    _opened: dict[str, Finding] = field(default_factory=dict)
    _fed_s: float | None = None

    def feed(self, sample: HostSample) -> list[Signal]:
        """What changed with this sample."""
        step_s = 0.0 if self._fed_s is None else sample.at_s - self._fed_s
        if self._fed_s is not None and 0.0 <= step_s < EVERY_S:
            return []
        self._fed_s = sample.at_s
        step_s = max(0.0, min(step_s, LARGEST_STEP_S))
        signals: list[Signal] = []
        for name, holds, facts in _readings(sample):
            signals += self._judge(name, holds, facts, step_s)
        return signals

    def _judge(
        self, name: str, holds: bool, facts: dict[str, FactValue], step_s: float
    ) -> Iterator[Signal]:
        state = self._states.get(name)
        if state is None:
            if len(self._states) > 2 * MOST_DISKS:
                return
            tau_s = DISK_TAU_S if "path" in facts else FULL_TAU_S
            state = self._states[name] = Lasting(tau_s)
        change = state.feed(holds, step_s)
        if change == "open":
            self._opened[name] = _finding(name, facts)
            yield Signal("open", self._opened[name])
        elif change == "close" and name in self._opened:
            yield Signal("close", self._opened.pop(name))


def _readings(sample: HostSample) -> Iterator[tuple[str, bool, dict[str, FactValue]]]:
    limit = sample.cgroup_limit_mib
    used = sample.cgroup_used_mib if limit else sample.mem_used_mib
    total = limit or sample.mem_total_mib
    if used is not None and total:
        facts: dict[str, FactValue] = {"host_used_mib": used, "host_total_mib": total}
        yield "host-near-full", used >= FULL_SHARE * total, facts
    if sample.shm_total_mib and sample.shm_free_mib is not None:
        taken = sample.shm_total_mib - sample.shm_free_mib
        facts = {"in_use_mib": taken, "total_mib": sample.shm_total_mib, "path": "/dev/shm"}
        yield "shm-near-full", taken >= FULL_SHARE * sample.shm_total_mib, facts
    for disk in sample.disks[:MOST_DISKS]:
        yield from _of_disk(disk)


def _of_disk(disk: DiskSample) -> Iterator[tuple[str, bool, dict[str, FactValue]]]:
    free, total = disk.free_mib, disk.total_mib
    if free is not None and total is not None and total >= DISK_TOTAL_MIB:
        facts: dict[str, FactValue] = {"path": disk.mount, "free_mib": free, "total_mib": total}
        yield f"disk-low:{disk.mount}", free < min(DISK_MIB, DISK_SHARE * total), facts
    if disk.inodes_free_pct is not None:
        facts = {"path": disk.mount}
        yield f"inodes-low:{disk.mount}", disk.inodes_free_pct < INODES_PCT, facts


_KINDS: Final[Mapping[str, tuple[Family, str, tuple[str, ...]]]] = {
    "host-near-full": (
        "host_oom",
        "host_near_full",
        ("fewer_workers", "stream_data", "raise_container_limit"),
    ),
    "shm-near-full": ("shm", "shm_near_full", ("fewer_workers", "shm_size")),
    "disk-low": ("disk", "disk_low", ("free_disk", "keep_few_checkpoints", "other_volume")),
    "inodes-low": ("disk", "inodes_low", ("free_disk", "other_volume")),
}


def _finding(name: str, facts: dict[str, FactValue]) -> Finding:
    """The signature keeps the mount: two disks that fill are two incidents."""
    family, cause, remedies = _KINDS[name.partition(":")[0]]
    return finding_with(family, name, "warning", cause, facts, remedies)
