"""Times in a log: the stamp before a line, and the place that `@` asks for. Times are of arrival."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from cockpit.engine.api import LogLine, RunLog

StampMode: TypeAlias = Literal["off", "clock", "start", "last"]
STAMP_MODES: tuple[StampMode, ...] = ("off", "clock", "start", "last")


def clock(at_s: float) -> str:
    """Local wall clock, "12:04:31"."""
    try:
        return datetime.fromtimestamp(at_s).strftime("%H:%M:%S")
    except (OSError, OverflowError, ValueError):  # a time that no calendar has, of a host
        return "--:--:--"


def since_start(seconds: float) -> str:
    """ "+41:12", with hours when there are any; at most 8 cells up to 99 hours."""
    whole = max(0, int(seconds))
    minutes, secs = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02d}:{secs:02d}" if hours else f"+{minutes}:{secs:02d}"


def since_last(seconds: float) -> str:
    """ "+2.9s" under a minute, whole units above."""
    if seconds < 60:
        return f"+{max(0.0, seconds):.1f}s"
    return (
        f"+{int(seconds // 60)}m{int(seconds % 60):02d}s"
        if seconds < 6000
        else f"+{seconds / 3600:.1f}h"
    )


def stamp(mode: StampMode, line: LogLine, before: LogLine | None, started_s: float | None) -> str:
    """What stands before a line; empty when its time is not known."""
    if line.at_s is None or mode == "off":
        return ""
    if mode == "clock":
        return clock(line.at_s)
    if mode == "start":
        return "" if started_s is None else since_start(line.at_s - started_s)
    return "" if before is None or before.at_s is None else since_last(line.at_s - before.at_s)


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in time that was asked for."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Step:
    """A training step that was asked for."""

    number: int

    @property
    def regex(self) -> str:
        """The ways in which training loops write a step."""
        return rf"~\b{self.number}/\d|\b(?:global_)?(?:step|iter|iteration)\b['\"]?\s*[:=]?\s*{self.number}\b"


_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?$")
_AGO = re.compile(r"-(\d+(?:\.\d+)?)\s*([smhd])$")
_SINCE = re.compile(r"\+(?:(\d+):)?(\d+):(\d{2})$")
_STEP = re.compile(r"step\s+(\d+)$", re.IGNORECASE)
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_place(text: str, now_s: float, started_s: float | None) -> Moment | Step | None:
    """`12:04`, `12:04:31`, `-10m`, `+41:12` since the start, `step 812`; None for anything else."""
    text = text.strip()
    if match := _STEP.match(text):
        return Step(int(match[1]))
    if match := _AGO.match(text):
        return Moment(now_s - float(match[1]) * _UNIT_S[match[2]])
    if (match := _SINCE.match(text)) and started_s is not None:
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return Moment(started_s + hours * 3600 + minutes * 60 + seconds)
    if match := _CLOCK.match(text):
        return _last_time_of(match, now_s)
    return None


def _last_time_of(match: re.Match[str], now_s: float) -> Moment | None:
    """The last moment, up to now, at which a clock showed this."""
    now = datetime.fromtimestamp(now_s)
    hour, minute, second = (int(part or 0) for part in match.groups())
    if hour > 23 or minute > 59 or second > 59:
        return None
    then = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return Moment((then if then <= now else then - timedelta(days=1)).timestamp())


def line_at(log: RunLog, at_s: float) -> int | None:
    """Number of the first line that arrived at `at_s` or later, read at log2 places; None without times."""
    low, high = 0, len(log)
    while low < high:
        middle = (low + high) // 2
        stamped = log.line(middle).at_s
        if stamped is None or stamped < at_s:
            low = middle + 1
        else:
            high = middle
    if low == len(log):
        return None if not low or log.line(low - 1).at_s is None else log.first_number + low - 1
    return log.first_number + low
