"""The list of runs as one client gets it: everything once, then what changed. A host keeps many that are over."""

import json
import os
import time

from supervisor_files import Refused  # type: ignore[import-not-found]
from supervisor_run import SPOILT, Run  # type: ignore[import-not-found]
from supervisor_store import Store  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

ANSWER_BYTES = 200 * 1024


class RunList:
    """Remembers what its client knows."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._told: "dict[str, str]" = {}
        self._over: "dict[str, int]" = {}
        """Folders (and their inodes) of runs that cannot change any more."""

    def page(self, fresh: bool) -> "Json":
        """What the client does not know yet, the newest first; `more`: ask again."""
        if fresh:
            self._told.clear()
        found = self._store.newest()
        gone = [path for path in self._told if path not in found]
        for path in gone:
            del self._told[path]
        records: "list[Json]" = []
        size = 0
        for path, inode in found.items():
            if path in self._told and self._over.get(path) == inode:
                continue
            record = self._changed(path, inode)
            if record is not None:
                records.append(record)
                size += len(self._told[path])
            if size > ANSWER_BYTES:
                break
        return {
            "now_s": time.time(),
            "runs": records,
            "gone": [os.path.basename(path) for path in gone],
            "more": size > ANSWER_BYTES,
        }

    def _changed(self, path: str, inode: int) -> "Json | None":
        try:
            with Run(path, self._store.host) as run:
                record: "Json" = run.describe()
        except (OSError, Refused) + SPOILT:
            return None  # taken back meanwhile, or not as ours are
        if is_over(record):
            self._over[path] = inode
        else:
            self._over.pop(path, None)
        text = json.dumps(dict(record, now_s=0, heard_s=0), sort_keys=True)
        if self._told.get(path) == text:
            return None
        self._told[path] = text
        return record


def is_over(record: "Json") -> bool:
    """Whether nothing about it can change: what is left over may still end."""
    if record["state"] == "lost":
        return record.get("reason") != "bad_record" and record.get("restart_on") != "on-lost"
    return record["state"] == "exited" and not record["leftovers"]
