"""One host's last ten minutes as frames: compressed in blocks, bounded in bytes, each block playable by itself."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cockpit.domain.models import RunId

KEPT_S: Final = 600.0
BLOCK_BYTES: Final = 32 * 1024
BLOCK_S: Final = 60.0
PIECE_S: Final = 0.5
"""Pieces of one log that come within this time are one."""
PIECE_BYTES: Final = 16 * 1024
MOST_BYTES: Final = 96 * 1024
"""Of what comes at once, the end is kept: that is where a job says what it died of."""
PIECE_COST: Final = 300
"""What a piece costs beside its bytes."""
_LEVEL: Final = 1

MakeKeyframes = Callable[[float], list[bytes]]
"""Frames that say all that is true of a host at that moment, so that what follows can be played from there."""


@dataclass(frozen=True, slots=True)
class Block:
    begun_s: float
    ended_s: float
    keyframes: int
    """So many of its lines are repetitions for who begins here."""
    packed: bytes


@dataclass(slots=True)
class LogPiece:
    at_s: float
    run: RunId
    offset: int
    number: int
    data: bytearray


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tape at one moment: cheap to take, opened elsewhere."""

    blocks: tuple[Block, ...]
    lines: tuple[bytes, ...]
    keyframes: int
    pieces: tuple[tuple[float, RunId, int, int, bytes], ...]

    def frames(self) -> list[bytes]:
        """Every frame in its order, keyframes at the beginning alone."""
        found: list[bytes] = []
        for block in self.blocks:
            lines = zlib.decompress(block.packed).split(b"\n")
            found += lines[block.keyframes :] if found else lines
        found += self.lines[self.keyframes :] if found else self.lines
        return found


class HostTape:
    def __init__(self, make_keyframes: MakeKeyframes) -> None:
        self.limit_bytes = 256 * 1024
        """Of it, half is for logs, and what they leave for frames."""
        self._make_keyframes = make_keyframes
        self._blocks: deque[Block] = deque()
        self._packed_bytes = 0
        self._lines: list[bytes] = []
        self._size = 0
        self._keyframes = 0
        self._keyframe_bytes = 0
        self._begun_s = 0.0
        self._pieces: deque[LogPiece] = deque()
        self._log_bytes = 0

    @property
    def size_bytes(self) -> int:
        """What it holds, the cost of small things included."""
        open_bytes = self._size + self._keyframe_bytes + 60 * len(self._lines)
        return self._packed_bytes + open_bytes + self._log_bytes

    @property
    def begun_s(self) -> float:
        """When the oldest frame was taken."""
        return self._blocks[0].begun_s if self._blocks else self._begun_s

    def add(self, at_s: float, line: bytes) -> None:
        """A frame. The first one of a block comes after frames that repeat what was true before."""
        if not self._lines:
            self._lines = self._make_keyframes(at_s)
            self._keyframes, self._begun_s = len(self._lines), at_s
            self._size, self._keyframe_bytes = 0, sum(map(len, self._lines))
        self._lines.append(line)
        self._size += len(line)
        if self._size >= BLOCK_BYTES or not 0 <= at_s - self._begun_s < BLOCK_S:
            self._seal(at_s)

    def add_log(self, at_s: float, run: RunId, offset: int, number: int, data: bytes) -> None:
        if (cut := len(data) - MOST_BYTES) > 0:
            offset, number, data = offset + cut, number + data.count(b"\n", 0, cut), data[cut:]
        last = self._pieces[-1] if self._pieces else None
        if (
            last is not None
            and last.run == run
            and last.offset + len(last.data) == offset
            and 0 <= at_s - last.at_s < PIECE_S
            and len(last.data) + len(data) <= PIECE_BYTES
        ):
            last.data += data
            self._log_bytes += len(data)
        else:
            self._pieces.append(LogPiece(at_s, run, offset, number, bytearray(data)))
            self._log_bytes += len(data) + PIECE_COST
        self._forget_log(at_s)

    def snapshot(self) -> Snapshot:
        return Snapshot(
            tuple(self._blocks),
            tuple(self._lines),
            self._keyframes,
            tuple(
                (one.at_s, one.run, one.offset, one.number, bytes(one.data)) for one in self._pieces
            ),
        )

    def _seal(self, at_s: float) -> None:
        block = Block(
            self._begun_s, at_s, self._keyframes, zlib.compress(b"\n".join(self._lines), _LEVEL)
        )
        self._blocks.append(block)
        self._packed_bytes += len(block.packed)
        self._lines, self._size, self._keyframes, self._keyframe_bytes = [], 0, 0, 0
        room = self.limit_bytes - min(self._log_bytes, self.limit_bytes // 2)
        while self._blocks and (
            self._blocks[0].ended_s < at_s - KEPT_S or self._packed_bytes > room
        ):
            self._packed_bytes -= len(self._blocks.popleft().packed)

    def _forget_log(self, at_s: float) -> None:
        pieces = self._pieces
        while len(pieces) > 1 and (
            pieces[0].at_s < at_s - KEPT_S or self._log_bytes > self.limit_bytes // 2
        ):
            self._log_bytes -= len(pieces.popleft().data) + PIECE_COST
