"""Between incidents, mutes and their rows in cockpit.db. What is read is checked as if a stranger had written it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, get_args

from cockpit.domain.incident_proof import (
    MOST_HOLDERS,
    MOST_POINTS,
    MOST_STEPS,
    Curve,
    CurveKind,
    Holder,
    Proof,
    Step,
)
from cockpit.domain.incidents import (
    Evidence,
    Family,
    Finding,
    Incident,
    IncidentState,
    Remedy,
    Severity,
)
from cockpit.domain.models import HostName, RunId
from cockpit.domain.mutes import Mute
from cockpit.domain.text import safe_line
from cockpit.engine.store_rows import cut, line_of, moment, number, parsed, whole

MOST_LINES: Final = 24
_INCIDENT: Final = (
    "key", "opened_s", "last_s", "run", "host", "gpu", "profile", "family", "signature", "severity",
    "state", "state_why", "count", "facts", "line", "offset", "text", "detail", "proof",
)  # fmt: skip
_MUTE: Final = (
    "id", "family", "signature", "severity", "since_s", "until_s", "host", "gpu", "run", "why",
)  # fmt: skip
INCIDENT_COLUMNS: Final = ", ".join(_INCIDENT)
MUTE_COLUMNS: Final = ", ".join(_MUTE)


def _set(column: str) -> str:
    """A cockpit that only read the log later has no proof, and takes none away."""
    if column == "proof":
        return "proof = coalesce(excluded.proof, incidents.proof)"
    return f"{column} = excluded.{column}"


SAVE_INCIDENT: Final = (
    f"INSERT INTO incidents (occasion, {INCIDENT_COLUMNS})"
    f" VALUES (?, {', '.join('?' * len(_INCIDENT))}) ON CONFLICT (key, occasion) DO UPDATE SET "
    + ", ".join(_set(column) for column in _INCIDENT[2:])
    + " WHERE excluded.last_s >= incidents.last_s"
)
SAVE_MUTE: Final = (
    f"INSERT OR REPLACE INTO mutes ({MUTE_COLUMNS}) VALUES ({', '.join('?' * len(_MUTE))})"
)


def incident_row(one: Incident) -> tuple[object, ...]:
    """One of a run is the same for every cockpit that reads its log; a host has one each time it opens."""
    finding = one.finding
    proof = None if one.proof is None else _proof_text(one.proof)
    return (
        0.0 if one.run is not None else one.opened_s,
        cut(one.key), one.opened_s, one.last_s, one.run, cut(one.host), one.gpu,
        cut(one.profile), one.family,
        cut(finding.signature), one.severity, one.state, cut(one.state_why), one.count,
        json.dumps(dict(finding.facts)), finding.line, finding.offset, cut(finding.text),
        json.dumps(_detail(one)), proof,
    )  # fmt: skip


def _proof_text(proof: Proof) -> str:
    table = asdict(replace(proof, machine=dict(proof.machine)))
    if proof.curve is not None:  # a tenth of a MiB is more than anybody sees
        values = [None if one is None else round(one, 1) for one in proof.curve.values]
        table["curve"]["values"] = values
    return json.dumps(table, separators=(",", ":"))


def _detail(one: Incident) -> dict[str, object]:
    return {
        "cause": one.finding.cause,
        "rank": one.finding.rank,
        "recording": cut(one.recording),
        "evidence": [
            [each.at_s, cut(each.source), cut(each.text), each.offset, each.line]
            for each in one.evidence[:MOST_LINES]
        ],
        "remedies": [
            [each.code, dict(each.facts), None if each.patch is None else dict(each.patch)]
            for each in one.finding.remedies[:MOST_LINES]
        ],
        "steps": [[each.at_s, each.what, cut(each.why)] for each in one.steps],
    }


def read_incident(row: Sequence[object]) -> Incident | None:
    found: dict[str, Any] = dict(zip(_INCIDENT, row, strict=True))
    known = (
        found["family"] in get_args(Family)
        and found["severity"] in get_args(Severity)
        and found["state"] in get_args(IncidentState)
    )
    if not known:
        return None
    detail = _table(parsed(found["detail"]))
    finding = Finding(
        family=found["family"],
        signature=line_of(found["signature"]) or "",
        severity=found["severity"],
        facts=_facts(parsed(found["facts"])),
        line=whole(found["line"]),
        offset=whole(found["offset"]),
        text=line_of(found["text"]) or "",
        cause=line_of(detail.get("cause")) or "",
        remedies=_remedies(detail.get("remedies")),
        rank=whole(detail.get("rank")),
    )
    host, run = line_of(found["host"]), line_of(found["run"])
    return Incident(
        key=line_of(found["key"]) or "",
        finding=finding,
        opened_s=moment(found["opened_s"]) or 0.0,
        last_s=moment(found["last_s"]) or 0.0,
        count=whole(found["count"]) or 1,
        host=None if host is None else HostName(host),
        gpu=whole(found["gpu"]),
        run=None if run is None else RunId(run),
        profile=line_of(found["profile"]),
        evidence=_evidence(detail.get("evidence")),
        state=found["state"],
        state_why=line_of(found["state_why"]) or "",
        steps=_steps(detail.get("steps")),
        proof=_proof(parsed(found["proof"])),
        recording=line_of(detail.get("recording")) or "",
    )


def mute_row(one: Mute) -> tuple[object, ...]:
    return (
        cut(one.id), one.family, cut(one.signature), one.severity, one.since_s, one.until_s,
        cut(one.host), one.gpu, one.run, cut(one.why),
    )  # fmt: skip


def read_mute(row: Sequence[object]) -> Mute | None:
    found: dict[str, Any] = dict(zip(_MUTE, row, strict=True))
    if found["family"] not in get_args(Family) or found["severity"] not in get_args(Severity):
        return None
    host, run = line_of(found["host"]), line_of(found["run"])
    return Mute(
        family=found["family"],
        signature=line_of(found["signature"]) or "",
        severity=found["severity"],
        since_s=moment(found["since_s"]) or 0.0,
        until_s=moment(found["until_s"]),
        host=None if host is None else HostName(host),
        gpu=whole(found["gpu"]),
        run=None if run is None else RunId(run),
        why=line_of(found["why"]) or "",
    )


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _rows(value: object, cells: int) -> list[list[Any]]:
    rows = value if isinstance(value, list) else []
    return [row for row in rows[:MOST_LINES] if isinstance(row, list) and len(row) == cells]


def _facts(value: object) -> dict[str, int | float | str | bool]:
    return {
        safe_line(name): safe_line(fact) if isinstance(fact, str) else fact
        for name, fact in _table(value).items()
        if isinstance(fact, int | float | str)
    }


def _evidence(value: object) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            moment(at_s), line_of(source) or "", line_of(text) or "", whole(offset), whole(line)
        )
        for at_s, source, text, offset, line in _rows(value, 5)
    )


def _remedies(value: object) -> tuple[Remedy, ...]:
    return tuple(
        Remedy(line_of(code) or "", _facts(facts), patch if isinstance(patch, dict) else None)
        for code, facts, patch in _rows(value, 3)
    )


def _steps(value: object) -> tuple[Step, ...]:
    found = [
        Step(moment(at_s) or 0.0, line_of(what) or "", line_of(why) or "")
        for at_s, what, why in _rows(value, 3)
    ]
    return tuple(found[:MOST_STEPS])


def _proof(value: object) -> Proof | None:
    if not isinstance(value, dict):
        return None
    company = value.get("company")
    machine = {
        safe_line(name): safe_line(text)
        for name, text in list(_table(value.get("machine")).items())[:MOST_LINES]
        if isinstance(text, str)
    }
    holders = None if not isinstance(company, list) else _holders(company)
    return Proof(_curve(_table(value.get("curve"))), holders, machine)


def _holders(company: Sequence[object]) -> tuple[Holder, ...]:
    tables = [_table(one) for one in company[:MOST_HOLDERS]]
    return tuple(
        Holder(
            whole(one.get("pid")) or 0,
            line_of(one.get("name")) or "",
            line_of(one.get("user")) or "",
            whole(one.get("used_mib")),
            line_of(one.get("run")) or "",
        )
        for one in tables
    )


def _curve(found: Mapping[str, object]) -> Curve | None:
    values, step_s = found.get("values"), number(found.get("step_s"))
    if found.get("kind") not in get_args(CurveKind) or not isinstance(values, list) or not step_s:
        return None
    return Curve(
        found["kind"],  # type: ignore[arg-type]
        step_s,
        moment(found.get("until_s")) or 0.0,
        tuple(number(one) for one in values[:MOST_POINTS]),
        number(found.get("top")),
        line_of(found.get("name")) or "",
        whole(found.get("gpu")),
    )
