"""`cockpit ps`: every run on every host, whoever started it."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Sequence

from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text
from cockpit.errors import CockpitError, ExitCode
from cockpit.headless.run_report import words_for
from cockpit.headless.session import chosen_hosts, engine_for, runs_listed

RECENT_S = 24 * 3600.0
"""Ended runs older than this are shown with --all only."""


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_ps(args))


async def _ps(args: argparse.Namespace) -> int:
    home = Home.from_environ()
    async with engine_for(home, chosen_hosts(home, args.host)) as engine:
        failures = await runs_listed(engine, list(engine.hosts))
        now_s = engine.wall_s()
        views = [view for view in engine.runs.all() if args.all or _is_recent(view, now_s)]
    if args.json:
        for view in views:
            print(json.dumps(run_fields(view), ensure_ascii=False))
    else:
        _print_table(views, now_s)
    _tell(failures)
    return ExitCode.UNAVAILABLE if failures and len(failures) == len(engine.hosts) else ExitCode.OK


def _print_table(views: Sequence[RunView], now_s: float) -> None:
    if views:
        print(_table(views, now_s))
    else:
        print(words_for("no_runs", {}), file=sys.stderr)


def _is_recent(view: RunView, now_s: float) -> bool:
    return not view.ended or (view.ended_s or now_s) > now_s - RECENT_S


def run_fields(view: RunView) -> dict[str, object]:
    return {
        "run": view.run,
        "name": view.profile,
        "host": view.host,
        "state": view.state,
        "code": view.code,
        "signal": view.signal,
        "started_s": view.started_s,
        "ended_s": view.ended_s,
        "gpus": list(view.gpus),
        "step": view.progress.step,
        "degraded": view.degraded,
    }


def _table(views: Sequence[RunView], now_s: float) -> str:
    rows = [("RUN", "HOST", "STATE", "GPUS", "SINCE", "COMMAND")]
    rows += [_row(view, now_s) for view in views]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]])
        for row in rows
    )


def _row(view: RunView, now_s: float) -> tuple[str, str, str, str, str, str]:
    state: str = view.state
    if view.state == "exited":
        state = f"exited {view.code}" if view.signal is None else f"signal {view.signal}"
    elif view.degraded:
        state = f"{view.state} ({view.degraded})"
    since_s = view.ended_s or view.started_s
    since = "" if since_s is None else f"{duration_text(max(0.0, now_s - since_s))} ago"
    cards = ",".join(map(str, view.gpus))
    return view.run, view.host, state, cards, since, safe_line(shlex.join(view.command))[:60]


def _tell(failures: dict[HostName, CockpitError]) -> None:
    for host, failure in failures.items():
        print(f"{host}: {words_for(failure.code, failure.facts)}", file=sys.stderr)
