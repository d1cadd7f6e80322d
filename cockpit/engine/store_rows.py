"""Between values and the rows of cockpit.db. What is read back is checked as if a stranger had written it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Final, TypeVar, get_args

from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import Origin, PastRun
from cockpit.domain.run_ids import is_run_id
from cockpit.domain.runs import Progress, RunState, RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import LATEST_S

T = TypeVar("T")

MOST_CHARS: Final = 4096
MOST_ITEMS: Final = 256
MOST_TEXT: Final = 512 * 1024
_RUN: Final = (
    "run", "host", "profile", "kind", "state", "code", "signal", "reason", "ended_by", "claimed_s",
    "started_s", "ended_s", "seen_s", "log_bytes", "degraded", "gpus", "leftover_pids", "command",
    "tags", "notes", "progress", "price_per_h", "currency", "cost", "remark",
    "attempt",
)  # fmt: skip
RUN_COLUMNS: Final = ", ".join((*_RUN, "origin IS NOT NULL"))
_PRICE: Final = ("price_per_h", "currency")
"""What the host cost when the run was first seen: a later price is another bill's."""
_KEPT: Final = ("progress", "claimed_s", "started_s", *_PRICE)
_FIRST: Final = ("command", "notes")
"""As they were when the run was started, secrets masked by who knew them."""
_FINAL: Final = "('exited', 'lost')"


def _set(column: str) -> str:
    if column in _PRICE:
        return f"{column} = coalesce(runs.{column}, excluded.{column})"
    if column in _FIRST:
        return (
            f"{column} = CASE runs.{column} WHEN '[]' THEN excluded.{column} ELSE runs.{column} END"
        )
    if column in _KEPT:
        return f"{column} = coalesce(excluded.{column}, runs.{column})"
    return f"{column} = excluded.{column}"


SAVE_RUN: Final = (
    f"INSERT INTO runs ({', '.join(_RUN)}) VALUES ({', '.join('?' * len(_RUN))}) "
    "ON CONFLICT (run) DO UPDATE SET "
    + ", ".join(_set(column) for column in _RUN if column not in ("run", "remark"))
    + " WHERE excluded.seen_s >= runs.seen_s AND (excluded.attempt > runs.attempt OR NOT ("
    "(runs.state = 'exited' AND excluded.state != 'exited')"
    f" OR (runs.state IN {_FINAL} AND excluded.state NOT IN {_FINAL})))"
)

TAKE_INTENTS: Final = (
    "UPDATE runs SET origin = (SELECT origin FROM intents WHERE intents.run = runs.run) "
    "WHERE origin IS NULL AND run IN (SELECT run FROM intents)",
    "DELETE FROM intents WHERE run IN (SELECT run FROM runs)",
)
"""A host spoke of what was about to be started: it is a run, and known from here."""


def run_row(past: PastRun) -> tuple[object, ...]:
    view = past.view
    return (
        view.run, cut(view.host), cut(view.profile), cut(view.kind), view.state, view.code,
        view.signal, cut(view.reason), view.by, view.claimed_s, view.started_s, view.ended_s,
        past.seen_s, view.log_bytes, cut(view.degraded), _items(view.gpus),
        _items(view.leftover_pids), _items(view.command), _items(view.tags), _items(view.notes),
        None if view.progress == Progress() else json.dumps(asdict(view.progress)),
        past.price_per_h, past.currency, _cost(past), cut(view.remark), view.attempt,
    )  # fmt: skip


def _cost(past: PastRun) -> float | None:
    view = past.view
    if past.price_per_h is None or view.started_s is None or view.ended_s is None:
        return None
    return past.price_per_h * max(0.0, view.ended_s - view.started_s) / 3600


