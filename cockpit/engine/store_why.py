"""Why a database file is not read or written, in words for a sentence: SQLite calls a full disk an I/O error."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path

from cockpit.errors import StorageError

HARDLY_ANY_BYTES = 64 * 1024
"""SQLite's own side file takes 32 KiB."""


def why_of(error: Exception, path: Path) -> str:
    if isinstance(error, StorageError):
        return str(error.facts.get("why"))
    if isinstance(error, sqlite3.OperationalError) and _is_full(path.parent):
        return os.strerror(errno.ENOSPC)
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < HARDLY_ANY_BYTES
    except OSError:
        return False
