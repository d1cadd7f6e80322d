"""The runs of the past, kept in cockpit.db by a thread beside the loop. Cockpit works without it as well.

A database that cannot be written costs the history and nothing else: it is told once, and tried again later.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from cockpit.config.paths import ensure_private_dir, tilde
from cockpit.domain.incidents import Incident
from cockpit.domain.models import RunId
from cockpit.domain.mutes import Mute
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.engine.bounds import attempt, end, within
from cockpit.engine.clock import Clock
from cockpit.engine.store import Database, is_broken
from cockpit.errors import Fact, StorageError
from cockpit.transport.own_thread import in_own_thread

log = logging.getLogger(__name__)
T = TypeVar("T")

FLUSH_AFTER_S: Final = 0.3
"""Changes of a moment are written together."""
TRY_AGAIN_S: Final = 60.0
LIMIT_S: Final = 10.0
"""For one piece of work: others may hold the database, and a disk may hang."""
LOADED_AT_MOST: Final = 500
PRUNE_EVERY_S: Final = 86400.0

Trouble = Callable[[str, Mapping[str, Fact]], None]


class History:
    """What is remembered of runs. Reading before `load` finds nothing; writing never raises."""

    def __init__(self, path: Path, clock: Clock, on_trouble: Trouble) -> None:
        self.known: dict[RunId, PastRun] = {}
        """The newest ones as they were when they were loaded."""
        self._path = path
        self._clock = clock
        self._on_trouble = on_trouble
        self._database: Database | None = None
        self._guard = threading.Lock()
        self._runs: dict[RunId, PastRun] = {}
        self._incidents: dict[str, Incident] = {}
        self._claimed: dict[str, float] = {}
        self._told: set[str] = set()
        self._set_aside: Path | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Future[None] | None = None
        self._is_closed = False

    # -- reading ---------------------------------------------------------------------------

    async def load(self, limit: int = LOADED_AT_MOST) -> Sequence[PastRun]:
        """The newest runs, from now on in `known`; none when the database cannot be read."""
        nothing: list[PastRun] = []
        found = await self._asked(lambda database: database.newest(limit), nothing)
        self.known = {past.run: past for past in found}
        return found

    async def origin(self, run: RunId) -> Origin | None:
        """What the run was started from here; None for one of another computer."""
        await self.flush()
        return await self._asked(lambda database: database.origin(run), None)

    async def recall(self, run: RunId) -> PastRun | None:
        """One run as it is remembered, whether it was loaded or not."""
        await self.flush()
        return await self._asked(lambda database: database.run(run), None)

    async def intents(self) -> frozenset[RunId]:
        """Starts from here of which no host has spoken yet."""
        nothing: frozenset[RunId] = frozenset()
        return await self._asked(lambda database: database.intents(), nothing)

    async def incidents(self, run: RunId) -> Sequence[Incident]:
        await self.flush()
        return await self._asked(lambda database: database.incidents(run), [])

    async def newest_incidents(self, limit: int) -> Sequence[Incident]:
        """Of every run and host, the newest first."""
        await self.flush()
        return await self._asked(lambda database: database.newest_incidents(limit), [])

    async def mutes(self) -> Sequence[Mute] | None:
        """Every rule; None when they cannot be read."""
        nothing: Sequence[Mute] | None = None
        if self._database is None and not self._path.exists():
            return ()
        return await self._asked(lambda database: database.mutes(), nothing)

    # -- writing ---------------------------------------------------------------------------

    def take(self, past: PastRun) -> None:
        """A host spoke of a run; it is written soon."""
        waiting = self._runs.get(past.run)
        if waiting is None or waiting.seen_s <= past.seen_s:
            self._runs[past.run] = past
        self._flush_soon()

    def take_incident(self, incident: Incident) -> None:
        self._incidents[incident.key] = incident
        self._flush_soon()

    async def keep_origin(self, past: PastRun, origin: Origin) -> None:
        """A run was started from here: at once, so that it can be started again whatever happens next."""
        self._runs.pop(past.run, None)

        def save(database: Database) -> None:
            database.save_runs([past])
            database.save_origin(past.run, origin)

        await self._asked(save, None)

    async def intend(self, run: RunId, origin: Origin) -> None:
        """A run is about to be started from here: at once, since its host may start it and we be killed."""
        wall_s = self._clock.wall_s()
        await self._asked(lambda database: database.save_intent(run, wall_s, origin), None)

    async def not_started(self, run: RunId) -> None:
        await self._asked(lambda database: database.drop_intent(run), None)

    async def set_remark(self, past: PastRun, remark: str) -> bool:
        """False when it could not be kept."""

        def save(database: Database) -> bool:
            database.save_runs([past])
            return database.save_remark(past.run, remark)

        return await self._asked(save, False)

    async def keep_mute(self, mute: Mute) -> bool:
        """False when it could not be kept."""
        return await self._asked(lambda database: database.save_mute(mute), False)

    async def drop_mute(self, mute_id: str) -> bool:
        return await self._asked(lambda database: database.drop_mute(mute_id), False)

    async def claim(self, what: str, again_after_s: float | None = None) -> bool:
        """Whether it is for us to act, and for no other cockpit of this computer."""
        wall_s = self._clock.wall_s()
        before_s = self._claimed.get(what)
        if before_s is not None and (again_after_s is None or wall_s - before_s < again_after_s):
            return False
        self._claimed[what] = wall_s
        await self.flush()
        return await self._asked(lambda database: database.claim(what, wall_s, again_after_s), True)

    async def flush(self) -> None:
        """Write what waits. A failure leaves it waiting."""
        while self._flushing is not None:
            await asyncio.shield(self._flushing)
        if self._runs or self._incidents:
            self._flushing = asyncio.ensure_future(self._flush())
            await asyncio.shield(self._flushing)

    async def close(self, limit_s: float) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await attempt(limit_s, self.flush())
        if self._flushing is not None:
            await end(self._flushing)
        await attempt(limit_s, in_own_thread(self._close))

    # -- the thread ------------------------------------------------------------------------

    def _flush_soon(self, after_s: float = FLUSH_AFTER_S) -> None:
        if self._timer is None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(after_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._flushing is None and (self._runs or self._incidents):
            self._flushing = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        runs, incidents = self._runs, self._incidents
        self._runs, self._incidents = {}, {}

        def save(database: Database) -> bool:
            database.save_runs(runs.values())
            database.save_incidents(incidents.values())
            return True

        try:
            if not await self._asked(save, False):
                self._runs = {**runs, **self._runs}
                self._incidents = {**incidents, **self._incidents}
                self._flush_soon(TRY_AGAIN_S)
            elif self._runs or self._incidents:
                self._flush_soon()
        finally:
            self._flushing = None

    async def _asked(self, work: Callable[[Database], T], otherwise: T) -> T:
        answer = otherwise
        try:
            answer = await within(LIMIT_S, in_own_thread(self._guarded, work))
        except StorageError as error:
            self._tell(error.code, error.facts)
        except asyncio.TimeoutError:
            self._tell("history_unwritable", {"path": tilde(self._path), "why": "timeout"})
        if self._set_aside is not None:
            facts = {"path": tilde(self._path), "kept": tilde(self._set_aside)}
            self._set_aside = None
            self._tell("history_set_aside", facts)
        return answer

    def _guarded(self, work: Callable[[Database], T]) -> T:
        """In a thread; one at a time has the connection."""
        if not self._guard.acquire(timeout=LIMIT_S):
            raise StorageError("history_unwritable", path=tilde(self._path), why="timeout")
        try:
            try:
                return work(self._open())
            except StorageError as error:
                if not is_broken(error):
                    raise
            self._close_unguarded()
            return work(self._open())
        finally:
            self._guard.release()

    def _open(self) -> Database:
        if self._database is None:
            ensure_private_dir(self._path.parent)
            self._database = Database(self._path)
            self._set_aside = self._database.set_aside or self._set_aside
            if not self._database.is_read_only:
                self._prune(self._database)
        return self._database

    def _prune(self, database: Database) -> None:
        wall_s = self._clock.wall_s()
        try:
            if database.claim("prune", wall_s, PRUNE_EVERY_S):
                database.prune(wall_s)
        except StorageError as error:
            log.info("%s", error)

    def _close(self) -> None:
        with self._guard:
            self._close_unguarded()

    def _close_unguarded(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _tell(self, code: str, facts: Mapping[str, Fact]) -> None:
        log.warning("history: %s %s", code, dict(facts))
        if code not in self._told:
            self._told.add(code)
            self._on_trouble(code, facts)


def as_unreachable(past: PastRun) -> PastRun:
    """As it is shown before its host has spoken: what lived then may live still."""
    if past.view.ended:
        return past
    return replace(past, view=replace(past.view, state="unreachable", reason="unreachable"))