def read_run(row: Sequence[object]) -> PastRun | None:
    """None for a row that is no run."""
    found: dict[str, Any] = dict(zip((*_RUN, "has_origin"), row, strict=True))
    run, state, seen_s = found["run"], found["state"], moment(found["seen_s"])
    if not isinstance(run, str) or not is_run_id(run) or state not in get_args(RunState):
        return None
    view = RunView(
        run=RunId(run),
        profile=line_of(found["profile"]) or "",
        kind=line_of(found["kind"]) or "",
        host=HostName(line_of(found["host"]) or "?"),
        state=state,
        gpus=tuple(whole(item) or 0 for item in _list(found["gpus"])),
        code=whole(found["code"]),
        signal=whole(found["signal"]),
        reason=line_of(found["reason"]),
        by=found["ended_by"] if found["ended_by"] in ("job", "cockpit") else None,
        claimed_s=moment(found["claimed_s"]),
        started_s=moment(found["started_s"]),
        ended_s=moment(found["ended_s"]),
        log_bytes=whole(found["log_bytes"]),
        degraded=line_of(found["degraded"]),
        attempt=whole(found["attempt"]) or 1,
        leftover_pids=tuple(whole(item) or 0 for item in _list(found["leftover_pids"])),
        progress=_progress(found["progress"]),
        command=_lines(found["command"]),
        tags=_lines(found["tags"]),
        notes=_pairs(found["notes"]),
        remark=line_of(found["remark"]) or "",
    )
    return PastRun(
        view,
        seen_s or 0.0,
        number(found["price_per_h"]),
        line_of(found["currency"]),
        has_origin=bool(found["has_origin"]),
    )


def origin_text(origin: Origin) -> str:
    return json.dumps({each.name: getattr(origin, each.name) for each in fields(origin)})


def read_origin(text: object) -> Origin | None:
    value = parsed(text)
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return None
    gpus = value.get("gpus")
    return Origin(
        text=value["text"],
        name=line_of(value.get("name")) or "profile",
        file=line_of(value.get("file")),
        base_dir=line_of(value.get("base_dir")),
        overrides=tuple(one for one in value.get("overrides") or () if isinstance(one, str)),
        hosts=tuple(one for one in value.get("hosts") or () if isinstance(one, str)),
        gpus=tuple(whole(one) or 0 for one in gpus) if isinstance(gpus, list) else None,
        sha256=line_of(value.get("sha256")) or "",
        notified=value.get("notified") is True,
        masked=value.get("masked") is True,
    )


def cut(text: str | None) -> str | None:
    """Short enough, and such as SQLite takes: half a surrogate pair is no text."""
    return None if text is None else text[:MOST_CHARS].encode("utf-8", "replace").decode()


def _items(items: Sequence[object]) -> str:
    kept = [cut(one) if isinstance(one, str) else one for one in items[:MOST_ITEMS]]
    return json.dumps(kept)


def parsed(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) and len(text) <= MOST_TEXT else None
    except (ValueError, RecursionError):
        return None


def _list(text: object) -> list[object]:
    value = parsed(text)
    return value[:MOST_ITEMS] if isinstance(value, list) else []


def _lines(text: object) -> tuple[str, ...]:
    return tuple(safe_line(item) for item in _list(text) if isinstance(item, str))


def _pairs(text: object) -> tuple[tuple[str, str], ...]:
    pairs = [item for item in _list(text) if isinstance(item, list) and len(item) == 2]
    return tuple(
        (safe_line(key), safe_line(value))
        for key, value in pairs
        if isinstance(key, str) and isinstance(value, str)
    )


def _progress(text: object) -> Progress:
    value = parsed(text)
    told: Mapping[str, object] = value if isinstance(value, dict) else {}
    wanted: dict[str, Callable[[object], object]] = {
        "step": whole, "total_steps": whole, "epoch": number, "loss": number,
        "step_s": number, "tokens_s": number, "eta_s": number,
    }  # fmt: skip
    return Progress(**{name: read(told.get(name)) for name, read in wanted.items()})  # type: ignore[arg-type]


def line_of(value: object) -> str | None:
    return safe_line(value) if isinstance(value, str) else None


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e300 else None


def moment(value: object) -> float | None:
    """A time since the epoch that a calendar has."""
    known = number(value)
    return known if known is not None and 0.0 <= known < LATEST_S else None
