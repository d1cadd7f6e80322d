"""Which lines of a block hold words of a signature: the fast first look at every log."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures import SIGNATURES, TRIGGERS

_FEW_LINES: Final = 64


def _by_trigger() -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    """Each trigger with the literals that it stands for; one without a trigger stands for itself."""
    groups: dict[bytes, list[bytes]] = {}
    wanted = (signature for signature in SIGNATURES if signature.role != "metric")
    literals = {literal.encode(): None for signature in wanted for literal in signature.literals}
    for literal in literals:
        trigger = next((trigger for trigger in TRIGGERS if trigger in literal), literal)
        groups.setdefault(trigger, []).append(literal)
    return tuple((trigger, tuple(found)) for trigger, found in groups.items())


_TABLE: Final = _by_trigger()


def has_literal(text: bytes) -> bool:
    return any(trigger in text and _holds(text, literals) for trigger, literals in _TABLE)


def hit_lines(block: bytes) -> list[int]:
    """Indices of the lines of `block` that hold a literal, ascending."""
    starts: set[int] = set()
    for trigger, literals in _TABLE:
        if trigger in block:
            _add_starts(block, trigger, literals, starts)
    return _indices(block, sorted(starts))


def _holds(text: bytes, literals: tuple[bytes, ...]) -> bool:
    return any(literal in text for literal in literals)


def _add_starts(
    block: bytes, trigger: bytes, literals: tuple[bytes, ...], starts: set[int]
) -> None:
    """A trigger in a few lines: look at those. In many: look for its literals instead."""
    found, tries = block.find(trigger), 0
    while found >= 0 and tries < _FEW_LINES:
        start, end = block.rfind(b"\n", 0, found) + 1, block.find(b"\n", found)
        end = end if end >= 0 else len(block)
        if _holds(block[start:end], literals):
            starts.add(start)
        found, tries = block.find(trigger, end), tries + 1
    if found >= 0:
        for literal in literals:
            _add_all(block, literal, found, starts)


def _add_all(block: bytes, literal: bytes, begin: int, starts: set[int]) -> None:
    found = block.find(literal, begin)
    while found >= 0:
        starts.add(block.rfind(b"\n", 0, found) + 1)
        end = block.find(b"\n", found)
        found = block.find(literal, end) if end >= 0 else -1


def _indices(block: bytes, starts: list[int]) -> list[int]:
    indices: list[int] = []
    index, position = 0, 0
    for start in starts:
        index += block.count(b"\n", position, start)
        position = start
        indices.append(index)
    return indices
