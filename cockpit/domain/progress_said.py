"""What one line may say about progress, and how its numbers are read."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

NUM: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|NaN|NAN|inf|Inf|INF)(?:inity)?"
LOSS: Final = re.compile(r"\bloss[\"']?[ :=]+'?(" + NUM + r")\b", re.IGNORECASE)
_SCALE: Final = {"k": 1e3, "M": 1e6, "G": 1e9}


class Said(NamedTuple):
    """The parts of a progress report; None for what the line does not say."""

    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    loss: float | None = None
    step_s: float | None = None
    tokens_s: float | None = None
    eta_s: float | None = None
    bar: bool = False
    """It is a bar's state: others (evaluation, saving) look just like it."""
    is_bad: bool = False
    """Its loss is NaN or infinite."""
    samples_s: float | None = None
    data_s: float | None = None
    """Of a step, the seconds that it waited for data."""
    running: int | None = None
    waiting: int | None = None
    kv_pct: float | None = None
    prompt_s: float | None = None
    """Prompt tokens a second: a server that computes long prompts puts out none."""


def count(text: str) -> int:
    scale = _SCALE.get(text[-1], 1.0)
    number = text if scale == 1.0 else text[:-1]
    try:
        return int(float(number) * scale)
    except (ValueError, OverflowError):
        return 0


def seconds(rate: str, unit: str) -> float | None:
    """Seconds a step out of `2.12 s/it` or `3.4 it/s`."""
    number = finite(rate)
    if number is None or number <= 0:
        return None
    return number if unit.startswith("s/") else 1 / number


def finite(text: str | None) -> float | None:
    """A number, unless it is NaN, infinite or none at all: those are for the detectors."""
    try:
        number = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def is_bad(text: str | None) -> bool:
    """Whether it is a number and none to go on with."""
    try:
        return not math.isfinite(float(text or ""))
    except ValueError:
        return False


def clock(text: str) -> float | None:
    """1:22:36 in seconds."""
    if text == "?" or not text:
        return None
    total = 0.0
    for part in text.split(":")[:4]:
        total = total * 60 + (float(part) if part else 0.0)
    return total
