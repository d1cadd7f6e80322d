"""The log detectors on any byte stream: findings with line, offset, facts, cause and remedies.

Blocks of the stream are searched for the literals of all signatures at once; only lines that hold
one are cut out, decoded and matched. Memory is bounded whatever the stream is.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import Final

from cockpit.domain.enrich import (
    CONTEXT_BYTES,
    DETAIL_LINES,
    WRAPPABLE,
    details_after,
    enrich,
    piece_of,
    unwrap,
)
from cockpit.domain.episode import (
    LEVELS,
    STOP_LINES,
    WRAPPER_PATIENCE_LINES,
    Episode,
    Group,
    Sighting,
)
from cockpit.domain.incidents import Finding
from cockpit.domain.prefilter import Prefilter, has_literal, without_flood
from cockpit.domain.remedies import make_all
from cockpit.domain.signatures.match import Hit, match_line
from cockpit.domain.signatures.model import Signature
from cockpit.domain.signatures.refine import refine
from cockpit.domain.text import strip_ansi

PENDING_BYTES: Final = 64 * 1024
"""Kept of a line that has no end yet."""
BLOCK_BYTES: Final = 1024 * 1024
COUNT_WINDOW_LINES: Final = 2000
_MOST_GROUPS: Final = 64
_LINE_BYTES: Final = 32 * 1024

_ESCAPES: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[()][0-9A-Z]|[=>78])"
)


class Scanner:
    """Feed it the bytes of one log in order.

    Live (the default), a failure is returned at once and again when more becomes known of it: the
    newer finding has the same `offset` and `signature`, or its cause. Settled, each incident is
    returned once, when nothing more can be added to it.
    """

    def __init__(self, *, settled: bool = False, offset: int = 0, line: int = 1) -> None:
        self._settled = settled
        self._pending = bytearray()
        self._dropped = 0
        self._offset = offset
        self._line = line
        self._before = b""
        self._prefilter = Prefilter()
        self._episode = Episode()
        self._stopped_line: int | None = None
        self._tallies: dict[str, deque[int]] = {}
        self._judged_open: set[str] = set()
        """Signatures that were told of the unfinished line already."""
        self._at_s: float | None = None
        self._out: list[Finding] = []

    def feed(
        self, data: bytes, offset: int | None = None, at_s: float | None = None
    ) -> list[Finding]:
        """The next bytes; `offset` is where they start, when that is not where the last ones ended."""
        self._at_s = at_s
        if offset is not None and offset != self._end:
            self._jump(offset)
        for start in range(0, len(data), BLOCK_BYTES):
            self._take(data[start : start + BLOCK_BYTES])
        self._tell()
        return self._given()

    def quiet(self) -> list[Finding]:
        """Nothing came for a while: the unfinished line is judged as it stands, and what waits is told."""
        if self._pending and has_literal(bytes(self._pending)):
            told = self._judge(bytes(self._pending), self._line, self._offset)
            self._judged_open.update(told)
        self._tell(patient=False)
        return self._given()

    def finish(self) -> list[Finding]:
        """The log has ended: what was held back is decided now."""
        if self._pending:
            self._judge(bytes(self._pending), self._line, self._offset)
        self._close()
        return self._given()

    @property
    def _end(self) -> int:
        return self._offset + len(self._pending) + self._dropped

    def _given(self) -> list[Finding]:
        given, self._out = self._out, []
        return given

    def _jump(self, offset: int) -> None:
        """Bytes are missing: the unfinished line ends where they were lost."""
        self._pending, self._dropped, self._offset = bytearray(), 0, offset

    def _take(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(data)
            return
        first_end = data.find(b"\n") + 1
        if self._pending or self._dropped:
            self._keep(data[: first_end - 1])
            self._finish_line()
            data, end = data[first_end:], end - first_end
        if end:
            self._block(data[:end])
        self._keep(data[end:])

    def _keep(self, piece: bytes) -> None:
        self._pending += piece
        if len(self._pending) > PENDING_BYTES:
            size = len(self._pending)
            last = self._pending.rfind(b"\r", 0, size - 1)
            kept = self._pending[last + 1 :] if last >= 0 else self._pending
            self._pending = bytearray(kept[:PENDING_BYTES])
            self._dropped += size - len(self._pending)

    def _finish_line(self) -> None:
        size = len(self._pending) + self._dropped + 1
        line = bytes(self._pending) + b"\n"
        self._pending, self._dropped = bytearray(), 0
        self._block(line)
        self._offset += size - len(line)

    def _block(self, block: bytes) -> None:
        """Whole lines. `_offset` and `_line` are those of the first."""
        plain = _ESCAPES.sub(b"", block) if b"\x1b" in block else block
        lines = self._prefilter.hit_lines(plain)
        if lines or self._watching:
            self._walk(block, plain, lines)
        self._line += block.count(b"\n")
        self._offset += len(block)
        self._before = (self._before + plain)[-CONTEXT_BYTES:]
        self._judged_open.clear()
        self._leave_old(self._line)

    @property
    def _watching(self) -> bool:
        return bool(self._episode.groups) and not self._episode.expired(self._line, self._at_s)

    def _walk(self, block: bytes, plain: bytes, hits: list[int]) -> None:
        """Line by line, as long as there is something to look at."""
        rows = block.split(b"\n")
        plain_rows = rows if plain is block else plain.split(b"\n")
        judged = without_flood(plain_rows, hits)
        passed = set(hits) - judged
        offset, position = self._offset, 0
        for index, row in enumerate(plain_rows[:-1]):
            if index in passed:
                self._episode.goes_on(self._line + index)
            elif index in judged:
                self._judge(
                    row,
                    self._line + index,
                    offset,
                    plain[max(0, position - CONTEXT_BYTES) : position],
                )
            else:
                self._look(row, self._line + index)
            offset += len(rows[index]) + 1
            position += len(row) + 1

    def _judge(self, row: bytes, line: int, offset: int, before: bytes = b"") -> set[str]:
        """A line with a signature's words in it; returns the signature that was counted."""
        hit = match_line(row[:_LINE_BYTES].decode("utf-8", "replace"))
        hit = refine(hit) if hit else None
        if hit is None or hit.role == "metric":
            self._look(row, line)
            return set()
        if hit.role == "stop":
            self._stopped_line = line
        if offset == self._offset and hit.signature.id in self._judged_open:
            return set()
        if self._counts(hit, line):
            self._leave_old(line)
            if not self._episode.is_copy(hit):
                context = (self._before + before)[-CONTEXT_BYTES:].decode("utf-8", "replace")
                hit = enrich(hit, context)
            if len(self._episode.groups) < _MOST_GROUPS:
                self._episode.take(Sighting(hit, line, offset, self._at_s))
        return {hit.signature.id}

    def _counts(self, hit: Hit, line: int) -> bool:
        if hit.role == "stop" or self._is_teardown(hit.role, line):
            return False
        return hit.role != "count" or self._often_enough(hit.signature, line)

    def _leave_old(self, line: int) -> None:
        if self._episode.groups and self._episode.expired(line, self._at_s):
            self._close()

    def _is_teardown(self, role: str, line: int) -> bool:
        if self._stopped_line is None or line - self._stopped_line > STOP_LINES:
            return False
        return role != "cause"

    def _often_enough(self, signature: Signature, line: int) -> bool:
        seen = self._tallies.setdefault(signature.id, deque(maxlen=signature.at_least))
        seen.append(line)
        return len(seen) == signature.at_least and line - seen[0] <= COUNT_WINDOW_LINES

    def _look(self, row: bytes, line: int) -> None:
        """Any other line, while something is open."""
        if not self._episode.groups:
            return
        text = strip_ansi(row[:2000].decode("utf-8", "replace").rpartition("\r")[2])
        self._episode.look(line, text)
        for group in self._episode.groups:
            if line - group.lead.line <= DETAIL_LINES:
                _read_on(group, text)

    def _close(self) -> None:
        """The episode is over: everything in it that was not told is told now."""
        if self._settled:
            self._episode.merge_recovered()
        groups, self._episode = self._episode.groups, Episode()
        for group in groups:
            late = group.lead.hit.role == "tail" and not group.confirmed
            if not (late and self._line - group.lead.line > STOP_LINES):
                self._emit(group)

    def _tell(self, patient: bool = True) -> None:
        if self._settled:
            return
        for group in self._episode.groups:
            waits = LEVELS[group.lead.hit.role] < 2 and not group.told
            if waits and (group.lead.hit.role == "tail" and not group.confirmed):
                continue
            if not waits or not patient or self._line - group.lead.line > WRAPPER_PATIENCE_LINES:
                self._emit(group)

    def _emit(self, group: Group) -> None:
        silent = group.lead.hit.role == "fallout" and group.severity == "notice"
        if silent or (group.told and not group.changed):
            return
        group.told, group.changed = True, False
        self._out.append(_finding(group))


def _read_on(group: Group, text: str) -> None:
    """The lines below a hit may hold its numbers."""
    hit = group.lead.hit
    more = details_after(hit, text)
    group.changed = group.changed or not more.keys() <= group.facts.keys()
    group.facts.update(more)
    if hit.signature.id in WRAPPABLE:
        group.wrapped = (*(group.wrapped or (piece_of(hit.text),)), piece_of(text))
        whole = unwrap(hit, group.wrapped)
        if whole is not None:
            group.amend(enrich(replace(whole, cause=whole.signature.cause), ""))


def _finding(group: Group) -> Finding:
    hit = group.lead.hit
    finding = Finding(
        family=hit.family,
        signature=hit.signature.id,
        severity=group.severity,
        facts=dict(group.facts),
        line=group.lead.line,
        offset=group.lead.offset,
        text=hit.text,
        cause=group.cause,
        remedies=make_all(group.remedies, group.facts),
        rank=hit.rank,
        recovered=group.recovered,
    )
    rank = group.facts.get("rank")
    return (
        replace(finding, rank=rank) if finding.rank is None and isinstance(rank, int) else finding
    )
