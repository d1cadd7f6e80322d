"""The filter language of the lists: words, tests, flags, and/or/not, with unknown as a third truth.

    free>20GiB & tag:4090 & !incident host:h100

A value that is not known makes a test neither true nor false: the row is hidden, and counted apart.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final

from cockpit.domain.filter_fields import FIELD_NAMES, FIELDS, FLAGS, Field
from cockpit.domain.filter_nodes import And, Filter, Flag, Node, Not, Or, Test, Text
from cockpit.domain.filter_values import Wanted, read_value

LONGEST: Final = 512
DEEPEST: Final = 20

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+)|(?P<quoted>"[^"]*"?|'[^']*'?)|(?P<op>!=|!~|>=|<=|==|[:=~><])"""
    r"""|(?P<sign>[()|&!,])|(?P<word>[^\s"'()|&!,:=~><]+)"""
)
_QUOTES: Final = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "「": '"', "」": '"'})


class FilterError(Exception):
    """Where a filter cannot be read, and what was expected. `fix` is text that would do instead."""

    def __init__(self, code: str, start: int, end: int, *, fix: str = "", **facts: str) -> None:
        super().__init__(code)
        self.code = code
        self.start = start
        self.end = max(end, start + 1)
        self.fix = fix
        self.facts = facts


def parse_filter(text: str) -> Filter:
    """Read a filter. Raises FilterError with the place of the first mistake."""
    if len(text) > LONGEST:
        raise FilterError("too_long", LONGEST, len(text), limit=str(LONGEST))
    parser = _Parser(_tokens(text), len(text))
    return Filter(parser.whole())


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int
    blank_before: bool


def _tokens(text: str) -> list[_Token]:
    """Full-width signs and Chinese quotes read as their plain twins; places stay those of `text`."""
    plain = "".join(_plain(char) for char in text)
    tokens: list[_Token] = []
    blank, position = True, 0
    while position < len(plain):
        match = _TOKEN.match(plain, position)
        assert match is not None and match.lastgroup is not None
        if match.lastgroup == "blank":
            blank = True
        else:
            tokens.append(_Token(match.lastgroup, match.group(), position, match.end(), blank))
            blank = False
        position = match.end()
    return tokens


def _plain(char: str) -> str:
    twin = unicodedata.normalize("NFKC", char.translate(_QUOTES))
    return twin if len(twin) == 1 else char


@dataclass(slots=True)
class _Parser:
    """Recursive descent over the tokens; `depth` bounds the recursion."""

    tokens: list[_Token]
    length: int
    at: int = 0
    depth: int = field(default=0)

    def whole(self) -> Node | None:
        if not self.tokens:
            return None
        node = self._or()
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            raise FilterError("unexpected", token.start, token.end, sign=token.text)
        return node

    def _peek(self) -> _Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _takes(self, *texts: str) -> bool:
        token = self._peek()
        if token is None or token.kind == "quoted" or token.text.lower() not in texts:
            return False
        self.at += 1
        return True

    def _or(self) -> Node:
        terms = [self._and()]
        while self._takes("|", "or"):
            terms.append(self._and())
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _and(self) -> Node:
        terms = [self._not()]
        while True:
            explicit = self._takes("&", "and")
            token = self._peek()
            ends = token is None or token.text in ("|", ")") or token.text.lower() == "or"
            if ends and not explicit:
                break
            terms.append(self._not())
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def _not(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            token = self._peek()
            start = token.start if token else self.length
            raise FilterError("too_deep", start, start + 1, limit=str(DEEPEST))
        try:
            if self._takes("!", "not"):
                return Not(self._not())
            return self._term()
        finally:
            self.depth -= 1

    def _term(self) -> Node:
        token = self._peek()
        if token is None:
            raise FilterError("unfinished", self.length, self.length + 1)
        if self._takes("("):
            node = self._or()
            if not self._takes(")"):
                raise FilterError("unclosed", token.start, token.end, fix=")")
            return node
        self.at += 1
        if token.kind == "quoted":
            return Text(token.text.strip("\"'"))
        if token.kind != "word":
            raise FilterError("unexpected", token.start, token.end, sign=token.text)
        return self._word(token)

    def _word(self, token: _Token) -> Node:
        text, operator = token.text, self._peek()
        if operator is not None and operator.text == "!":  # "!~" and "!=" are one token already
            operator = None
        if operator is not None and operator.kind == "op":
            self.at += 1
            return self._test(token, operator)
        if text.startswith("-") and len(text) > 1:
            return Not(self._plain_word(text[1:]))
        return self._plain_word(text)

    def _plain_word(self, text: str) -> Node:
        return Flag(text.lower()) if text.lower() in FLAGS else Text(text)

    def _test(self, token: _Token, operator: _Token) -> Node:
        negated = token.text.startswith("-") and len(token.text) > 1
        name = token.text[1:] if negated else token.text
        field_name = FIELD_NAMES.get(name.lower())
        if field_name is None:
            near = difflib.get_close_matches(name.lower(), FIELD_NAMES, 1)
            raise FilterError(
                "no_field", token.start, token.end, fix=near[0] if near else "", given=name
            )
        test = self._values(FIELDS[field_name], operator)
        return Not(test) if negated else test

    def _values(self, chosen: Field, operator: _Token) -> Test:
        wanted = [self._value(chosen, operator)]
        while self._takes(","):
            wanted.append(self._value(chosen, operator))
        op = "=" if operator.text == "==" else operator.text
        if wanted[0].unknown:
            return Test(chosen.name, "unknown", ())
        return Test(chosen.name, op, tuple(wanted))

    def _value(self, chosen: Field, operator: _Token) -> Wanted:
        token = self._peek()
        if token is None or token.kind not in ("word", "quoted"):
            end = token.end if token else self.length + 1
            raise FilterError("no_value", operator.start, end, field=chosen.name, kind=chosen.kind)
        self.at += 1
        unit = self._peek()
        text = token.text.strip("\"'")
        if chosen.kind != "text" and unit is not None and unit.kind == "word" and unit.blank_before:
            joined = read_value(chosen.kind, operator.text, f"{text} {unit.text}")
            if isinstance(joined, Wanted) and not unit.text[:1].isdigit():
                self.at += 1
                return joined
        found = read_value(chosen.kind, operator.text, text)
        if isinstance(found, str):
            start = operator.start if found == "not_for_numbers" else token.start
            raise FilterError(found, start, token.end, field=chosen.name, kind=chosen.kind)
        return found
