"""`cockpit attach`: follow a run that goes on, or that has ended, as `cockpit run` would have shown it."""

from __future__ import annotations

import argparse
import asyncio

from cockpit.headless.find_run import found_run
from cockpit.headless.follow_run import RunFollowing, Wishes, listen_to_signals
from cockpit.headless.run_report import make_report
from cockpit.headless.session import runs_of


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_attach(args.run, args.json))


async def _attach(wanted: str, as_json: bool) -> int:
    async with found_run(wanted) as (engine, view):
        wishes = Wishes()
        stop_listening = listen_to_signals(wishes)
        try:
            masker = runs_of(engine).follower(view.run).masker
            report = make_report(as_json, view.run, view.host, masker)
            return await RunFollowing(engine, report, view.run, view.host).to_end(wishes)
        finally:
            stop_listening()
