"""How much of this computer's disk the copies of logs may take, and which ones give way first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cockpit.config.paths import Home
from cockpit.config.settings import load_settings
from cockpit.domain.models import HostName, RunId
from cockpit.engine.bounds import end
from cockpit.engine.events import OwnTrouble
from cockpit.engine.run_book import RunBook
from cockpit.engine.wiring import EngineParts
from cockpit.errors import CockpitError

log = logging.getLogger(__name__)

EVERY_S: Final = 600.0
_BLOCK_BYTES: Final = 512
DEFAULT_MIB: Final = 4096


def mirror_limit_bytes(home: Home) -> int:
    """The setting `logs`, else 4 GiB. A broken file is its reader's to report."""
    try:
        mib = load_settings(home).logs_mib
    except CockpitError:
        mib = DEFAULT_MIB
    return mib << 20


@dataclass(frozen=True, slots=True)
class _Copy:
    folder: Path
    taken: int
    changed_s: float


def make_room(home: Home, limit_bytes: int, living: Collection[RunId]) -> int:
    """Remove the oldest copies of logs until the rest fits; returns how many.

    Those of `living` runs stay, and what else is kept of a run stays too. A run's log can be read on its host
    for as long as that keeps it.
    """
    copies = sorted(_copies(home), key=lambda copy: copy.changed_s)
    over, removed = sum(copy.taken for copy in copies) - limit_bytes, 0
    for copy in copies:
        if over <= 0:
            break
        if copy.folder.name in living:
            continue
        try:
            for path in (*copy.folder.glob("log*"), copy.folder / "gaps"):
                path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("a log's copy cannot be removed: %s", error)
            continue
        over -= copy.taken
        removed += 1
    return removed


def _copies(home: Home) -> list[_Copy]:
    found = []
    for folder in (home.root / "runs").glob("*/*"):
        try:
            stats = [path.stat() for path in folder.glob("log*") if path.is_file()]
        except OSError:
            continue
        if stats:
            taken = sum(one.st_blocks for one in stats) * _BLOCK_BYTES
            found.append(_Copy(folder, taken, max(one.st_mtime for one in stats)))
    return found


class LogCopies:
    """Keeps the copies of logs within their room for as long as a screen is open."""

    def __init__(self, parts: EngineParts, book: RunBook) -> None:
        self.limit_bytes = mirror_limit_bytes(parts.home)
        self._parts = parts
        self._book = book
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._now_and_then())

    async def _now_and_then(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            living = frozenset(view.run for view in self._book.all() if not view.ended)
            await asyncio.to_thread(make_room, self._parts.home, self.limit_bytes, living)

    def uncopied(self, host: HostName, run: RunId, error: CockpitError) -> None:
        """The run and its watching go on; only the copy here does not."""
        facts = {**error.facts, "run": run, "host": host}
        self._parts.bus.publish(OwnTrouble(error.code, facts, self._parts.clock.wall_s()))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await end(self._task, limit_s=1.0)
