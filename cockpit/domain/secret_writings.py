"""A secret as a job may print it without meaning to: in base64, percent-encoded, or inside JSON and Python text."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

LEAST_CHARS: Final = 8
"""A shorter one has writings that ordinary text has too: it is covered as it is, and no more."""
MOST_CHARS: Final = 8192
LEAST_INNER_CHARS: Final = 8


def writings(secret: str) -> frozenset[str]:
    """The secret itself, and the other ways in which it is commonly written; never an empty one."""
    found = {secret} if secret else set()
    if LEAST_CHARS <= len(secret) <= MOST_CHARS:
        data = secret.encode("utf-8", "surrogateescape")
        found.update(_escaped(secret), _percent_encoded(data), _base64(data))
    return frozenset(found)


def _escaped(secret: str) -> Iterator[str]:
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    yield repr(secret)[1:-1]


def _percent_encoded(secret: bytes) -> Iterator[str]:
    for text in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield text
        yield _lower_hex(text)


def _lower_hex(text: str) -> str:
    first, *rest = text.split("%")
    return first + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _base64(secret: bytes) -> Iterator[str]:
    """Wherever it stands in what was encoded: of each of the three places the characters that it alone decides."""
    whole = base64.b64encode(secret).decode().rstrip("=")
    inner = (_inner(secret, before) for before in range(3))
    for text in (whole, *inner):
        if len(text) >= LEAST_INNER_CHARS:
            yield text
            yield text.replace("+", "-").replace("/", "_")


def _inner(secret: bytes, before: int) -> str:
    text = base64.b64encode(b"\0" * before + secret).decode().rstrip("=")
    shared_at_end = (before + len(secret)) % 3 != 0
    return text[(0, 2, 3)[before] : len(text) - shared_at_end]
