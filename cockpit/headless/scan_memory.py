"""`cockpit scan --memory CSV`: the memory-trend detector on lines of t_s,used_mib[,total_mib]."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from cockpit.domain.memory_trend import Alarm, Eta, MemoryTrend
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text, mib_text
from cockpit.errors import DataError
from cockpit.i18n import _

MAX_LINE_BYTES: Final = 1024
MAX_MIB: Final = 1e9
_USED: Final = ("used", "mem", "mib", "rss", "alloc", "vram")
_HEADER: Final = ("t_s", "t", "time", "at_s", "timestamp")


@dataclass(frozen=True, slots=True)
class Reading:
    at_s: float
    used_mib: float
    total_mib: float | None


def readings(stream: BinaryIO, file: str) -> Iterator[Reading]:
    """Every line's numbers; a first line of names and blank lines are left out.

    Raises DataError with the line that is none.
    """
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise _wrong(file, number, "it is too long")
        text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
        if not text or text.startswith("#"):
            continue
        if number == 1 and _is_header(text):
            _check_names(text, file)
            continue
        yield _reading(text, file, number)


def _is_header(text: str) -> bool:
    return text.split(",")[0].strip().strip('"').lower() in _HEADER


def _check_names(header: str, file: str) -> None:
    """The second column is what is judged: an error rate that grows is no leak."""
    names = [name.strip().strip('"').lower() for name in header.split(",")]
    if len(names) not in (2, 3) or not any(word in names[1] for word in _USED):
        raise _wrong(file, 1, "its columns are not t_s,used_mib or t_s,used_mib,total_mib")


def _reading(text: str, file: str, number: int) -> Reading:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3):
        raise _wrong(file, number, "it is not t_s,used_mib or t_s,used_mib,total_mib")
    try:
        at_s, used_mib = float(parts[0]), float(parts[1])
        rest = [float(part) for part in parts[2:] if part]
    except ValueError:
        raise _wrong(file, number, "it holds something that is no number") from None
    values = (at_s, used_mib, *rest)
    if not all(math.isfinite(value) for value in values) or not 0 <= used_mib <= MAX_MIB:
        raise _wrong(file, number, "a number is out of range")
    total_mib = rest[0] if rest and rest[0] > 0 else None
    return Reading(at_s, used_mib, total_mib)


def _wrong(file: str, number: int, why: str) -> DataError:
    return DataError(path=safe_line(file), why=f"line {number}: {why}")


def judged(found: Iterable[Reading]) -> MemoryTrend:
    """The detector after all of them."""
    trend, total_mib = MemoryTrend(), None
    for reading in found:
        if reading.total_mib is not None and reading.total_mib != total_mib:
            total_mib = reading.total_mib
            trend.resize(total_mib)
        trend.feed(reading.at_s, reading.used_mib)
    return trend


def json_line(trend: MemoryTrend) -> str:
    first = trend.alarms[0] if trend.alarms else None
    last = trend.alarms[-1] if trend.alarms else None
    slope, eta = trend.slope_mib_per_h, trend.eta
    if slope is None and trend.flagged and last is not None:
        slope, eta = last.slope_mib_per_h, last.eta
    fields = {
        "verdict": trend.verdict,
        "flagged_at_s": None if first is None else first.flagged_at_s,
        "slope_mib_per_h": None if slope is None else round(slope, 3),
        **_eta_fields(eta),
        "withdrawn_at_s": None if last is None else last.withdrawn_at_s,
        "alarms": [_alarm_fields(alarm) for alarm in trend.alarms],
    }
    return json.dumps(fields)


def _eta_fields(eta: Eta | None) -> dict[str, float | None]:
    return {
        "eta_s": _finite(eta.at_s if eta else None),
        "eta_low_s": _finite(eta.low_s if eta else None),
        "eta_high_s": _finite(eta.high_s if eta else None),
    }


def _alarm_fields(alarm: Alarm) -> dict[str, object]:
    return {
        "flagged_at_s": alarm.flagged_at_s,
        "withdrawn_at_s": alarm.withdrawn_at_s,
        "slope_mib_per_h": round(alarm.slope_mib_per_h, 3),
        **_eta_fields(alarm.eta),
    }


def _finite(seconds: float | None) -> float | None:
    return round(seconds, 1) if seconds is not None and math.isfinite(seconds) else None


def text_of(trend: MemoryTrend) -> str:
    """A sentence on the whole series, then one for each alarm."""
    lines = [_VERDICTS[trend.verdict]()]
    slope, eta, plateau = trend.slope_mib_per_h, trend.eta, trend.plateau_mib
    if slope is not None:
        lines.append(_("It grows by {slope:.0f} MiB an hour.").format(slope=slope))
    if eta is not None:
        lines.append(_full_in(eta))
    if plateau is not None:
        lines.append(_("It is settling at about {size}.").format(size=mib_text(plateau).strip()))
    for alarm in trend.alarms:
        lines.append(_alarm_words(alarm))
    return "\n".join(lines)


def _full_in(eta: Eta) -> str:
    if not math.isfinite(eta.high_s):
        return _("Full in about {time} at this rate.").format(time=duration_text(eta.at_s))
    return _("Full in about {time} ({low} to {high}) at this rate.").format(
        time=duration_text(eta.at_s), low=duration_text(eta.low_s), high=duration_text(eta.high_s)
    )


def _alarm_words(alarm: Alarm) -> str:
    at = duration_text(alarm.flagged_at_s)
    if alarm.withdrawn_at_s is None:
        return _("Flagged at {at}, and it stands.").format(at=at)
    return _("Flagged at {at}, withdrawn at {end}: the growth stopped.").format(
        at=at, end=duration_text(alarm.withdrawn_at_s)
    )


_VERDICTS = {
    "leak": lambda: _("Leak: it grows steadily, with no sign of levelling."),
    "growing": lambda: _("Growing, and watched: too early to call it a leak."),
    "plateau": lambda: _("No leak: it was warming up, or has stopped growing."),
    "flat": lambda: _("No leak: nothing of weight comes to stay."),
    "unknown": lambda: _("Too little to judge: about half an hour of readings is needed."),
}
