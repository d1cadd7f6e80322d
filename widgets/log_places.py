"""Places in a log that are no times: a share of it, a byte, a line; and where they are among the lines here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cockpit.engine.api import RunLog

EXAMPLES = "50%  line 812  byte 5000000"


@dataclass(frozen=True, slots=True)
class ByteAt:
    offset: int


@dataclass(frozen=True, slots=True)
class LineNumber:
    number: int


START = ByteAt(0)
END = ByteAt(1 << 61)
"""Behind every log."""

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s*%$")
_BYTE = re.compile(r"byte\s*(\d[\d,_]{0,23})$", re.IGNORECASE)
_LINE = re.compile(r"(?:line\s*|#)(\d[\d,_]{0,17})$", re.IGNORECASE)


def parse_spot(text: str, log_bytes: int) -> ByteAt | LineNumber | None:
    """`50%` of a log of so many bytes, `byte 5000000`, `line 812`; None for anything else."""
    text = text.strip()
    if match := _SHARE.match(text):
        return ByteAt(int(min(100.0, float(match[1])) / 100 * log_bytes))
    if match := _BYTE.match(text):
        return ByteAt(min(_number(match[1]), END.offset))
    if (match := _LINE.match(text)) and (number := _number(match[1])):
        return LineNumber(number)
    return None


def _number(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", ""))


def line_of_byte(log: RunLog, offset: int) -> int | None:
    """Number of the line here with this byte in it, read at log2 places; None when it is before them all."""
    if not len(log) or offset < log.line(0).offset:
        return None
    low, high = 0, len(log)
    while high - low > 1:
        middle = (low + high) // 2
        if log.line(middle).offset <= offset:
            low = middle
        else:
            high = middle
    return log.line(low).number
