"""One line against the table: the first signature that means it, with its facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cockpit.domain.incidents import FactValue, Family, Severity
from cockpit.domain.signatures import SIGNATURES
from cockpit.domain.signatures.gates import is_context, is_quoted, level_allows, says_handled
from cockpit.domain.signatures.model import Role, Signature
from cockpit.domain.signatures.prefixes import Peeled, peel, rank_in
from cockpit.domain.signatures.values import facts_of
from cockpit.domain.text import safe_line, strip_ansi

LINE_CHARS: Final = 6000
"""Read of one line, around the words that matter: patterns must not be fed without end."""
_BEFORE_CHARS: Final = 1500
_SHAPE_CHARS: Final = 1000
_NO_DIGITS: Final = dict.fromkeys(map(ord, "0123456789"))
_LOST_ESCAPE: Final = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,4}m")


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that a signature means, before anyone asked what else happened around it."""

    signature: Signature
    facts: Mapping[str, FactValue]
    details: Mapping[str, str]
    """Groups that are no facts: exit codes in braces, error words, other processes."""
    family: Family
    severity: Severity
    role: Role
    cause: str
    text: str
    rank: int | None = None
    process: str = ""
    handled: bool = False
    """The line itself says that the failure was caught."""
    remedies: tuple[str, ...] = ()


def match_line(line: str) -> Hit | None:
    """What the table says of one line, prefixes and colours and progress bars included."""
    for frame in reversed(line.split("\r")):
        hit = _match_frame(_LOST_ESCAPE.sub("", strip_ansi(frame)))
        if hit is not None:
            return hit
    return None


def _match_frame(frame: str) -> Hit | None:
    found = [signature for signature in _suspects(frame) if _mentions(frame, signature)]
    if not found:
        return None
    peeled = peel(_around(frame, found))
    if is_context(peeled):
        return None
    for signature in found:
        match = signature.regex.search(peeled.message)
        if match and _counts(signature, match, peeled):
            return _hit(signature, match, peeled)
    return None


def _suspects(frame: str) -> tuple[Signature, ...]:
    """What the frame may mention, by its text without digits: a flood has few such shapes."""
    if len(frame) > _SHAPE_CHARS:
        return SIGNATURES
    return _suspects_of(frame.translate(_NO_DIGITS))


@lru_cache(maxsize=4096)
def _suspects_of(shape: str) -> tuple[Signature, ...]:
    return tuple(
        signature
        for signature in SIGNATURES
        if any(literal.translate(_NO_DIGITS) in shape for literal in signature.literals)
    )


def _mentions(frame: str, signature: Signature) -> bool:
    return any(literal in frame for literal in signature.literals)


def _around(frame: str, found: list[Signature]) -> str:
    if len(frame) <= LINE_CHARS:
        return frame
    places = (frame.find(literal) for signature in found for literal in signature.literals)
    first = min(place for place in places if place >= 0)
    start = max(0, first - _BEFORE_CHARS)
    return frame[start : start + LINE_CHARS]


def _counts(signature: Signature, match: re.Match[str], peeled: Peeled) -> bool:
    if signature.kernel and not peeled.kernel:
        return False
    return level_allows(signature, peeled.level) and not is_quoted(peeled.message, match.start())


def _hit(signature: Signature, match: re.Match[str], peeled: Peeled) -> Hit:
    groups = match.groupdict()
    facts = facts_of(groups, signature.bare_unit)
    named = facts.pop("rank", None)
    rank = peeled.rank if peeled.rank is not None else rank_in(peeled.message)
    if isinstance(named, int):
        rank = named
    handled = says_handled(peeled.message) or peeled.level == "warning"
    return Hit(
        signature=signature,
        facts=facts if rank is None else {**facts, "rank": rank},
        details={name[1:]: text for name, text in groups.items() if name.startswith("_") and text},
        family=signature.family,
        severity=signature.severity,
        role=signature.role,
        cause=signature.cause,
        text=safe_line(peeled.message.strip(), 500),
        rank=rank,
        process=peeled.process,
        handled=handled,
        remedies=signature.remedies,
    )
