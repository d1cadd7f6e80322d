"""A pasted command line as words, read as a POSIX shell would read it and refused where that shell would act."""

from __future__ import annotations

import unicodedata

from cockpit.domain.text import cut_end, safe_line
from cockpit.errors import Fact, UsageError

MAX_CHARS = 4096
"""No platform shows a longer line; a paste of a whole file is a mistake."""
_OPERATORS = frozenset(";&|<>()")
_OWN_FOLDER = ("$HOME", "${HOME}")
_SHOWN_CELLS = 60


def refused(code: str, word: str = "", **facts: Fact) -> UsageError:
    """The error for a pasted line, with the word that is to blame made harmless to show."""
    shown = cut_end(safe_line(word), _SHOWN_CELLS) if word else None
    return UsageError(f"pasted_{code}", word=shown, **facts)


def split_words(text: str) -> list[str]:
    """Words without their quotes. Raises UsageError for anything a shell would run, expand or join.

    Blanks of every kind separate (web pages hold no-break spaces); `$HOME` becomes `~`.
    """
    line = text.strip()
    if line.startswith("$ ") or line.startswith("$\u00a0"):
        line = line[1:].lstrip()
    _check_characters(line)
    return _Splitter(line).words()


def _check_characters(line: str) -> None:
    if not line:
        raise refused("empty")
    if len(line) > MAX_CHARS:
        raise refused("too_long", limit=MAX_CHARS)
    for char in line:
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            raise refused("control_character", character=f"U+{ord(char):04X}")


class _Splitter:
    """One pass over one line."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._words: list[str] = []
        self._word: list[str] | None = None

    def words(self) -> list[str]:
        while self._at < len(self._line):
            char = self._line[self._at]
            if char == "'":
                self._single_quoted()
            elif char == '"':
                self._double_quoted()
            elif char.isspace():
                self._end_word()
            elif char == "#" and self._word is None:
                break
            else:
                self._plain(char)
            self._at += 1
        self._end_word()
        return self._words

    def _plain(self, char: str) -> None:
        if char in _OPERATORS:
            raise refused("operator", self._rest(), operator=char)
        if char == "\\":
            self._at += 1
            if self._at == len(self._line):
                raise refused("unfinished", "\\")
            self._put(self._line[self._at])
        elif not self._expansion(char):
            self._put(char)

    def _single_quoted(self) -> None:
        end = self._line.find("'", self._at + 1)
        if end < 0:
            raise refused("unfinished", self._rest())
        self._put(self._line[self._at + 1 : end])
        self._at = end

    def _double_quoted(self) -> None:
        opening = self._at
        self._put("")
        self._at += 1
        while self._at < len(self._line) and self._line[self._at] != '"':
            char = self._line[self._at]
            if char == "\\" and self._line[self._at + 1 : self._at + 2] in tuple('"\\$`'):
                self._at += 1
                self._put(self._line[self._at])
            elif not self._expansion(char):
                self._put(char)
            self._at += 1
        if self._at >= len(self._line):
            raise refused("unfinished", self._line[opening:])

    def _expansion(self, char: str) -> bool:
        """Take the person's own folder; refuse what else a shell would put in its place."""
        if char == "`":
            raise refused("substitution", self._rest())
        if char != "$":
            return False
        rest = self._rest()
        if rest.startswith(("$(", "$((")):
            raise refused("substitution", rest)
        for name in _OWN_FOLDER:
            after = rest[len(name) :]
            if rest.startswith(name) and not self._word_text() and after[:1] in ("/", "", '"'):
                self._put("~")
                self._at += len(name) - 1
                return True
        if rest[1:2].isalnum() or rest[1:2] in tuple("_{@*#?$!-'\""):
            raise refused("variable", rest.split()[0])
        return False

    def _put(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _word_text(self) -> str:
        return "".join(self._word or ())

    def _end_word(self) -> None:
        if self._word is not None:
            self._words.append("".join(self._word))
            self._word = None

    def _rest(self) -> str:
        return self._line[self._at :]
