"""One row of `nvidia-smi --query-gpu` as values: what it writes where a number should be means something."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_FULL: Final = (
    "index", "count", "uuid", "name", "bus_id", "driver", "util_pct", "mem_util_pct",
    "mem_total_mib", "mem_used_mib", "mem_reserved_mib", "temp_c", "power_w", "power_limit_w",
    "fan_pct", "sm_clock_mhz", "sm_clock_max_mhz", "mem_clock_mhz", "throttle", "ecc_corrected",
    "ecc_uncorrected", "pcie_gen", "pcie_width", "persistence", "mig",
)  # fmt: skip
_BASIC: Final = (
    "index", "count", "uuid", "name", "bus_id", "driver", "util_pct", "mem_util_pct",
    "mem_total_mib", "mem_used_mib", "temp_c", "power_w", "fan_pct", "sm_clock_mhz",
)  # fmt: skip
"""The columns that the host's shell asks for, in its order: `fallback.sh` names them."""
_WORDS: Final = frozenset({"uuid", "name", "bus_id", "driver"})
_THROTTLE: Final = (
    (0x4, "power_cap"), (0x8, "hw_slowdown"), (0x10, "sync_boost"), (0x20, "thermal_sw"),
    (0x40, "thermal_hw"), (0x80, "power_brake"), (0x2, "app_clocks"), (0x100, "display_clocks"),
    (0x200, "board_limit"), (0x400, "reliability"),
)  # fmt: skip
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,6})?")
_NOTHING: Final = ("n/a", "not supported", "unknown error", "err!", "insufficient permissions", "")
_ENDS: Final = (
    ("driver/library version mismatch", "driver_mismatch"),
    ("couldn't communicate with the nvidia driver", "no_driver"),
    ("driver not loaded", "no_driver"),
    ("no devices were found", "no_gpu"),
    ("gpu is lost", "gpu_lost"),
    ("unknown error", "nvml_lost"),
    ("not found", "no_driver"),
)
_END_CODES: Final = {
    6: "no_gpu",
    9: "no_driver",
    12: "no_driver",
    15: "gpu_lost",
    18: "driver_mismatch",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One card at one moment, as nvidia-smi put it."""

    index: int
    count: int | None
    driver: str | None
    values: Mapping[str, object] = field(default_factory=dict)
    error: str | None = None
    error_code: str | None = None

    def record(
        self, processes: Mapping[str, list[dict[str, object]]] | None, host_kib: int | None
    ) -> dict[str, object]:
        """The card as the wire tells of it."""
        values = self.values
        if self.error is not None:
            return self.failed(self.error_code or "unknown", self.error)
        told: dict[str, object] = {"index": self.index, **values, "error": None, "error_code": None}
        listed = processes.get(str(values.get("uuid")), []) if processes is not None else None
        if listed is not None:
            told["processes"] = listed
        if values.get("mem_total_mib") is None and values.get("mig") is not True and host_kib:
            told["unified"], told["mem_total_mib"] = True, host_kib >> 10
            told["fan_pct"] = told["pcie_gen"] = told["pcie_width"] = None
            if listed is not None:
                sizes = [one["mem_used_mib"] for one in listed]
                told["mem_used_mib"] = sum(size for size in sizes if isinstance(size, int))
        return told

    def failed(self, code: str, words: str) -> dict[str, object]:
        """The card as one that does not answer: who it is and why."""
        identity = {name: self.values.get(name) for name in ("uuid", "name", "bus_id")}
        return {"index": self.index, **identity, "error": words, "error_code": code}


def parse_row(line: str) -> Row | None:
    """A row of either set of columns; None for a line that is none."""
    cells = [cell.strip() for cell in line.split(",")]
    columns = {len(_FULL): _FULL, len(_BASIC): _BASIC}.get(len(cells))
    if columns is None:
        return None
    named = dict(zip(columns, cells, strict=True))
    index, count = _value("index", named["index"]), _value("count", named["count"])
    if not isinstance(index, int) or not 0 <= index < 64:
        return None
    values = {
        name: _value(name, cell)
        for name, cell in named.items()
        if name not in ("index", "count", "driver")
    }
    error, code = _error(cells, named)
    driver = _value("driver", named["driver"])
    return Row(
        index=index,
        count=count if isinstance(count, int) and 0 < count <= 64 else None,
        driver=driver if isinstance(driver, str) else None,
        values=values,
        error=error,
        error_code=code,
    )


def _error(cells: list[str], named: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Why the card does not answer, by the words that stand where its numbers should."""
    for cell in cells:
        bare = cell.strip("[]")
        if bare.lower() == "gpu is lost":
            return bare, "gpu_lost"
        if bare.lower().startswith(("gpu requires", "gpu reset")):
            return bare, "gpu_reset_required"
    both = {named["util_pct"].strip("[]").lower(), named["mem_used_mib"].strip("[]").lower()}
    return ("Unknown Error", "unknown") if both <= {"unknown error", "err!"} else (None, None)


def _value(name: str, cell: str) -> object:
    """The cell as its column's type; None for every word that means nothing was measured."""
    bare = cell.strip("[] ")
    if bare.lower() in _NOTHING or bare.lower() == "gpu is lost":
        return None
    if name in _WORDS:
        return bare
    if name == "persistence" or name == "mig":
        return {"enabled": True, "disabled": False}.get(bare.lower())
    if name == "throttle":
        return _reasons(bare)
    match = _NUMBER.match(bare)
    if match is None:
        return None
    number = float(match[0])
    return number if name.startswith("power") else int(number)


def _reasons(bare: str) -> list[str] | None:
    try:
        bits = int(bare[:20], 16)
    except ValueError:
        return None
    return [name for bit, name in _THROTTLE if bits & bit]


def parse_process(line: str) -> tuple[str, dict[str, object]] | None:
    """(uuid, process) of a row "HERE UUID, PID, MIB, NAME"; None for a line that is none."""
    here, _, row = line.partition(" ")
    cells = [cell.strip() for cell in row.split(",", 3)]
    if len(cells) < 4 or not cells[1].isdigit() or not 0 < len(cells[1]) < 9 or int(cells[1]) == 0:
        return None
    used = _value("mem_used_mib", cells[2])
    process: dict[str, object] = {
        "pid": int(cells[1]),
        "mem_used_mib": used,
        "visible": here == "1",
    }
    if here == "1":
        process["name"] = cells[3].rpartition("/")[2][:64]
        process["command"] = cells[3][:512]
    return cells[0], process


def failure_of(code: int | None, notes: list[str]) -> tuple[str, str]:
    """(code, the driver's words) of an nvidia-smi that ended."""
    words = " ".join(notes) or f"nvidia-smi ended with {code}"
    for sign, name in _ENDS:
        if sign in words.lower():
            return name, words
    return _END_CODES.get(code or 0, "nvml_error"), words
