"""`cockpit ps`: every run on every host, whoever started it; with --all also those that only the history knows."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cockpit.config.hosts import HostSpec, host_unknown
from cockpit.config.paths import Home
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import PastRun, age_s
from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text
from cockpit.engine.host_list import hosts_to_watch
from cockpit.errors import CockpitError, ExitCode
from cockpit.headless.past import remembered
from cockpit.headless.run_report import words_for
from cockpit.headless.session import chosen_hosts, engine_for, runs_listed
from cockpit.headless.steps import with_steps

RECENT_S = 24 * 3600.0
"""Ended runs older than this are shown with --all only."""


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_ps(args))


async def _ps(args: argparse.Namespace) -> int:
    home = Home.from_environ()
    past = await remembered(home) if args.all else ()
    hosts = _hosts(home, args.host, past)
    async with engine_for(home, hosts) as engine:
        failures = await runs_listed(engine, list(engine.hosts))
        now_s = engine.wall_s()
        views = [view for view in engine.runs.all() if args.all or _is_recent(view, now_s)]
        views = await with_steps(engine, home, views)
    if args.all:
        views = _with_remembered(views, past, hosts, failures, args.host)
    if args.json:
        for view in views:
            print(json.dumps(run_fields(view), ensure_ascii=False))
    else:
        _print_table(views, now_s, {one.run: one for one in past})
    _tell(failures)
    return ExitCode.UNAVAILABLE if failures and len(failures) == len(hosts) else ExitCode.OK


def _hosts(
    home: Home, names: Sequence[str], past: Sequence[PastRun]
) -> Mapping[HostName, HostSpec]:
    """The hosts to ask: one that is gone from hosts.toml has its history still. Raises UsageError."""
    if not past:
        return chosen_hosts(home, names)
    hosts, gone = hosts_to_watch(home), {one.host for one in past}
    for name in names:
        if name not in hosts and name not in gone:
            raise host_unknown(name, hosts)
    wanted = [HostName(name) for name in names] or list(hosts)
    return {name: hosts[name] for name in wanted if name in hosts}


def _with_remembered(
    views: Sequence[RunView],
    past: Sequence[PastRun],
    hosts: Mapping[HostName, HostSpec],
    failures: Mapping[HostName, CockpitError],
    names: Sequence[str],
) -> list[RunView]:
    """What hosts say now, then what the history says of all others: the last known of a host that is silent."""
    told = {view.run: view for view in views}
    rest = [one for one in past if one.run not in told and (not names or one.host in names)]
    found = [_last_known(one, one.host in hosts and one.host not in failures) for one in rest]
    return sorted([*views, *found], key=lambda view: -(view.claimed_s or view.started_s or 0.0))


def _last_known(past: PastRun, was_asked: bool) -> RunView:
    if past.view.ended:
        return past.view
    if was_asked:  # its host answered, and does not have it any more
        return replace(past.view, state="lost", reason="run_dir_gone", degraded=None)
    return replace(past.view, state="unreachable", reason="unreachable")


def _print_table(views: Sequence[RunView], now_s: float, past: Mapping[RunId, PastRun]) -> None:
    if views:
        print(_table(views, now_s, past))
    else:
        print(words_for("no_runs", {}), file=sys.stderr)


def _is_recent(view: RunView, now_s: float) -> bool:
    return view.ended_s is None or not view.ended or view.here_s(view.ended_s) > now_s - RECENT_S


def run_fields(view: RunView) -> dict[str, object]:
    """A run as programs read it; one with a restart policy says which attempt it is."""
    fields: dict[str, object] = {
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
    if view.restarts:
        fields |= {"attempt": view.attempt, "restarts": view.restarts}
    return fields


def _table(views: Sequence[RunView], now_s: float, past: Mapping[RunId, PastRun]) -> str:
    rows = [("RUN", "HOST", "STATE", "GPUS", "SINCE", "COMMAND")]
    rows += [_row(view, now_s, past.get(view.run)) for view in views]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]])
        for row in rows
    )


def _row(view: RunView, now_s: float, past: PastRun | None) -> tuple[str, str, str, str, str, str]:
    since_s = view.ended_s or view.started_s
    since = (
        "" if since_s is None else f"{duration_text(max(0.0, now_s - view.here_s(since_s)))} ago"
    )
    cards = ",".join(map(str, view.gpus))
    what = safe_line(shlex.join(view.command))[:60]
    return view.run, view.host, _state(view, now_s, past), cards, since, what


def _state(view: RunView, now_s: float, past: PastRun | None) -> str:
    if view.state == "exited":
        return f"exited {view.code}" if view.signal is None else f"signal {view.signal}"
    if view.state == "unreachable" and past is not None:
        age = duration_text(age_s(past, now_s))
        return f"unreachable ({past.view.state} {age} ago)"
    if view.restart_in_s is not None:
        wait = duration_text(view.restart_in_s)
        return f"{view.state}, restart {view.attempt} of {view.restarts} in {wait}"
    if view.degraded:
        return f"{view.state} ({view.degraded})"
    return (
        f"{view.state}, step {view.progress.step}"
        if view.progress.step and not view.ended
        else view.state
    )


def _tell(failures: dict[HostName, CockpitError]) -> None:
    for host, failure in failures.items():
        print(f"{host}: {words_for(failure.code, failure.facts)}", file=sys.stderr)
