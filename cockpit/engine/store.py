"""cockpit.db: the runs and incidents of this computer, in SQLite. Blocking: a thread of its own uses it.

Several cockpits may write at once. What a host said last wins, and an end is never taken back.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cockpit.config.files import locked
from cockpit.config.paths import tilde
from cockpit.domain.incidents import Incident
from cockpit.domain.models import RunId
from cockpit.domain.mutes import MOST_MUTES, Mute
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.engine import store_incidents
from cockpit.engine import store_rows as rows
from cockpit.engine.store_schema import NotOurs, migrate
from cockpit.engine.store_why import why_of
from cockpit.errors import StorageError

BUSY_LIMIT_MS: Final = 5000
MOST_RUNS: Final = 20_000
MOST_INCIDENTS: Final = 50_000
KEPT_S: Final = 2 * 365 * 86400.0
"""Older runs are forgotten, unless a person wrote a line to them."""
INTENT_KEPT_S: Final = 90 * 86400.0
"""A start whose answer was lost may be heard of when its host is back."""
PROOF_KEPT_S: Final = 180 * 86400.0
"""Curves are the most of an incident's size, and nobody looks at old ones."""
_CORRUPT: Final = (sqlite3.DatabaseError, NotOurs)
_MARKS: Final = ("malformed", "not a database", "file is encrypted")


