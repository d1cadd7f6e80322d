"""What goes along with a run while it lives and its host is connected: its forwards, and the wait until it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from cockpit.domain.models import RunId
from cockpit.domain.readiness import Readiness
from cockpit.engine.bounds import end
from cockpit.engine.readiness import wait_until_ready
from cockpit.errors import CockpitError, LinkLost
from cockpit.transport.base import HostTransport

CLOSE_LIMIT_S = 3.0
LOOK_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class CompanionParts:
    now_s: Callable[[], float]
    forwarded: Callable[[RunId, int, int], None]
    """(run, port of this computer, port of the host): it listens on loopback."""
    not_forwarded: Callable[[RunId, int, CockpitError], None]
    is_ready: Callable[[RunId], None]
    signs_of_life: Callable[[RunId], object]
    """Something that changes while a start gets on: its log, the memory of its cards."""
    is_stuck: Callable[[RunId], None]


class Companions:
    """At most one a run; it ends with the run or with the link, and begins anew after a reconnection.

    A port that a run gave up is free for the next one.
    """

    def __init__(self, parts: CompanionParts) -> None:
        self._parts = parts
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._ports: dict[RunId, list[tuple[HostTransport, int]]] = {}

    def begin(
        self,
        run: RunId,
        transport: HostTransport,
        ready: Readiness | None,
        log_says_ready: asyncio.Event | None,
        forwards: tuple[tuple[int, int], ...],
    ) -> None:
        if run in self._tasks or not (_can_tell(ready) or forwards):
            return
        work = self._accompany(run, transport, ready, log_says_ready, forwards)
        self._tasks[run] = asyncio.ensure_future(work)

    def leave(self, run: RunId) -> None:
        task = self._tasks.pop(run, None)
        if task is not None:
            task.cancel()
        for transport, port in self._ports.pop(run, ()):
            transport.unforward(port)

    async def close(self) -> None:
        await end(*self._tasks.values(), limit_s=CLOSE_LIMIT_S)

    async def _accompany(
        self,
        run: RunId,
        transport: HostTransport,
        ready: Readiness | None,
        log_says_ready: asyncio.Event | None,
        forwards: tuple[tuple[int, int], ...],
    ) -> None:
        for local_port, remote_port in forwards:
            await self._forward(run, transport, local_port, remote_port)
        if ready is None or not _can_tell(ready):
            return
        watching = asyncio.ensure_future(self._watch_start(run, ready.no_progress_s))
        try:
            if not await wait_until_ready(transport, ready, self._parts.now_s):
                return
            if ready.log is not None and log_says_ready is not None:
                await log_says_ready.wait()
        finally:
            await end(watching)
        self._parts.is_ready(run)

    async def _watch_start(self, run: RunId, no_progress_s: float | None) -> None:
        """A slow start is no failure; one that does not get on any more is told, once."""
        if no_progress_s is None:
            return
        signs, since_s = self._parts.signs_of_life(run), self._parts.now_s()
        while self._parts.now_s() - since_s < no_progress_s:
            await asyncio.sleep(min(LOOK_EVERY_S, no_progress_s / 4))
            if (now := self._parts.signs_of_life(run)) != signs:
                signs, since_s = now, self._parts.now_s()
        self._parts.is_stuck(run)

    async def _forward(
        self, run: RunId, transport: HostTransport, local_port: int, remote_port: int
    ) -> None:
        try:
            port = await transport.forward(local_port, remote_port)
        except LinkLost:
            return  # the next connection forwards it
        except CockpitError as error:
            self._parts.not_forwarded(run, local_port, error)
        else:
            self._ports.setdefault(run, []).append((transport, port))
            self._parts.forwarded(run, port, remote_port)


def _can_tell(ready: Readiness | None) -> bool:
    return ready is not None and (ready.port is not None or ready.log is not None)
