"""Between what happens and a recording's frames: the rows of cockpit.db with their JSON opened up."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import PastRun
from cockpit.domain.recording import text_of
from cockpit.domain.run_events import RunEvent, decode_events
from cockpit.domain.runs import RunView
from cockpit.engine.fleet import HostState
from cockpit.engine.recording_more import more_of, with_more
from cockpit.engine.store_incidents import INCIDENT_COLUMNS, incident_row, read_incident
from cockpit.engine.store_rows import RUN_COLUMNS, read_run, run_row
from cockpit.errors import Fact

_INCIDENT: Final = tuple(INCIDENT_COLUMNS.split(", "))
_INCIDENT_JSON: Final = ("facts", "detail", "proof")
_RUN: Final = tuple(RUN_COLUMNS.split(", "))[:-1]
_RUN_JSON: Final = ("gpus", "leftover_pids", "command", "tags", "notes", "progress")


def line_of(at_s: float, kind: str, host: str | None, fields: Mapping[str, object]) -> bytes:
    """One frame, without its newline."""
    told = {"t": round(at_s, 3), "k": kind, "host": host, **fields}
    return json.dumps(told, separators=(",", ":"), default=str).encode()


def link_fields(state: HostState, now_s: float) -> dict[str, object]:
    retry_s = None if state.retry_at_s is None else round(state.retry_at_s - now_s, 1)
    return {
        "state": state.link,
        "code": state.code,
        "why": {name: value for name, value in state.why.items() if value is not None},
        "address": state.address,
        "latency_s": state.latency_s,
        "key_type": state.key_type,
        "fingerprint": state.fingerprint,
        "known_fingerprint": state.known_fingerprint,
        "retry_in_s": retry_s,
    }


def incident_fields(one: Incident) -> dict[str, object]:
    row = dict(zip(_INCIDENT, incident_row(one)[1:], strict=True))
    return {"incident": _opened(row, _INCIDENT_JSON), "recovered": one.finding.recovered}


def run_fields(view: RunView) -> dict[str, object]:
    row = dict(zip(_RUN, run_row(PastRun(view, 0.0)), strict=True))
    return {"run": _opened(row, _RUN_JSON), "more": more_of(view)}


def note_fields(run: RunId, event: RunEvent) -> dict[str, object]:
    told = {**event.facts, "n": event.number, "event": event.name, "at_s": event.at_s}
    return {"run": run, "note": told}


def log_fields(run: RunId, offset: int, number: int, data: bytes) -> dict[str, object]:
    """Bytes of a log: as text where they are text."""
    told: dict[str, object] = {"run": run, "offset": offset, "number": number}
    try:
        return {**told, "text": data.decode()}
    except UnicodeDecodeError:
        return {**told, "b64": base64.b64encode(data).decode()}


def log_data(told: Mapping[str, object]) -> bytes:
    """What `log_fields` was given; nothing when it is neither text nor base64."""
    text, coded = told.get("text"), told.get("b64")
    if isinstance(text, str):
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode(coded, validate=True) if isinstance(coded, str) else b""
    except (binascii.Error, ValueError):
        return b""


def read_incident_of(told: Mapping[str, object]) -> Incident | None:
    found = told.get("incident")
    if not isinstance(found, dict):
        return None
    return read_incident([_closed(found, name, _INCIDENT_JSON) for name in _INCIDENT])


def read_run_of(told: Mapping[str, object], at_s: float = 0.0) -> RunView | None:
    """`at_s` is when it was recorded."""
    found = told.get("run")
    if not isinstance(found, dict):
        return None
    past = read_run([*(_closed(found, name, _RUN_JSON) for name in _RUN), 0])
    return None if past is None else with_more(past.view, told.get("more"), at_s)


def read_note(told: Mapping[str, object]) -> RunEvent | None:
    return next(iter(decode_events([told.get("note")])), None)


def read_why(told: object) -> dict[str, Fact]:
    """The facts of a sentence, harmless."""
    found: dict[str, Fact] = {}
    for name, value in list(told.items())[:24] if isinstance(told, dict) else ():
        if isinstance(value, str):
            found[str(name)[:40]] = text_of(value, 400)
        elif isinstance(value, bool | int | float) and abs(value) < 1e15:
            found[str(name)[:40]] = value
        elif isinstance(value, list):
            words = (text_of(one, 200) for one in value[:16])
            found[str(name)[:40]] = tuple(word for word in words if word is not None)
    return found


def as_run(value: object) -> RunId | None:
    text = text_of(value, 128)
    return None if text is None else RunId(text)


def as_host(value: object) -> HostName | None:
    text = text_of(value, 255)
    return None if text is None else HostName(text)


def _opened(row: dict[str, Any], nested: tuple[str, ...]) -> dict[str, object]:
    for name in nested:
        if isinstance(row[name], str):
            row[name] = json.loads(row[name])
    return row


def _closed(found: Mapping[str, object], name: str, nested: tuple[str, ...]) -> object:
    value = found.get(name)
    if name in nested:
        return None if value is None else json.dumps(value)
    return value if isinstance(value, str | int | float) else None
