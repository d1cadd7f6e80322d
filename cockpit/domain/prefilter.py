"""Which lines of a block hold words of a signature: the fast first look at every log.

Logs repeat themselves: without their digits, most lines are lines that were seen before. Only new
shapes are searched for literals, all of a block at once; a known shape costs one look-up.
"""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures import SIGNATURES, TRIGGERS

KEPT_BYTES: Final = 2 * 1024 * 1024
"""Of shapes that are remembered; a log without end must not fill our memory."""
_LONGEST_SHAPE: Final = 512
_FEW_LINES: Final = 64
FLOOD_LINES: Final = 64
_DIGITS: Final = b"0123456789"


def _literals() -> tuple[bytes, ...]:
    wanted = (signature for signature in SIGNATURES if signature.role != "metric")
    found = {literal.encode(): None for signature in wanted for literal in signature.literals}
    return tuple(found)


def _shape(text: bytes) -> bytes:
    return text.translate(None, _DIGITS)


_LITERALS: Final = _literals()
_SHAPES: Final = tuple((_shape(literal), literal) for literal in _LITERALS)


def _by_trigger() -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    """Each trigger with the shapes of literals that hold it; one without a trigger stands for itself."""
    groups: dict[bytes, list[bytes]] = {}
    for shape in dict.fromkeys(shape for shape, _literal in _SHAPES):
        trigger = next((trigger for trigger in TRIGGERS if trigger in shape), shape)
        groups.setdefault(trigger, []).append(shape)
    return tuple((trigger, tuple(found)) for trigger, found in groups.items())


_TABLE: Final = _by_trigger()


def has_literal(text: bytes) -> bool:
    return any(literal in text for literal in _LITERALS)


class Prefilter:
    """Remembers which shapes of lines are ordinary, and which may hold a literal."""

    def __init__(self) -> None:
        self._ordinary: set[bytes] = set()
        self._suspect: dict[bytes, tuple[bytes, ...]] = {}
        self._kept_bytes = 0

    def hit_lines(self, block: bytes) -> list[int]:
        """Indices of the lines of `block` that hold a literal, ascending."""
        shapes = _shape(block).split(b"\n")
        distinct = set(shapes)
        unknown = distinct - self._ordinary
        suspect = {shape: literals for shape in unknown if (literals := self._suspect.get(shape))}
        unknown.difference_update(suspect)
        if unknown:
            suspect |= self._learn(unknown)
        if not suspect:
            return []
        lines = block.split(b"\n")
        return [
            index
            for index, shape in enumerate(shapes)
            if shape in suspect and _holds(lines[index], suspect[shape])
        ]

    def _learn(self, unknown: set[bytes]) -> dict[bytes, tuple[bytes, ...]]:
        """Sort new shapes into ordinary ones and suspects; returns the suspects."""
        listed = list(unknown)
        found = {
            listed[index]: tuple(literal for shape, literal in _SHAPES if shape in listed[index])
            for index in _search(b"\n".join(listed))
        }
        self._make_room(listed)
        for shape in listed:
            if len(shape) > _LONGEST_SHAPE:
                continue
            if shape in found:
                self._suspect[shape] = found[shape]
            else:
                self._ordinary.add(shape)
        return found

    def _make_room(self, shapes: list[bytes]) -> None:
        self._kept_bytes += sum(len(shape) + 64 for shape in shapes if len(shape) <= _LONGEST_SHAPE)
        if self._kept_bytes > KEPT_BYTES:
            self._ordinary.clear()
            self._suspect.clear()
            self._kept_bytes = 0


def without_flood(rows: list[bytes], hits: list[int]) -> set[int]:
    """The hits that are worth their cost: of one shape that comes again and again, the first and the last."""
    if len(hits) <= 2 * FLOOD_LINES:
        return set(hits)
    by_shape: dict[bytes, list[int]] = {}
    for index in hits:
        by_shape.setdefault(_shape(rows[index][:_LONGEST_SHAPE]), []).append(index)
    return {
        index
        for found in by_shape.values()
        for index in (*found[:FLOOD_LINES], *found[-FLOOD_LINES:])
    }


def _search(block: bytes) -> list[int]:
    """Indices of the lines that hold the shape of a literal."""
    starts: set[int] = set()
    for trigger, shapes in _TABLE:
        if trigger in block:
            _add_starts(block, trigger, shapes, starts)
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
        begin = block.rfind(b"\n", 0, found) + 1  # a literal begins before the trigger in it
        for literal in literals:
            _add_all(block, literal, begin, starts)


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
