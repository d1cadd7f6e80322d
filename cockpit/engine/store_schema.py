"""cockpit.db as it is laid out, and the steps from each older layout to it."""

from __future__ import annotations

import sqlite3
from typing import Final

from cockpit.errors import StorageError

APPLICATION_ID: Final = 0x636F636B
"""Marks the file as ours."""

_V1: Final = (
    """CREATE TABLE runs (
        run TEXT PRIMARY KEY, host TEXT NOT NULL, profile TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL, code INTEGER, signal INTEGER, reason TEXT, ended_by TEXT,
        claimed_s REAL, started_s REAL, ended_s REAL, seen_s REAL NOT NULL,
        log_bytes INTEGER, degraded TEXT,
        gpus TEXT NOT NULL, leftover_pids TEXT NOT NULL, command TEXT NOT NULL, tags TEXT NOT NULL,
        notes TEXT NOT NULL, progress TEXT,
        price_per_h REAL, currency TEXT, cost REAL,
        origin TEXT, remark TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID""",
    "CREATE INDEX runs_by_age ON runs (coalesce(claimed_s, started_s, seen_s))",
    """CREATE TABLE incidents (
        key TEXT NOT NULL, occasion REAL NOT NULL, opened_s REAL NOT NULL, last_s REAL NOT NULL, run TEXT, host TEXT,
        gpu INTEGER, profile TEXT, family TEXT NOT NULL, signature TEXT NOT NULL,
        severity TEXT NOT NULL, state TEXT NOT NULL, state_why TEXT NOT NULL, count INTEGER NOT NULL,
        facts TEXT NOT NULL, line INTEGER, offset INTEGER, text TEXT NOT NULL,
        PRIMARY KEY (key, occasion)
    ) WITHOUT ROWID""",
    "CREATE INDEX incidents_by_run ON incidents (run)",
    "CREATE INDEX incidents_by_age ON incidents (last_s)",
    "CREATE TABLE claims (what TEXT PRIMARY KEY, at_s REAL NOT NULL) WITHOUT ROWID",
)
_V2: Final = ("ALTER TABLE runs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1",)
_V3: Final = (
    "ALTER TABLE incidents ADD COLUMN detail TEXT",
    "ALTER TABLE incidents ADD COLUMN proof TEXT",
    """CREATE TABLE mutes (
        id TEXT PRIMARY KEY, family TEXT NOT NULL, signature TEXT NOT NULL, severity TEXT NOT NULL,
        since_s REAL NOT NULL, until_s REAL, host TEXT, gpu INTEGER, run TEXT, why TEXT NOT NULL
    ) WITHOUT ROWID""",
)
_V4: Final = (
    "CREATE TABLE intents (run TEXT PRIMARY KEY, at_s REAL NOT NULL, origin TEXT NOT NULL) WITHOUT ROWID",
)
"""What is about to be started here: no run until its host has spoken of it."""
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (_V1, _V2, _V3, _V4)
"""The statements that lead from each version to the next, the first of them from an empty file."""
VERSION: Final = len(MIGRATIONS)


class NotOurs(Exception):
    """A database of somebody else stands in our place."""


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the layout up to date, or raise StorageError for one of a newer cockpit, NotOurs for a stranger's.

    Several processes may do this at once: the version is read again inside the transaction.
    """
    if _version(connection, path) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statements in MIGRATIONS[_version(connection, path) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: str) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (version or owner or tables):
        raise NotOurs
    if version > VERSION:
        raise StorageError("history_newer", path=path)
    return version
