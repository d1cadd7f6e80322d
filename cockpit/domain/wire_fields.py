"""What each field of the probe's lines may hold: type, bounds, sentinels. Anything else is None.

A host is hostile or broken until shown otherwise: a number out of its physical range says that
nobody measured it, so it is missing and never shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from math import isfinite
from typing import Final, TypeAlias

from cockpit.domain.models import (
    DiskSample,
    GpuSample,
    HostFacts,
    MigInstance,
    ProcessSample,
    ProcessTree,
)
from cockpit.domain.text import safe_line

Check: TypeAlias = Callable[[object], object]
Checks: TypeAlias = Mapping[str, tuple[int, Check]]
"""Field name -> its position in the dataclass and the check that its value must pass."""

MAX_MIB: Final = 1 << 34
"""16 PiB: sentinels such as 2^64-1 bytes (17179869184 GiB) are far above."""
PID_MAX: Final = 1 << 22
_CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_BLANK_32: Final = 0x7FFFFFF0
"""From here up a 32-bit counter is one of DCGM's blanks or UINT_MAX."""
_PCT_SLACK: Final = 100_000
"""Uninitialised utilisation reads as thousands of per cent: clamped up to here, missing above."""


def whole(low: int, high: int) -> Check:
    """An integer within its bounds."""

    def check(value: object) -> int | None:
        return value if type(value) is int and low <= value <= high else None

    return check


def number(low: float, high: float) -> Check:
    """A finite number within its bounds."""

    def check(value: object) -> float | None:
        if type(value) is int:
            return float(value) if low <= value <= high else None
        if type(value) is float and isfinite(value) and low <= value <= high:
            return value
        return None

    return check


def percent(value: object) -> int | None:
    """A percentage of something that cannot exceed 100; a little more is read as 100."""
    if type(value) is int and 0 <= value <= _PCT_SLACK:
        return min(value, 100)
    return None


def percent_number(value: object) -> float | None:
    if type(value) is int or type(value) is float:
        return min(float(value), 100.0) if 0 <= value <= _PCT_SLACK else None
    return None


def flag(value: object) -> bool | None:
    return value if type(value) is bool else None


@lru_cache(maxsize=4096)
def _harmless(value: str, limit: int) -> str:
    return safe_line(value, limit)


def text(limit: int) -> Check:
    """Harmless text, or the empty string."""

    def check(value: object) -> str:
        return _harmless(value[: 8 * limit], limit) if type(value) is str else ""

    return check


def text_or_none(limit: int) -> Check:
    """Harmless text; None when there is none."""

    def check(value: object) -> str | None:
        return (_harmless(value[: 8 * limit], limit) or None) if type(value) is str else None

    return check


def code(value: object) -> str | None:
    """A word of ours; from a host that makes words of its own, `unknown`."""
    if type(value) is not str or not value:
        return None
    return value if _CODE.fullmatch(value) else "unknown"


def words(most: int, limit: int) -> Check:
    """A short list of words; None when it is not a list."""

    def check(value: object) -> tuple[str, ...] | None:
        if type(value) is not list:
            return None
        return tuple(
            _harmless(word[: 8 * limit], limit) for word in value[:most] if type(word) is str
        )

    return check


def one_of(*allowed: str) -> Check:
    def check(value: object) -> str | None:
        return value if type(value) is str and value in allowed else None

    return check


_MIB: Final = whole(0, MAX_MIB)
_COUNT: Final = whole(0, _BLANK_32 - 1)
_BIG_COUNT: Final = whole(0, (1 << 62) - 1)
_MHZ: Final = whole(0, 20_000)
_RATE: Final = number(0, 1 << 24)
SECONDS: Final = number(0, 1 << 40)


def _positions(kind: type, checks: Mapping[str, Check]) -> dict[str, tuple[int, Check]]:
    places = {field.name: place for place, field in enumerate(fields(kind))}
    return {name: (places[name], check) for name, check in checks.items()}


