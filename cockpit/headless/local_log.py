"""The copy of a run's log on this computer, for when its host does not have it any more, or cannot be asked."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from cockpit.config.paths import Home
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_ids import is_run_id
from cockpit.domain.runs import RunView
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


@dataclass(frozen=True, slots=True)
class Printed:
    """What a copy held from an offset on."""

    size: int
    missing: tuple[Missing, ...]
    """What the host had, or has, and the copy does not. A part that the host itself dropped is none."""


async def say_what_is_missing(
    printed: Printed, copy: LocalCopy, view: RunView | None, report: RunReport
) -> bool:
    """Whether anything is; `view` is the run as its host was last heard of it."""
    facts: dict[str, object] = {"run": copy.run, "start": printed.size}
    lacks = [("log_copy_gap", {"start": each.start, "end": each.end}) for each in printed.missing]
    size = None if view is None else view.log_bytes
    if size is not None and size > printed.size:
        lacks.append(("log_copy_short", {"start": printed.size, "end": size}))
    if view is not None and not view.ended:
        lacks.append(("log_copy_open", {}))
    elif size is None:
        lacks.append(("log_copy_unsure", {}))
    for code, more in lacks:
        await report.say(words_for(code, {**facts, **more}))
    if not lacks:
        await report.say(words_for("log_copy_whole", facts))
    return bool(lacks)


async def print_copy(copy: LocalCopy, report: RunReport, offset: int) -> Printed:
    masker = await masker_of(copy.path.parent, "")
    report.about(copy.run, copy.host, masker)
    mirror, masked = Mirror(copy.path), masker.stream()
    offset = offset if offset >= 0 else max(0, mirror.size + offset)
    await report.jump(offset)
    cursor: LogCursor[None] = LogCursor(mirror, offset)
    missing: list[Missing] = []
    try:
        while (item := cursor.next(PIECE_BYTES)) is not None:
            if isinstance(item, Bytes):
                await report.output(masked.feed(item.data), time.time())
            elif isinstance(item, Gap | Missing):
                await report.output(masked.finish(), time.time())
                await report.jump(item.end)
                await report.say(words_for("log_hole", {"run": copy.run}))
                if isinstance(item, Missing):
                    missing.append(item)
        await report.output(masked.finish(), time.time())
        await report.finish(time.time())
        return Printed(mirror.size, tuple(missing))
    finally:
        cursor.close()
        mirror.close()
