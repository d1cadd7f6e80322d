"""Values of the filter language: numbers with units, words, patterns, and how they compare."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from cockpit.domain.filter_fields import Kind, Value, folded
from cockpit.domain.units import duration_text, mib_text

LONGEST_PATTERN: Final = 200
_NUMBER: Final = re.compile(r"(-?\d+(?:\.\d+)?)\s*([^\d\s].*)?$")
_MEMORY: Final = {
    "": 1024.0, "m": 1.0, "mb": 1.0, "mib": 1.0, "g": 1024.0, "gb": 1024.0, "gib": 1024.0,
    "t": 1024.0**2, "tb": 1024.0**2, "tib": 1024.0**2,
}  # fmt: skip
_TIME: Final = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS: Final[dict[str, dict[str, float]]] = {
    "memory": _MEMORY,
    "time": _TIME,
    "percent": {"": 1.0, "%": 1.0},
    "celsius": {"": 1.0, "c": 1.0, "°c": 1.0},
    "watt": {"": 1.0, "w": 1.0, "kw": 1000.0},
    "mhz": {"": 1.0, "mhz": 1.0, "ghz": 1000.0},
    "count": {"": 1.0},
    "money": {"": 1.0, "/h": 1.0, "usd/h": 1.0, "usd": 1.0},
}
_NESTED: Final = re.compile(r"[+*}]\)?[+*{]|\([^)]*[+*|][^)]*\)[+*{]")
"""Quantifiers on quantifiers: Python's `re` has no time limit, so they are refused."""


_WORD: Final = re.compile(r"[^\s\"'()|&!,:=~><?-][^\s\"'()|&!,:=~><]*$")


def quoted(text: str, reserved: frozenset[str] = frozenset()) -> str:
    """Text as the parser reads it back: bare where it is a plain word, else in quotes."""
    if _WORD.match(text) and text.lower() not in reserved:
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'


@dataclass(frozen=True, slots=True)
class Wanted:
    """One value of a test, as understood: a number in the kind's base unit, or text."""

    text: str = ""
    number: float | None = None
    kind: Kind = "text"

    @property
    def unknown(self) -> bool:
        return self.text == "?"

    @property
    def source(self) -> str:
        """What the parser reads back as the same value."""
        if self.number is None:
            return quoted(self.text)
        unit = {"memory": "MiB", "time": "s"}.get(self.kind, "")
        return f"{self.number!r}{unit}".replace(".0M", "M").removesuffix(".0")

    @property
    def shown(self) -> str:
        if self.number is None:
            return quoted(self.text)
        if self.kind == "memory":
            memory = mib_text(self.number, width=0)
            return f"{memory[:-1]} {memory[-1]}iB"
        if self.kind == "time":
            return duration_text(self.number)
        suffix = {"percent": "%", "celsius": " C", "watt": " W", "mhz": " MHz", "money": " /h"}
        return f"{self.number:g}{suffix.get(self.kind, '')}"


def read_value(kind: Kind, op: str, text: str) -> Wanted | str:
    """The value, or the code of what is wrong with it."""
    if text == "?":
        return Wanted("?")
    if kind == "text" or (kind == "version" and op in (":", "~", "!~")):
        return _pattern_problem(text) or Wanted(text) if op in ("~", "!~") else Wanted(text)
    if kind == "version":
        return Wanted(text) if text[:1].isdigit() else "not_a_version"
    if op in (":", "~", "!~"):
        return "not_for_numbers"
    match = _NUMBER.match(text)
    if match is None:
        return "not_a_number"
    factor = _UNITS[kind].get((match[2] or "").strip().lower())
    return "no_such_unit" if factor is None else Wanted("", float(match[1]) * factor, kind)


def _pattern_problem(text: str) -> str:
    if len(text) > LONGEST_PATTERN or _NESTED.search(text):
        return "pattern_too_hard"
    try:
        re.compile(text)
    except re.error:
        return "not_a_pattern"
    return ""


def compare(kind: Kind, value: Value, op: str, wanted: tuple[Wanted, ...]) -> bool | None:
    """Three-valued: None where the value is not known."""
    if value is None:
        return None
    if op in ("!=", "!~"):
        return not compare(kind, value, "=" if op == "!=" else "~", wanted)
    return any(_one(kind, value, op, one) for one in wanted)


def _one(kind: Kind, value: Value, op: str, wanted: Wanted) -> bool:
    if isinstance(value, tuple):
        return any(_one(kind, part, op, wanted) for part in value)
    if isinstance(value, str):
        if kind == "version" and op not in (":", "~"):
            return _ordered(_parts(value), _parts(wanted.text), op)
        return _text_matches(value, op, wanted.text)
    assert value is not None
    return wanted.number is not None and _ordered((float(value),), (wanted.number,), op)


def _text_matches(value: str, op: str, wanted: str) -> bool:
    if op == "~":
        return re.search(wanted, value[:LONGEST_PATTERN], re.IGNORECASE) is not None
    have, want = folded(value), folded(wanted)
    if op == ":":
        return want in have
    return have == want if op == "=" else _ordered((have,), (want,), op)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:6])


def _ordered(have: tuple[object, ...], want: tuple[object, ...], op: str) -> bool:
    if op == "=":
        return have[: len(want)] == want
    left, right = list(have), list(want)
    if op in (">", ">="):
        left, right = right, left
    less = _less(left, right)
    return less if op in ("<", ">") else less or left == right


def _less(left: list[object], right: list[object]) -> bool:
    return left < right
