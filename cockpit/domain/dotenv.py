"""A `.env` file's lines as variables. No expansion and no commands: what is in the file is what the run gets."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is neither a variable, a comment nor blank."""

    line: int


def parse_dotenv(text: str) -> tuple[dict[str, str], list[BadLine]]:
    """Variables in the file's order (the last of two wins), and the lines that are none."""
    variables: dict[str, str] = {}
    bad: list[BadLine] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        value = None if match is None else _value(match[2])
        if match is None or value is None or "\0" in value:
            bad.append(BadLine(number))
        else:
            variables[match[1]] = value
    return variables, bad


def _value(text: str) -> str | None:
    """The value without its quotes; None when a quote is not closed."""
    if text[:1] not in ("'", '"'):
        return re.split(r"\s#", text, maxsplit=1)[0].rstrip()
    quote = text[0]
    end = _closing(text, quote)
    if end is None or not re.fullmatch(r"\s*(#.*)?", text[end + 1 :]):
        return None
    inside = text[1:end]
    if quote == "'":
        return inside
    return re.sub(r"\\(.)", lambda hit: _ESCAPES.get(hit[1], hit[0]), inside)


def _closing(text: str, quote: str) -> int | None:
    position = 1
    while position < len(text):
        if text[position] == "\\" and quote == '"':
            position += 2
            continue
        if text[position] == quote:
            return position
        position += 1
    return None
