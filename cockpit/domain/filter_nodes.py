"""What a filter is once it was read: terms that are true, false or not known of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from cockpit.domain.filter_fields import FIELDS, FLAGS, FilterRow, folded
from cockpit.domain.filter_values import Wanted, compare, quoted


@dataclass(frozen=True, slots=True)
class Test:
    """`field op value, value`: any of the values will do."""

    field: str
    op: str
    wanted: tuple[Wanted, ...]

    def truth(self, row: FilterRow) -> bool | None:
        value = FIELDS[self.field].read(row)
        if self.op == "unknown":
            return value is None
        return compare(FIELDS[self.field].kind, value, self.op, self.wanted)

    def __str__(self) -> str:
        if self.op == "unknown":
            return f"{self.field}=?"
        return f"{self.field}{self.op}{','.join(one.source for one in self.wanted)}"

    def shown(self) -> str:
        """The test as a person reads it, with what was understood: "free > 20.0 GiB"."""
        if self.op == "unknown":
            return f"{self.field} = ?"
        values = ", ".join(one.shown for one in self.wanted)
        return f"{self.field} {_OP_WORDS.get(self.op, self.op)} {values}"


_OP_WORDS: Final = {":": "has", "~": "like", "!~": "not like"}


@dataclass(frozen=True, slots=True)
class Flag:
    """A word that stands for a state."""

    name: str

    def truth(self, row: FilterRow) -> bool | None:
        return FLAGS[self.name](row)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Text:
    """A plain word: in the host's, card's, run's or a user's name."""

    word: str

    def truth(self, row: FilterRow) -> bool | None:
        places = [row.host, row.run or "", row.platform or "", *row.tags, *row.words]
        if row.gpu is not None:
            places.append(row.gpu.name)
            places += [text for one in row.gpu.processes for text in (one.user, one.name) if text]
        wanted = folded(self.word)
        return any(wanted in folded(place) for place in places)

    def __str__(self) -> str:
        return quoted(self.word, RESERVED)


@dataclass(frozen=True, slots=True)
class Not:
    """True where its term is false; unknown stays unknown."""

    term: Node

    def truth(self, row: FilterRow) -> bool | None:
        inner = self.term.truth(row)
        return None if inner is None else not inner

    def __str__(self) -> str:
        return f"!({self.term})" if isinstance(self.term, And | Or) else f"!{self.term}"

    def shown(self) -> str:
        inner = shown(self.term)
        return f"not ({inner})" if isinstance(self.term, And | Or) else f"not {inner}"


@dataclass(frozen=True, slots=True)
class And:
    """Every term."""

    terms: tuple[Node, ...]

    def truth(self, row: FilterRow) -> bool | None:
        truths = [term.truth(row) for term in self.terms]
        if False in truths:
            return False
        return None if None in truths else True

    def __str__(self) -> str:
        grouped = (f"({term})" if isinstance(term, And | Or) else str(term) for term in self.terms)
        return " & ".join(grouped)

    def shown(self) -> str:
        grouped = (
            f"({shown(term)})" if isinstance(term, And | Or) else shown(term) for term in self.terms
        )
        return " and ".join(grouped)


@dataclass(frozen=True, slots=True)
class Or:
    """Any term."""

    terms: tuple[Node, ...]

    def truth(self, row: FilterRow) -> bool | None:
        truths = [term.truth(row) for term in self.terms]
        if True in truths:
            return True
        return None if None in truths else False

    def __str__(self) -> str:
        grouped = (f"({term})" if isinstance(term, Or) else str(term) for term in self.terms)
        return " | ".join(grouped)

    def shown(self) -> str:
        return " or ".join(shown(term) for term in self.terms)


Node: TypeAlias = Test | Flag | Text | Not | And | Or
RESERVED: Final = frozenset(FLAGS) | {"and", "or", "not"}


def shown(node: Node) -> str:
    """A term as a chip shows it."""
    return str(node) if isinstance(node, Flag | Text) else node.shown()


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that was read. Without terms everything passes."""

    node: Node | None = None

    def truth(self, row: FilterRow) -> bool | None:
        return True if self.node is None else self.node.truth(row)

    @property
    def terms(self) -> tuple[Node, ...]:
        """The terms joined by "and" at the top: one chip each."""
        if self.node is None:
            return ()
        return self.node.terms if isinstance(self.node, And) else (self.node,)

    def without(self, position: int) -> Filter:
        """The same filter with one chip taken off."""
        left = self.terms[:position] + self.terms[position + 1 :]
        return Filter(None if not left else left[0] if len(left) == 1 else And(left))

    def __str__(self) -> str:
        return "" if self.node is None else str(self.node)
