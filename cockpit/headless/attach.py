"""`cockpit attach`: follow a run that goes on, or that has ended, as `cockpit run` would have shown it.

ctrl+c leaves the run, since looking at it did not start it: `cockpit stop` ends it.
"""

from __future__ import annotations

import argparse
import asyncio

from cockpit.headless.find_run import found_run
from cockpit.headless.follow_run import RunFollowing
from cockpit.headless.run_report import make_report
from cockpit.headless.wishes import Wishes, heeded


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_attach(args.run, args.json))


async def _attach(wanted: str, as_json: bool) -> int:
    async with found_run(wanted) as (engine, view):
        wishes = Wishes(stops=False)
        with heeded(wishes):
            following = RunFollowing(engine, make_report(as_json), view.run, view.host)
            return await following.to_end(wishes)
