"""Names out of a text before it is given away: hosts, addresses, users and their folders become neutral words."""

from __future__ import annotations

import re
from collections.abc import Iterable

LEAST_CHARS = 2
_KEPT = frozenset({"root", "localhost", "127.0.0.1", "0.0.0.0", "::1", "gpu", "log"})
"""Words that name nobody."""
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{0,4}(?![\w:])")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
_FOLDER = re.compile(r"(/(?:home|Users)/)([^/\s:'\"`]+)")


def without_names(text: str, hosts: Iterable[str], users: Iterable[str]) -> str:
    """The same name is the same word everywhere, so that the story stays readable."""
    names = {**_numbered("host", hosts), **_numbered("user", users)}
    text = _MAIL.sub("address", text)
    text = _FOLDER.sub(lambda found: found[1] + names.get(found[2], "user"), text)
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", names[name], text)
    text = _IPV4.sub(lambda found: found[0] if found[0] in _KEPT else "address", text)
    return _IPV6.sub(lambda found: found[0] if _is_clock(found[0]) else "address", text)


def _numbered(word: str, names: Iterable[str]) -> dict[str, str]:
    wanted = dict.fromkeys(name for name in names if len(name) >= LEAST_CHARS)
    kept = [name for name in wanted if name.lower() not in _KEPT]
    return {name: f"{word}-{number}" for number, name in enumerate(kept, 1)}


def _is_clock(text: str) -> bool:
    """A time of day, or a card's bus id, is no address."""
    return text == "::1" or all(part.isdigit() and len(part) == 2 for part in text.split(":"))
