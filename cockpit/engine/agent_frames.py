"""What the on-host agent writes, taken apart: length-checked frames, and the typed frames of a tail."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cockpit.domain.run_record import NotARecord, RunRecord, decode_record
from cockpit.errors import ProtocolError

PROTOCOL = 1
MAGIC = 0x434B5031
"""The number of the hello frame: whatever else runs on the other side does not begin with it."""
MAX_FRAME_BYTES = 512 * 1024
MAX_OFFSET = 1 << 44
"""No log is as long (16 TiB), and no file of ours may be."""
HEADER = struct.Struct(">cII")
"""Kind, id of the request it answers, length of what follows."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as it came. Kinds: H hello, R answer, B bytes, D data, E truncated, G hole, X end."""

    kind: bytes
    request: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of the log from `offset` on."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    """The log shrank: the run cut it. The tail goes on from `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes that are not sent: dropped by retention, or skipped because we asked to keep up."""

    start: int
    end: int
    why: Literal["dropped", "skipped"]


@dataclass(frozen=True, slots=True)
class End:
    """The run has ended and every byte of its log was sent."""

    offset: int
    record: RunRecord


TailFrame: TypeAlias = Data | Truncated | Hole | End


class FrameReader:
    """Bytes in, whole frames out; never keeps more than one frame's worth."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Every frame that `data` completes. Raises ProtocolError on a length out of bounds."""
        self._buffer += data
        start = 0
        while len(self._buffer) - start >= HEADER.size:
            kind, request, length = HEADER.unpack_from(self._buffer, start)
            if length > MAX_FRAME_BYTES or kind not in b"HRBDEGX":
                raise ProtocolError(why="frame", length=length)
            end = start + HEADER.size + length
            if len(self._buffer) < end:
                break
            yield Frame(kind, request, bytes(memoryview(self._buffer)[start + HEADER.size : end]))
            start = end
        del self._buffer[:start]


def decode_object(payload: bytes) -> dict[str, object]:
    """The JSON object of a frame. Raises ProtocolError."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(why="json") from error
    if not isinstance(value, dict):
        raise ProtocolError(why="json")
    return value


def decode_tail(frame: Frame) -> TailFrame:
    """A frame of a tail. Raises ProtocolError."""
    try:
        told = _told(frame)
    except (struct.error, NotARecord) as error:
        raise ProtocolError(why="tail frame") from error
    if told is None or _end_of(told) > MAX_OFFSET:
        raise ProtocolError(why="tail frame")
    return told


def _told(frame: Frame) -> TailFrame | None:
    if frame.kind == b"D":
        return Data(int.from_bytes(frame.payload[:8], "big"), frame.payload[8:])
    if frame.kind == b"E":
        return Truncated(struct.unpack(">Q", frame.payload)[0])
    if frame.kind == b"G":
        start, end, skipped = struct.unpack(">QQB", frame.payload)
        return Hole(start, end, "skipped" if skipped else "dropped")
    if frame.kind == b"X":
        offset = int.from_bytes(frame.payload[:8], "big")
        return End(offset, decode_record(decode_object(frame.payload[8:])))
    return None


def _end_of(frame: TailFrame) -> int:
    if isinstance(frame, Hole):
        return frame.end
    return frame.offset + (len(frame.data) if isinstance(frame, Data) else 0)


def next_offset(frame: TailFrame, expected: int) -> int:
    """Where the frame after this one must begin. Raises ProtocolError on a gap or an overlap."""
    if isinstance(frame, Truncated):
        if frame.offset:
            raise ProtocolError(why="offset", offset=frame.offset, expected=0)
        return 0
    begins = frame.start if isinstance(frame, Hole) else frame.offset
    if begins != expected or (isinstance(frame, Hole) and frame.end <= begins):
        raise ProtocolError(why="offset", offset=begins, expected=expected)
    return _end_of(frame)
