"""The history of runs for commands that end at once: read here and now, without an engine."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cockpit.config.paths import Home
from cockpit.domain.past_runs import PastRun
from cockpit.engine.store import Database
from cockpit.errors import StorageError
from cockpit.headless.run_report import words_for
from cockpit.transport.own_thread import in_own_thread


async def remembered(home: Home) -> Sequence[PastRun]:
    """Every run of the history, the newest first. What keeps it from being read is said on stderr."""
    try:
        return await in_own_thread(_read, home)
    except StorageError as error:
        print(words_for(error.code, error.facts), file=sys.stderr)
        return ()


def _read(home: Home) -> Sequence[PastRun]:
    if not home.db.exists():
        return ()
    database = Database(home.db)
    try:
        return database.newest()
    finally:
        database.close()