GPU_CHECKS: Final = _positions(
    GpuSample,
    {
        "uuid": text(96),
        "name": text(96),
        "bus_id": text_or_none(32),
        "util_pct": percent,
        "mem_util_pct": percent,
        "mem_used_mib": _MIB,
        "mem_total_mib": _MIB,
        "mem_reserved_mib": _MIB,
        "unified": lambda value: value is True,
        "temp_c": whole(-60, 300),
        "power_w": number(0, 20_000),
        "power_limit_w": number(0, 20_000),
        "fan_pct": percent,
        "sm_clock_mhz": _MHZ,
        "sm_clock_max_mhz": _MHZ,
        "mem_clock_mhz": _MHZ,
        "throttle": words(16, 32),
        "ecc_corrected": _BIG_COUNT,
        "ecc_uncorrected": _BIG_COUNT,
        "remapped_rows": _COUNT,
        "remap_pending": flag,
        "remap_failed": flag,
        "retired_pages": _COUNT,
        "pcie_gen": whole(1, 16),
        "pcie_width": whole(1, 64),
        "pcie_gen_max": whole(1, 16),
        "pcie_width_max": whole(1, 64),
        "nvlinks_up": whole(0, 64),
        "pcie_rx_mib_s": _RATE,
        "pcie_tx_mib_s": _RATE,
        "persistence": flag,
        "mig": flag,
        "error": text_or_none(400),
        "error_code": code,
    },
)

PROCESS_CHECKS: Final = _positions(
    ProcessSample,
    {
        "pid": whole(1, PID_MAX),
        "name": text_or_none(64),
        "user": text_or_none(64),
        "command": text_or_none(1024),
        "mem_used_mib": _MIB,
        "cpu_pct": number(0, 1_000_000),
        "started_ticks": _BIG_COUNT,
        "run": text_or_none(128),
        "visible": lambda value: value is not False,
    },
)

TREE_CHECKS: Final = _positions(
    ProcessTree,
    {
        "pid": whole(1, PID_MAX),
        "run": text_or_none(128),
        "state": one_of(*"RSDTtZXIWKP"),
        "cpu_pct": number(0, 1_000_000),
        "workers": whole(0, 65_536),
        "workers_cpu_pct": number(0, 1_000_000),
        "workers_busy": whole(0, 65_536),
        "workers_blocked": whole(0, 65_536),
    },
)

MIG_CHECKS: Final = _positions(
    MigInstance,
    {
        "index": whole(0, 63),
        "uuid": text(96),
        "profile": text(64),
        "mem_used_mib": _MIB,
        "mem_total_mib": _MIB,
    },
)

DISK_CHECKS: Final = _positions(
    DiskSample,
    {
        "mount": text(512),
        "free_mib": _MIB,
        "total_mib": _MIB,
        "inodes_free_pct": percent_number,
        "fstype": text_or_none(32),
        "read_mib_s": _RATE,
        "write_mib_s": _RATE,
    },
)

FACT_CHECKS: Final = _positions(
    HostFacts,
    {
        "hostname": text(255),
        "user": text(64),
        "uid": whole(0, (1 << 32) - 1),
        "kernel": text(128),
        "os_name": text(128),
        "python": text(32),
        "cores": whole(1, 65_536),
        "platform": text_or_none(32),
        "container": flag,
        "driver": text_or_none(64),
        "cuda": text_or_none(16),
        "incarnation": text(128),
        "topology": words(128, 64),
        "source": one_of("nvml", "nvidia-smi", "proc"),
    },
)

HOST_CHECKS: Final[Mapping[str, Check]] = {
    "cpu_pct": percent_number,
    "steal_pct": percent_number,
    "iowait_pct": percent_number,
    "load1": number(0, 1_000_000),
    "mem_used_mib": _MIB,
    "mem_total_mib": _MIB,
    "swap_used_mib": _MIB,
    "swap_total_mib": _MIB,
    "cgroup_used_mib": _MIB,
    "cgroup_limit_mib": _MIB,
    "cgroup_oom_kills": _BIG_COUNT,
    "shm_free_mib": _MIB,
    "shm_total_mib": _MIB,
    "uptime_s": SECONDS,
    "pressure_cpu_pct": percent_number,
    "pressure_io_pct": percent_number,
    "pressure_io_full_pct": percent_number,
    "pressure_mem_full_pct": percent_number,
    "cpu_quota_cores": number(0, 65_536),
    "cpu_throttled_pct": percent_number,
}
"""The numbers of a host that every tick states."""
NET_CHECKS: Final[Mapping[str, Check]] = {"net_rx_mib_s": _RATE, "net_tx_mib_s": _RATE}
