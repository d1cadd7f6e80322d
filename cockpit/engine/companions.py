"""What goes along with a run while it lives and its host is connected: its forwards, and the wait until it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from cockpit.domain.models import RunId
from cockpit.domain.readiness import Readiness
from cockpit.engine.api import Forwarded
from cockpit.engine.bounds import end
from cockpit.engine.readiness import model_name, wait_until_ready
from cockpit.errors import CockpitError, LinkLost
from cockpit.transport.base import HostTransport

CLOSE_LIMIT_S: Final = 3.0
LOOPBACK: Final = "127.0.0.1"
LOOK_EVERY_S: Final = 5.0
TRY_AGAIN_S: Final = 5.0
"""A port of this computer that was taken is asked for again."""


OnForward: TypeAlias = Callable[[int, int, "CockpitError | None"], None]
"""(port of this computer, port of the host, why it does not listen on loopback; None when it does)"""


@dataclass(frozen=True, slots=True)
class CompanionParts:
    now_s: Callable[[], float]
    forwarded: Callable[[RunId, int, int, CockpitError | None], None]
    is_ready: Callable[[RunId], None]
    signs_of_life: Callable[[RunId], object]
    """Something that changes while a start gets on: its log, the memory of its cards."""
    is_stuck: Callable[[RunId], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one run wants to go along with it."""

    ready: Readiness | None = None
    log_says_ready: asyncio.Event | None = None
    forwards: tuple[tuple[int, int], ...] = ()
    serves: bool = False
    """It answers /v1/models with the name of its model."""

    @property
    def is_nothing(self) -> bool:
        return not (can_tell(self.ready) or self.forwards)


class Forwards:
    """The ports that one connection carries for one purpose; a taken one is tried again until it is free."""

    def __init__(
        self,
        wanted: tuple[tuple[int, int], ...],
        told: OnForward,
        hosts: Mapping[tuple[int, int], str] | None = None,
    ) -> None:
        """`hosts` are the machines that the ports lead to, as the host sees them; its own loopback else."""
        self._told = told
        self._hosts = hosts or {}
        self._states = {pair: Forwarded(*pair, is_open=False) for pair in wanted}
        self._ports: list[tuple[HostTransport, int]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def states(self) -> tuple[Forwarded, ...]:
        return tuple(self._states.values())

    def open(self, transport: HostTransport) -> None:
        """On this connection, from now on."""
        self.close()
        if self._states:
            self._task = asyncio.ensure_future(self._keep(transport))

    def close(self) -> None:
        """At once: the ports are free for the next one."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        while self._ports:
            transport, port = self._ports.pop()
            transport.unforward(port)
        self._states = {pair: Forwarded(*pair, is_open=False) for pair in self._states}

    async def _keep(self, transport: HostTransport) -> None:
        while transport.connected:
            for pair in [pair for pair, state in self._states.items() if not state.is_open]:
                await self._open(transport, pair)
            if all(state.is_open for state in self._states.values()):
                return
            await asyncio.sleep(TRY_AGAIN_S)

    async def _open(self, transport: HostTransport, pair: tuple[int, int]) -> None:
        before = self._states[pair].code
        try:
            port = await transport.forward(*pair, self._hosts.get(pair, LOOPBACK))
        except LinkLost:
            return  # the next connection forwards it
        except CockpitError as error:
            self._states[pair] = Forwarded(*pair, is_open=False, code=error.code)
            if before != error.code:
                self._told(*pair, error)
            return
        self._ports.append((transport, port))
        self._states[pair] = Forwarded(*pair, is_open=True)
        self._told(port, pair[1], None)


class Companions:
    """At most one a run; it ends with the run or with the link, and begins anew after a reconnection.

    A port that a run gave up is free for the next one.
    """

    def __init__(self, parts: CompanionParts) -> None:
        self._parts = parts
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._forwards: dict[RunId, Forwards] = {}
        self._models: dict[RunId, str] = {}

    def begin(self, run: RunId, transport: HostTransport, wanted: Wanted) -> None:
        if run in self._tasks or wanted.is_nothing:
            return
        forwards = self._forwards[run] = Forwards(
            wanted.forwards, partial(self._parts.forwarded, run)
        )
        forwards.open(transport)
        self._tasks[run] = asyncio.ensure_future(self._accompany(run, transport, wanted))

    def leave(self, run: RunId) -> None:
        task = self._tasks.pop(run, None)
        if task is not None:
            task.cancel()
        if run in self._forwards:
            self._forwards[run].close()

    def forwards(self, run: RunId) -> tuple[Forwarded, ...]:
        kept = self._forwards.get(run)
        return () if kept is None else kept.states

    def model(self, run: RunId) -> str:
        """The name that its server gave, from its first answer on."""
        return self._models.get(run, "")

    async def close(self) -> None:
        for forwards in self._forwards.values():
            forwards.close()
        await end(*self._tasks.values(), limit_s=CLOSE_LIMIT_S)

    async def _accompany(self, run: RunId, transport: HostTransport, wanted: Wanted) -> None:
        if wanted.ready is not None and can_tell(wanted.ready):
            await self._wait(run, transport, wanted, wanted.ready)

    async def _wait(
        self, run: RunId, transport: HostTransport, wanted: Wanted, ready: Readiness
    ) -> None:
        watching = asyncio.ensure_future(self._watch_start(run, ready.no_progress_s))
        try:
            if not await wait_until_ready(transport, ready, self._parts.now_s):
                return
            if ready.log is not None and wanted.log_says_ready is not None:
                await wanted.log_says_ready.wait()
        finally:
            await end(watching)
        if wanted.serves and ready.port is not None:
            self._models[run] = await model_name(transport, ready.port) or ""
        self._parts.is_ready(run)

    async def _watch_start(self, run: RunId, no_progress_s: float | None) -> None:
        """A slow start is no failure; one that does not get on any more is told, once for each stop."""
        if no_progress_s is None:
            return
        signs, since_s = self._parts.signs_of_life(run), self._parts.now_s()
        is_told = False
        while True:
            await asyncio.sleep(min(LOOK_EVERY_S, no_progress_s / 4))
            if (now := self._parts.signs_of_life(run)) != signs:
                signs, since_s, is_told = now, self._parts.now_s(), False
            elif not is_told and self._parts.now_s() - since_s >= no_progress_s:
                is_told = True
                self._parts.is_stuck(run)


def can_tell(ready: Readiness | None) -> bool:
    return ready is not None and (ready.port is not None or ready.log is not None)
