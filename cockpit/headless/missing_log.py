"""Parts of a log that the copy here does not hold, straight from the host, whatever the link does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from cockpit.domain.models import HostName, RunId
from cockpit.engine.agent_frames import Data, Hole
from cockpit.engine.read_log import read_log
from cockpit.engine.runs import Runs
from cockpit.errors import HostUnreachable, LinkLost, RunUnknown

AGENT_LIMIT_S = 30.0
AGAIN_S = 0.5


async def missing_log(
    runs: Runs, host: HostName, run: RunId, start: int, end: int
) -> AsyncGenerator[Data | Hole, None]:
    """Bytes `start` to `end` in order; a Hole where the host does not have them any more either."""
    while start < end:
        try:
            agent = await runs.of_host(host).agent(AGENT_LIMIT_S)
            async with aclosing(read_log(agent, run, start)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Hole):
                        piece = Hole(start, min(piece.end, end), "dropped")
                        start = piece.end
                    else:
                        piece = Data(start, piece.data[: end - start])
                        start += len(piece.data)
                    yield piece
                    if start >= end:
                        return
        except (LinkLost, HostUnreachable):
            await asyncio.sleep(AGAIN_S)
            continue
        except RunUnknown:
            pass
        if start < end:  # the run is gone from its host, or its log was cut
            yield Hole(start, end, "dropped")
            return
