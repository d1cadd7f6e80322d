"""`cockpit wait`: return when a run has ended, with its own exit code."""

from __future__ import annotations

import argparse
import asyncio
import json

from cockpit.domain.runs import RunView
from cockpit.engine.engine import Engine
from cockpit.errors import ExitCode
from cockpit.headless.find_run import looked_up, say_it_is_remembered
from cockpit.headless.gang_end import verdict_on
from cockpit.headless.ps import run_fields
from cockpit.headless.run_report import make_report
from cockpit.headless.session import link_failure, runs_of
from cockpit.headless.step_talk import fetch_results
from cockpit.headless.wishes import Wishes

LOOK_EVERY_S = 0.1
ASK_EVERY_S = 0.5
SETTLE_LIMIT_S = 70.0
"""For the hooks and messages of the run's end."""


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_wait(args.run, args.json))


async def _wait(wanted: str, as_json: bool) -> int:
    async with looked_up(wanted) as found:
        if found.failure is not None and not found.view.ended:
            raise found.failure
        report = make_report(as_json)
        await say_it_is_remembered(found, report)
        runs_of(found.engine).adopt(found.view.run)
        ended = await _end_of(found.engine, found.view)
        blamed = await verdict_on(found.engine, ended.run)
        await runs_of(found.engine).settled(ended.run, SETTLE_LIMIT_S)
        await fetch_results(found.engine, ended.run, report, Wishes(stops=False))
    if as_json:
        print(json.dumps(run_fields(ended), ensure_ascii=False))
    status = ended.exit_status if blamed is None else blamed.exit_status
    return ExitCode.NOT_NOW if status is None else status


async def _end_of(engine: Engine, view: RunView) -> RunView:
    """Over any number of lost links; only a host that waits for a person ends it. Raises TransportError."""
    if view.ended:
        return view
    host, asked_s = runs_of(engine).of_host(view.host), engine.now_s()
    while not view.ended:
        await asyncio.sleep(LOOK_EVERY_S)
        state = engine.fleet.hosts[view.host]
        if state.link in ("auth_failed", "host_key"):
            raise link_failure(state)
        if engine.now_s() - asked_s >= ASK_EVERY_S:
            asked_s = engine.now_s()
            host.refresh()
        view = engine.runs.get(view.run) or view
    return view