class Database:
    """One connection. Every method raises StorageError, and nothing else, when the file will not have it."""

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it. One that is no database of ours is set aside, and begun anew."""
        self.path = path
        self.set_aside: Path | None = None
        """Where a broken file was put."""
        self.is_read_only = False
        self._why_read_only = ""
        with self._told():
            self._connection = self._opened()

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()

    # -- writing ---------------------------------------------------------------------------

    def save_runs(self, runs: Iterable[PastRun]) -> None:
        with self._transaction() as connection:
            connection.executemany(rows.SAVE_RUN, [rows.run_row(past) for past in runs])
            for statement in rows.TAKE_INTENTS:
                connection.execute(statement)

    def save_intent(self, run: RunId, wall_s: float, origin: Origin) -> None:
        """What is about to be started, before any host hears of it."""
        row = (run, wall_s, rows.origin_text(origin))
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO intents VALUES (?, ?, ?)", row)

    def drop_intent(self, run: RunId) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM intents WHERE run = ?", (run,))

    def save_origin(self, run: RunId, origin: Origin) -> None:
        """The run is there already."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE runs SET origin = ? WHERE run = ?", (rows.origin_text(origin), run)
            )

    def save_remark(self, run: RunId, remark: str) -> bool:
        """False when no such run is known."""
        with self._transaction() as connection:
            cursor = connection.execute("UPDATE runs SET remark = ? WHERE run = ?", (remark, run))
            return cursor.rowcount == 1

    def save_incidents(self, incidents: Iterable[Incident]) -> None:
        with self._transaction() as connection:
            connection.executemany(
                store_incidents.SAVE_INCIDENT,
                [store_incidents.incident_row(one) for one in incidents],
            )

    def save_mute(self, mute: Mute) -> bool:
        with self._transaction() as connection:
            connection.execute(store_incidents.SAVE_MUTE, store_incidents.mute_row(mute))
            return True

    def drop_mute(self, mute_id: str) -> bool:
        with self._transaction() as connection:
            connection.execute("DELETE FROM mutes WHERE id = ?", (mute_id,))
            return True

    def claim(self, what: str, wall_s: float, again_after_s: float | None = None) -> bool:
        """True for one caller of all processes, ever or once in `again_after_s`: it is the one that acts."""
        since_s = -1.0 if again_after_s is None else wall_s - again_after_s
        with self._transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO claims (what, at_s) VALUES (?, ?) ON CONFLICT (what) DO UPDATE "
                "SET at_s = excluded.at_s WHERE claims.at_s < ?",
                (what, wall_s, since_s),
            )
            return cursor.rowcount == 1

    def prune(self, wall_s: float) -> None:
        """Forget what is over for very long, by this computer's clock, and the oldest of far too many."""
        age = "coalesce(claimed_s, started_s, seen_s)"
        over = "state IN ('exited', 'lost') AND remark = ''"
        with self._transaction() as connection:
            connection.execute(f"DELETE FROM runs WHERE {over} AND seen_s < ?", (wall_s - KEPT_S,))
            connection.execute(
                f"DELETE FROM runs WHERE {over} AND run IN "
                f"(SELECT run FROM runs ORDER BY {age} DESC LIMIT -1 OFFSET ?)",
                (MOST_RUNS,),
            )
            connection.execute("DELETE FROM incidents WHERE last_s < ?", (wall_s - KEPT_S,))
            connection.execute("DELETE FROM mutes WHERE until_s < ?", (wall_s,))
            connection.execute(
                "UPDATE incidents SET proof = NULL WHERE last_s < ?", (wall_s - PROOF_KEPT_S,)
            )
            connection.execute("DELETE FROM intents WHERE at_s < ?", (wall_s - INTENT_KEPT_S,))
            connection.execute("DELETE FROM claims WHERE at_s < ?", (wall_s - KEPT_S,))
            connection.execute(
                "DELETE FROM incidents WHERE (key, occasion) IN "
                "(SELECT key, occasion FROM incidents ORDER BY last_s DESC LIMIT -1 OFFSET ?)",
                (MOST_INCIDENTS,),
            )

    # -- reading ---------------------------------------------------------------------------

    def newest(self, limit: int = -1) -> list[PastRun]:
        """The newest runs first."""
        age = "coalesce(claimed_s, started_s, seen_s)"
        return self._runs(f"ORDER BY {age} DESC, run LIMIT ?", (limit,))

    def run(self, run: RunId) -> PastRun | None:
        return next(iter(self._runs("WHERE run = ?", (run,))), None)

    def origin(self, run: RunId) -> Origin | None:
        with self._told():
            found = self._connection.execute(
                "SELECT origin FROM runs WHERE run = ?1 AND origin IS NOT NULL "
                "UNION ALL SELECT origin FROM intents WHERE run = ?1 LIMIT 1",
                (run,),
            )
            row = found.fetchone()
        return None if row is None else rows.read_origin(row[0])

    def intents(self) -> frozenset[RunId]:
        """What was about to be started, and of which no host has spoken yet."""
        with self._told():
            found = self._connection.execute("SELECT run FROM intents").fetchall()
        return frozenset(RunId(row[0]) for row in found if isinstance(row[0], str))

    def incidents(self, run: RunId) -> list[Incident]:
        """Of one run, the newest first."""
        return self._incidents("WHERE run = ? ORDER BY last_s DESC LIMIT 200", (run,))

    def newest_incidents(self, limit: int) -> list[Incident]:
        """Of all runs and hosts, the newest first."""
        return self._incidents("ORDER BY last_s DESC LIMIT ?", (limit,))

    def mutes(self) -> list[Mute]:
        """Every rule, over or not, the newest first."""
        with self._told():
            found = self._connection.execute(
                f"SELECT {store_incidents.MUTE_COLUMNS} FROM mutes ORDER BY since_s DESC LIMIT ?",
                (MOST_MUTES,),
            ).fetchall()
        return [one for row in found if (one := store_incidents.read_mute(row)) is not None]

    def _incidents(self, which: str, values: Sequence[object]) -> list[Incident]:
        with self._told():
            query = f"SELECT {store_incidents.INCIDENT_COLUMNS} FROM incidents {which}"
            found = self._connection.execute(query, values).fetchall()
        return [one for row in found if (one := store_incidents.read_incident(row)) is not None]

    def _runs(self, which: str, values: Sequence[object]) -> list[PastRun]:
        with self._told():
            query = f"SELECT {rows.RUN_COLUMNS} FROM runs {which}"
            found = self._connection.execute(query, values).fetchall()
        return [past for row in found if (past := rows.read_run(row)) is not None]

    # -- opening ---------------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        try:
            with locked(self.path.parent):
                return self._opened_alone()
        except (OSError, StorageError, sqlite3.OperationalError) as error:
            if isinstance(error, StorageError) and error.code != StorageError.default_code:
                raise
            if self.path.exists() and (connection := self._opened_to_read()) is not None:
                self.is_read_only, self._why_read_only = True, why_of(error, self.path)
                return connection
            raise

    def _opened_alone(self) -> sqlite3.Connection:
        try:
            return _connected(self.path)
        except _CORRUPT as error:
            if not _is_corrupt(error):
                raise
        self.set_aside = _moved_away(self.path)
        return _connected(self.path)

    def _opened_to_read(self) -> sqlite3.Connection | None:
        """A file system that takes no writing: what is there can still be read, if there is anything."""
        for how in ("mode=ro", "immutable=1"):
            connection = None
            try:
                connection = _connect(f"{self.path.absolute().as_uri()}?{how}", uri=True)
                connection.execute("SELECT count(*) FROM runs").fetchone()
                return connection
            except sqlite3.Error:
                if connection is not None:
                    connection.close()
        return None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if self.is_read_only:
            raise StorageError("history_unwritable", path=tilde(self.path), why=self._why_read_only)
        with self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, OverflowError, ValueError, NotOurs) as error:
            why = why_of(error, self.path)
            raise StorageError("history_unwritable", path=tilde(self.path), why=why) from error


def _connected(path: Path) -> sqlite3.Connection:
    """A connection that may write to a file of our layout, 0600 from its first byte on."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    connection = _connect(str(path))
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        migrate(connection, tilde(path))
        connection.execute("SELECT run FROM runs LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        name, timeout=BUSY_LIMIT_MS / 1000, isolation_level=None, uri=uri, check_same_thread=False
    )


def _is_corrupt(error: Exception) -> bool:
    return isinstance(error, NotOurs) or any(mark in str(error) for mark in _MARKS)


def _moved_away(path: Path) -> Path:
    """The broken file under another name, its journals with it."""
    number = 1
    while (target := path.with_name(f"{path.name}.broken-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm"):
        with suppress(OSError):
            os.replace(f"{path}{suffix}", f"{target}{suffix}")
    os.replace(path, target)
    return target


def is_broken(error: StorageError) -> bool:
    """Whether the file itself went bad while it was open: opening it anew sets it aside."""
    return any(mark in str(error.facts.get("why")) for mark in _MARKS)
