"""TOML as coloured lines: plain text in, roles out, nothing evaluated."""

from __future__ import annotations

import re

from cockpit.domain.masking import masked_notify
from cockpit.domain.text import safe_line
from cockpit.widgets.text_pane import Para, Role, code

MOST_LINES = 400
_TOKENS = re.compile(
    r"(?P<comment>#.*$)"
    r"|(?P<table>^\s*\[\[?[^\]]*\]\]?)"
    r"|(?P<key>^\s*[\w.\"'-]+(?=\s*=))"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\"|'[^']*')"
    r"|(?P<number>\b(?:true|false|[-+]?\d[\d_.eE+:TZ-]*)\b)"
)
_ROLES: dict[str, Role] = {
    "comment": "muted",
    "table": "strong",
    "key": "ok",
    "string": "text",
    "number": "warn",
}


def toml_line(text: str) -> tuple[tuple[str, Role], ...]:
    """The pieces of one line with their roles."""
    pieces: list[tuple[str, Role]] = []
    at = 0
    for match in _TOKENS.finditer(text):
        if match.start() > at:
            pieces.append((text[at : match.start()], "muted"))
        pieces.append((match[0], _ROLES[match.lastgroup or "string"]))
        at = match.end()
    if at < len(text):
        pieces.append((text[at:], "muted"))
    return tuple(pieces) or (("", "text"),)


def toml_paras(text: str, *, numbers: bool = False) -> list[Para]:
    """One line each, cut at the edge; with numbers for a file that has mistakes."""
    lines = masked_notify(text).splitlines()
    shown = [
        code(*_numbered(number, numbers), *toml_line(safe_line(line)))
        for number, line in enumerate(lines[:MOST_LINES], 1)
    ]
    if len(lines) > MOST_LINES:
        shown.append(code((f"... {len(lines) - MOST_LINES}", "muted")))
    return shown


def _numbered(number: int, wanted: bool) -> tuple[tuple[str, Role], ...]:
    return ((f"{number:>4}  ", "muted"),) if wanted else ()
