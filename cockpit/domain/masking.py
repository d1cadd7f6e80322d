"""Secrets out of whatever is shown, emitted or stored: in text, and in a byte stream cut anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cockpit.domain.secret_writings import writings

STAR = "*"
"""A secret is covered star by byte: offsets into a log stay true."""
LEAST_CHARS = 6
"""A shorter value is no secret worth the name, and masking it would blot out ordinary text."""

_TABLE = re.compile(r"\s*\[+\s*[\"']?([A-Za-z0-9_-]+)")
_TELLS = re.compile(r"\s*(?:#\s*)?[\"']?notify\b")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s\"',\]}]+")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")


def masked_notify(text: str) -> str:
    """A profile's TOML as it may be shown: of the addresses in [notify] only the schemes."""
    is_notify, lines = False, []
    for line in text.split("\n"):
        if table := _TABLE.match(line):
            is_notify = table[1] == "notify"
        lines.append(_without_addresses(line) if is_notify or _TELLS.match(line) else line)
    return "\n".join(lines)


def _without_addresses(line: str) -> str:
    line = _ADDRESS.sub(lambda found: found[1] + 3 * STAR, line)
    return _QUOTED.sub(lambda found: found[0] if "://" in found[0] else f'"{3 * STAR}"', line)


class Masker:
    """Replaces every known secret, however it is written; knows none when made of nothing."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(value for value in secrets if len(value) >= LEAST_CHARS)
        found = {text for value in self._secrets for text in writings(value)}
        texts = sorted(found, key=lambda text: (-len(text), text))
        self._texts = tuple(texts)
        self._values = tuple(text.encode("utf-8", "surrogateescape") for text in texts)
        self._pattern = re.compile(b"|".join(map(re.escape, self._values)) or rb"(?!)")
        self._text = re.compile("|".join(map(re.escape, texts)) or r"(?!)")

    @classmethod
    def of_all(cls, maskers: Iterable[Masker]) -> Masker:
        """One that covers what any of them covers."""
        return cls({value for one in maskers for value in one._secrets})

    def secrets(self) -> tuple[str, ...]:
        """All that is covered, for who must know it in another writing."""
        return self._texts

    def __bool__(self) -> bool:
        return bool(self._values)

    def text(self, text: str) -> str:
        if not any(each in text for each in self._texts):  # many times faster than the pattern
            return text
        return self._text.sub(lambda hit: STAR * len(hit[0]), text)

    def masked(self, data: bytes) -> bytes:
        if not any(each in data for each in self._values):
            return data
        return self._pattern.sub(lambda hit: STAR.encode() * len(hit[0]), data)

    def stream(self) -> MaskedStream:
        return MaskedStream(self)

    def held_back(self, data: bytes) -> int:
        """How many of the last bytes may be the beginning of a secret."""
        return max((_begun(data, value) for value in self._values), default=0)


def _begun(data: bytes, value: bytes) -> int:
    """The longest end of `data` that `value` begins with, and goes on after."""
    start = max(0, len(data) - len(value) + 1)
    while (start := data.find(value[:1], start)) >= 0:
        if value.startswith(data[start:]):
            return len(data) - start
        start += 1
    return 0


class MaskedStream:
    """Masks a stream whose pieces may end in the middle of a secret."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be passed on; the possible beginning of a secret waits for the next piece."""
        if not self._masker:
            return data
        data = self._masker.masked(self._held + data)
        size = self._masker.held_back(data)
        self._held = data[len(data) - size :] if size else b""
        return data[: len(data) - size]

    def finish(self) -> bytes:
        """The rest: no secret was completed."""
        rest, self._held = self._held, b""
        return rest
