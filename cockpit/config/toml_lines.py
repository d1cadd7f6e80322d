"""Where each key of a TOML file stands: tomli gives values without positions, and an error needs its line.

The scanner reads only files that tomli has accepted, so it looks for structure and checks nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    '"': '"',
    "\\": "\\",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, both from 1."""

    line: int
    column: int


@dataclass(slots=True)
class TomlLines:
    """The places of a file's keys and tables; elements of arrays have a number in their path."""

    places: dict[KeyPath, Place] = field(default_factory=dict)

    def find(self, path: KeyPath) -> Place | None:
        """The place of that key, or of the nearest thing around it."""
        for length in range(len(path), 0, -1):
            place = self.places.get(path[:length])
            if place is not None:
                return place
        return None


def scan(text: str) -> TomlLines:
    """The places of everything in a file that parses."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0
        self._line = 1
        self._line_start = 0
        self._counts: dict[KeyPath, int] = {}
        self._implied: set[KeyPath] = set()
        self.found = TomlLines()

    def document(self) -> None:
        table: KeyPath = ()
        while self._skip_blank(newlines=True):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> KeyPath:
        place = self._place()
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        path = self._indexed(self._key())
        self._at += 2 if is_array else 1
        if is_array:
            count = self._counts.get(path, 0)
            self._counts[path] = count + 1
            self._note(path, place)
            path = (*path, count)
        for length in range(1, len(path)):
            if path[:length] not in self.found.places:
                self._note(path[:length], place)
                self._implied.add(path[:length])
        if path in self._implied:  # its own header tells more than that of a table in it
            self.found.places[path] = place
        self._note(path, place)
        return path

    def _indexed(self, key: KeyPath) -> KeyPath:
        """The path with the number of the newest element after each array of tables but the last."""
        path: KeyPath = ()
        for position, part in enumerate(key):
            path = (*path, part)
            if position < len(key) - 1 and path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _pair(self, table: KeyPath) -> None:
        place = self._place()
        key = self._key()
        for length in range(1, len(key) + 1):
            self._note((*table, *key[:length]), place)
        self._at += 1  # the equals sign
        self._value((*table, *key))

    def _key(self) -> KeyPath:
        parts: list[str | int] = []
        while True:
            self._skip_blank()
            char = self._text[self._at]
            if char in "\"'":
                parts.append(self._string())
            else:
                match = _BARE.match(self._text, self._at)
                if match is None:
                    raise ValueError(f"no key in line {self._line}")
                parts.append(match[0])
                self._at = match.end()
            self._skip_blank()
            if self._text[self._at : self._at + 1] != ".":
                return tuple(parts)
            self._at += 1

    def _value(self, path: KeyPath) -> None:
        self._skip_blank()
        self._note(path, self._place())
        char = self._text[self._at : self._at + 1]
        if char and char in "\"'":
            self._string()
        elif char == "[":
            self._array(path)
        elif char == "{":
            self._inline_table(path)
        else:
            while self._at < len(self._text) and self._text[self._at] not in ",]}#\n":
                self._at += 1

    def _array(self, path: KeyPath) -> None:
        self._at += 1
        count = 0
        while self._skip_blank(newlines=True) and self._text[self._at] != "]":
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._value((*path, count))
            count += 1
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        while self._skip_blank(newlines=True) and self._text[self._at] != "}":
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._pair(path)
        self._at += 1

    def _string(self) -> str:
        quote = self._text[self._at]
        if self._text.startswith(quote * 3, self._at):
            return self._long_string(quote)
        start = self._at = self._at + 1
        while self._text[self._at] != quote:
            self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
        content = self._text[start : self._at]
        self._at += 1
        return _unescape(content) if quote == '"' else content

    def _long_string(self, quote: str) -> str:
        start = self._at = self._at + 3
        while not self._text.startswith(quote * 3, self._at):
            step = 2 if quote == '"' and self._text[self._at] == "\\" else 1
            self._count_lines(self._at, self._at + step)
            self._at += step
        while self._text.startswith(quote * 4, self._at):
            self._at += 1
        content = self._text[start : self._at]
        self._at += 3
        return content

    def _skip_blank(self, *, newlines: bool = False) -> bool:
        """Go past blanks and comments, over line ends only where they mean nothing; False at the end."""
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif char in " \t":
                self._at += 1
            elif char == "\n" and newlines:
                self._count_lines(self._at, self._at + 1)
                self._at += 1
            else:
                return True
        return False

    def _count_lines(self, start: int, end: int) -> None:
        for at in range(start, min(end, len(self._text))):
            if self._text[at] == "\n":
                self._line += 1
                self._line_start = at + 1

    def _place(self) -> Place:
        return Place(self._line, self._at - self._line_start + 1)

    def _note(self, path: KeyPath, place: Place) -> None:
        self.found.places.setdefault(path, place)


def _unescape(text: str) -> str:
    def real(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if code[0] in "uUx" else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|.)", real, text)
