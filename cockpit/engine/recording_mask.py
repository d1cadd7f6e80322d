"""Secrets out of a recording's frames: in every text of a frame, however JSON writes it, and in logs' bytes."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Final

from cockpit.domain.masking import Masker
from cockpit.engine.recording_rows import log_data

_DEEPEST: Final = 32


class FrameMask:
    """Looks for the secrets in each frame as it stands, and opens only the frames that may hold one."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        forms = {form for value in masker.secrets() for form in _forms(value)}
        self._suspect = re.compile(b"|".join(re.escape(one) for one in forms)) if forms else None

    def line(self, line: bytes) -> bytes:
        if self._suspect is None or not self._suspect.search(line):
            return line
        return json.dumps(
            every_text(json.loads(line.decode("utf-8", "replace")), self._masker.text),
            separators=(",", ":"),
        ).encode()

    def log(self, data: bytes) -> bytes:
        return self._masker.masked(data)


def every_text(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
    """The same value with every text in it changed, names of tables included."""
    if isinstance(value, str):
        return change(value)
    if depth > _DEEPEST:
        return None
    if isinstance(value, list):
        return [every_text(one, change, depth + 1) for one in value]
    if isinstance(value, dict):
        return {
            change(name): _bytes_changed(value, change)
            if name == "b64"
            else every_text(one, change, depth + 1)
            for name, one in value.items()
        }
    return value


def _bytes_changed(told: dict[str, Any], change: Callable[[str], str]) -> str:
    """Of a log that is no text: what can be read in it is changed, and what cannot stays."""
    data = log_data({"b64": told.get("b64")})
    changed = change(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return base64.b64encode(changed).decode()


def _forms(value: str) -> tuple[bytes, ...]:
    """How JSON may write it."""
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    return value.encode(), json.dumps(value)[1:-1].encode(), plain.encode()
