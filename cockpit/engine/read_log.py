"""A run's log as it is on its host now, from a byte on: pieces in order, and what was given back to the disk."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from cockpit.domain.models import RunId
from cockpit.engine.agent_frames import Data, Hole
from cockpit.engine.host_agent import HostAgent

PIECE_BYTES = 256 * 1024
_ZEROS = bytes(512)
"""Where there are so many, a hole may have been made since we asked."""


async def read_log(
    agent: HostAgent, run: RunId, offset: int = 0
) -> AsyncGenerator[Data | Hole, None]:
    """To the end that it had at the first answer. Raises RunUnknown, TransportError."""
    hole = (await agent.status(run)).log_hole
    end: int | None = None
    while end is None or offset < end:
        if hole is not None and hole[0] <= offset < hole[1]:
            yield Hole(offset, hole[1], "dropped")
            offset = hole[1]
            continue
        wanted = PIECE_BYTES if hole is None or offset >= hole[1] else hole[0] - offset
        piece = await agent.read(run, offset, min(PIECE_BYTES, wanted))
        end = piece.size if end is None else min(end, piece.size)
        if not piece.data:
            return
        if _ZEROS in piece.data:
            now = (await agent.status(run)).log_hole
            if now != hole:
                hole = now
                continue
        data = piece.data[: max(0, end - offset)]
        yield Data(offset, data)
        offset += len(data)
