"""Which lines of a block hold words of a signature: the fast first look at every log."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures import SIGNATURES, TRIGGERS


def _by_trigger() -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    """Each trigger with the literals that it stands for; every literal has exactly one trigger."""
    groups: dict[bytes, list[bytes]] = {}
    wanted = (signature for signature in SIGNATURES if signature.role != "metric")
    literals = {literal.encode(): None for signature in wanted for literal in signature.literals}
    for literal in literals:
        trigger = next((trigger for trigger in TRIGGERS if trigger in literal), literal)
        groups.setdefault(trigger, []).append(literal)
    return tuple((trigger, tuple(found)) for trigger, found in groups.items())


_TABLE: Final = _by_trigger()


def has_literal(text: bytes) -> bool:
    return any(
        trigger in text and any(literal in text for literal in literals)
        for trigger, literals in _TABLE
    )


def hit_lines(block: bytes) -> list[int]:
    """Indices of the lines of `block` that hold a literal, ascending."""
    starts: set[int] = set()
    for trigger, literals in _TABLE:
        if trigger in block:
            for literal in literals:
                _add_starts(block, literal, starts)
    return _indices(block, sorted(starts))


def _add_starts(block: bytes, literal: bytes, starts: set[int]) -> None:
    found = block.find(literal)
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
