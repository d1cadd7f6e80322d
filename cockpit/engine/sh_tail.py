"""A log followed by asking for its bytes: from any offset, exact over every cut, its end told only when it is one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from cockpit.domain.models import RunId
from cockpit.domain.run_record import RunRecord
from cockpit.engine.agent_frames import Data, End, Hole, TailFrame, Truncated
from cockpit.engine.agent_replies import LogBytes
from cockpit.engine.sh_growth import Growth

CHUNK_BYTES = 256 * 1024
LOOK_S = 2.0
"""How often the run is looked at while its log stands still: one that is lost writes no record."""


class _Source(Protocol):
    async def read(self, run: RunId, offset: int, length: int) -> LogBytes: ...

    async def status(self, run: RunId) -> RunRecord: ...


class ShTail:
    """One run's log. Others have their turn after each piece, since every question waits for the one before."""

    def __init__(self, source: _Source, growth: Growth, run: RunId, offset: int) -> None:
        self._source = source
        self._growth = growth
        self._run = run
        self._offset = offset
        self._final: RunRecord | None = None

    async def frames(
        self, budget_bytes_s: int | None, keep_up_bytes: int | None
    ) -> AsyncGenerator[TailFrame, None]:
        await self._source.status(self._run)
        chunk = min(CHUNK_BYTES, budget_bytes_s) if budget_bytes_s else CHUNK_BYTES
        while True:
            piece = await self._source.read(self._run, self._offset, max(1, chunk))
            if piece.size < self._offset:
                self._offset, self._final = 0, None
                yield Truncated(0)
                continue
            behind = piece.size - self._offset
            if keep_up_bytes and behind > keep_up_bytes:
                start, self._offset = self._offset, piece.size - keep_up_bytes // 2
                yield Hole(start, self._offset, "skipped")
                continue
            if piece.data:
                self._offset += len(piece.data)
                yield Data(piece.offset, piece.data)
                if budget_bytes_s:
                    await asyncio.sleep(len(piece.data) / budget_bytes_s)
                continue
            if self._final is not None:
                yield End(self._offset, self._final)
                return
            await self._at_end()

    async def _at_end(self) -> None:
        """The end is told only when the log still has no more bytes after the run was seen ended."""
        record = await self._source.status(self._run)
        if record.state in ("exited", "lost"):
            self._final = record
        else:
            await self._growth.changed(self._run, self._offset, LOOK_S)
