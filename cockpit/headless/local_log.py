"""The copy of a run's log on this computer, for when its host does not have it any more, or cannot be asked."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from cockpit.config.paths import Home
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_ids import is_run_id
from cockpit.engine.masks import masker_of
from cockpit.engine.mirror import Mirror
from cockpit.headless.log_cursor import Bytes, Gap, LogCursor, Missing
from cockpit.headless.run_report import RunReport, words_for

PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class LocalCopy:
    run: RunId
    host: HostName
    path: Path


def local_copy(home: Home, wanted: str) -> LocalCopy | None:
    """By id, a unique prefix, or a profile's name (its newest run)."""
    if not is_run_id(wanted):
        return None
    copies = [
        LocalCopy(RunId(path.parent.name), HostName(path.parent.parent.name), path)
        for path in home.root.glob(f"runs/*/{wanted}*/log")
    ]
    exact = [copy for copy in copies if copy.run == wanted]
    named = [copy for copy in copies if copy.run.rpartition("-")[0] == wanted]
    if exact:
        return exact[0]
    if named:
        return max(named, key=lambda copy: os.stat(copy.path).st_mtime)
    return copies[0] if len(copies) == 1 else None


async def print_copy(copy: LocalCopy, report: RunReport, offset: int) -> None:
    masker = await masker_of(copy.path.parent, "")
    report.about(copy.run, copy.host, masker)
    await report.jump(offset)
    mirror, masked = Mirror(copy.path), masker.stream()
    cursor: LogCursor[None] = LogCursor(mirror, offset)
    try:
        while (item := cursor.next(PIECE_BYTES)) is not None:
            if isinstance(item, Bytes):
                await report.output(masked.feed(item.data), time.time())
            elif isinstance(item, Gap | Missing):
                await report.output(masked.finish(), time.time())
                await report.jump(item.end)
                await report.say(words_for("log_hole", {"run": copy.run}))
        await report.output(masked.finish(), time.time())
        await report.finish(time.time())
    finally:
        cursor.close()
        mirror.close()
