"""What else a simulated host shows, beside its cards: memory, load, one disk, and a clock that may run faster.

Without it every host of the demo would show this computer, and warn of this computer's full disk. Imported by
the simulated driver inside the probe, and nowhere else: runs and their supervisor see the real machine.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

_real_time = time.time


def furnish(facts: dict[str, Any]) -> None:
    """Put the host's numbers in the place of this computer's, in the probe that runs here."""
    host = sys.modules.get("probe_host")
    if host is None or getattr(host, "is_furnished", False):
        return
    host.is_furnished = True  # type: ignore[attr-defined]
    _run_the_clock(float(facts.get("clock", 1.0)))
    host.HostReader.read = _overlaid(host.HostReader.read, lambda: _numbers(facts))  # type: ignore[attr-defined]
    pressure, disks = sys.modules.get("probe_pressure"), sys.modules.get("probe_disks")
    if pressure is not None:
        pressure.PressureReader.read = lambda self, now: {}  # type: ignore[attr-defined]
    if disks is not None:
        disks.mounts = lambda raw=None: [("/dev/vda1", "/", "ext4")]  # type: ignore[attr-defined]
        disks.numbers = lambda size: _disk(facts)  # type: ignore[attr-defined]


def _run_the_clock(factor: float) -> None:
    """An hour of this host passes in a minute where the factor is 60: a leak takes hours to be one."""
    if factor == 1.0:
        return
    begun = _real_time()
    time.time = lambda: begun + (_real_time() - begun) * factor


def _overlaid(
    read: Callable[..., dict[str, Any]], numbers: Callable[[], dict[str, Any]]
) -> Callable[..., dict[str, Any]]:
    def overlaid(self: object, focus: bool = False) -> dict[str, Any]:
        real = read(self, focus)
        return {**real, **numbers()} if real else real

    return overlaid


def _numbers(facts: dict[str, Any]) -> dict[str, Any]:
    total = int(facts["ram_mib"])
    wave = math.sin(2.0 * math.pi * (_real_time() / 41.0 + total % 97 / 97.0))
    busy = 4 + total // 1024 % 9
    return {
        "mem_total_mib": total,
        "mem_used_mib": int(total * (8 + busy) / 100 + 20.0 * wave),
        "swap_total_mib": 0,
        "swap_used_mib": 0,
        "cpu_pct": round(busy + 2.0 * wave, 1),
        "steal_pct": 0.0,
        "iowait_pct": 0.2,
        "load1": round(0.7 + 0.2 * wave, 2),
        "net_rx_mib_s": round(0.6 + 0.2 * wave, 3),
        "net_tx_mib_s": round(0.2 + 0.1 * wave, 3),
        "shm_total_mib": total // 2,
        "shm_free_mib": total // 2 - 96,
        "cgroup_used_mib": None,
        "cgroup_limit_mib": None,
        "cgroup_oom_kills": None,
    }


def _disk(facts: dict[str, Any]) -> dict[str, Any]:
    total = int(facts["disk_mib"])
    return {
        "total_mib": total,
        "free_mib": int(total * (29 + total % 31) / 100),
        "inodes_free_pct": 91.0,
    }
