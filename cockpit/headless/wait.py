"""`cockpit wait`: return when a run has ended, with its own exit code."""

from __future__ import annotations

import argparse
import asyncio
import json

from cockpit.domain.runs import RunView
from cockpit.errors import ExitCode
from cockpit.headless.find_run import found_run
from cockpit.headless.ps import run_fields

LOOK_EVERY_S = 0.2


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_wait(args.run, args.json))


async def _wait(wanted: str, as_json: bool) -> int:
    async with found_run(wanted) as (engine, view):
        now: RunView = view
        while not now.ended:
            await asyncio.sleep(LOOK_EVERY_S)
            now = engine.runs.get(view.run) or now
    if as_json:
        print(json.dumps(run_fields(now), ensure_ascii=False))
    status = now.exit_status
    return ExitCode.NOT_NOW if status is None else status
