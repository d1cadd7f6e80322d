"""Names out of texts: hosts, users, addresses, home folders become numbered stand-ins, each always the same one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_ADDRESS: Final = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
    r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}(?::?[0-9a-fA-F]{1,4})+(?![\w:])"
)
_MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_HOME: Final = re.compile(r"/(?:home|Users)/([^/\s\"':;,]+)")
_LOOPBACK: Final = frozenset({"127.0.0.1", "0.0.0.0"})
_ORDINARY: Final = frozenset(
    {"root", "user", "ubuntu", "admin", "localhost", "nobody", "here", "python", "python3"}
)
"""Names that tell nothing of anybody."""
LEAST_CHARS: Final = 3
MOST_NAMES: Final = 2000


class Redactor:
    """Call it with texts. Names are learnt by `hosts` and `users`; addresses and home folders it sees itself."""

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._users = 0
        self._hosts = 0
        self._pattern: re.Pattern[str] | None = None

    def hosts(self, names: Iterable[str | None]) -> None:
        for name in names:
            if name and name not in self._stand_ins and len(self._stand_ins) < MOST_NAMES:
                self._hosts += 1
                self._stand_ins[name] = f"host-{self._hosts}"
        self._pattern = None

    def users(self, names: Iterable[str | None]) -> None:
        for name in names:
            is_name = name and len(name) >= LEAST_CHARS and name not in _ORDINARY
            if (
                name
                and is_name
                and name not in self._stand_ins
                and len(self._stand_ins) < MOST_NAMES
            ):
                self._users += 1
                self._stand_ins[name] = f"user-{self._users}"
        self._pattern = None

    def text(self, text: str) -> str:
        text = _MAIL.sub("name@example.com", text)
        text = _HOME.sub(self._home, text)
        if self._stand_ins:
            text = self._names().sub(lambda hit: self._stand_ins[hit[0]], text)
        return _ADDRESS.sub(self._address, text)

    def _home(self, hit: re.Match[str]) -> str:
        self.users([hit[1]])
        return "~"

    def _address(self, hit: re.Match[str]) -> str:
        found = hit[0]
        if found in _LOOPBACK:
            return found
        if found not in self._addresses:
            self._addresses[found] = f"address-{len(self._addresses) + 1}"
        return self._addresses[found]

    def _names(self) -> re.Pattern[str]:
        if self._pattern is None:
            longest_first = sorted(self._stand_ins, key=len, reverse=True)
            names = "|".join(map(re.escape, longest_first))
            self._pattern = re.compile(rf"(?<![\w.-])(?:{names})(?![\w-])")
        return self._pattern
