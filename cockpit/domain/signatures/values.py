"""Facts out of matched text: numbers with one unit each, never guessed."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Final

from cockpit.domain.incidents import FactValue
from cockpit.domain.text import safe_line

_SIZE: Final = re.compile(r"([\d.,]*\d)\s*([A-Za-z]*)")
_MIB: Final = 1024.0 * 1024.0
_UNITS: Final = {
    "": None, "b": 1.0, "byte": 1.0, "bytes": 1.0,
    "k": 2.0**10, "kib": 2.0**10, "m": 2.0**20, "mib": 2.0**20, "g": 2.0**30, "gib": 2.0**30,
    "t": 2.0**40, "tib": 2.0**40, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "kb": 2.0**10,
}  # fmt: skip
"""The kernel's kB is 1024 bytes; MB and GB are decimal unless a tool is known to mean otherwise."""
_WHOLE: Final = frozenset({
    "gpu_index", "rank", "pid", "exitcode", "errno", "xid", "step", "total_steps", "port",
    "max_model_len", "tokens",
})  # fmt: skip
_REAL: Final = frozenset({"gpu_memory_utilization", "epoch"})
_LARGEST_MIB: Final = 2.0**40


def size_mib(text: str, bare_unit: str = "B") -> float | int | None:
    """A size in MiB; None when it is not one that a machine could have."""
    match = _SIZE.search(text)
    if match is None:
        return None
    scale = _UNITS.get(match[2].lower() or bare_unit.lower())
    try:
        mib = float(match[1].replace(",", "")) * (scale or 0.0) / _MIB
    except ValueError:
        return None
    if not scale or mib > _LARGEST_MIB:
        return None
    return tidy(mib)


def tidy(number: float) -> float | int:
    """Two decimals at most, and no decimals where there are none."""
    rounded = round(number, 2)
    return int(rounded) if rounded == int(rounded) else rounded


def facts_of(groups: Mapping[str, str | None], bare_unit: str = "B") -> dict[str, FactValue]:
    """The named groups that are facts, converted by what their names say."""
    facts: dict[str, FactValue] = {}
    for name, text in groups.items():
        if name.startswith("_") or not text:
            continue
        value = _value(name, text, bare_unit)
        if value is not None:
            facts[name] = value
    return facts


def _value(name: str, text: str, bare_unit: str) -> FactValue | None:
    if name.endswith("_mib"):
        return size_mib(text, bare_unit)
    if name == "signal":
        return signal_number(text)
    try:
        if name in _WHOLE:
            return int(text.replace(",", "")) if len(text) < 20 else None
        if name in _REAL:
            return float(text)
    except ValueError:
        return None
    return safe_line(text, 200).strip()


def signal_number(name: str) -> int | None:
    """SIGKILL is 9, and so is what a shell or PyTorch calls Killed."""
    words = {
        "killed": 9, "bus error": 7, "segmentation fault": 11, "aborted": 6, "terminated": 15,
        "interrupt": 2, "floating point exception": 8, "illegal instruction": 4,
    }  # fmt: skip
    plain = name.strip().lower()
    if plain in words:
        return words[plain]
    found = getattr(signal, name.strip(), None)
    return int(found) if isinstance(found, signal.Signals) else None
