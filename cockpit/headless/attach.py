"""`cockpit attach`: follow a run that goes on, or that has ended, as `cockpit run` would have shown it.

ctrl+c leaves the run, since looking at it did not start it: `cockpit stop` ends it.
"""

from __future__ import annotations

import argparse
import asyncio

from cockpit.config.paths import Home
from cockpit.errors import ExitCode
from cockpit.headless.around_run import see_it_off
from cockpit.headless.find_run import FoundRun, looked_up, say_it_is_remembered
from cockpit.headless.follow_run import RunFollowing
from cockpit.headless.gang_end import gang_code
from cockpit.headless.local_log import local_copy, print_copy, say_what_is_missing
from cockpit.headless.run_report import RunReport, make_report
from cockpit.headless.run_teller import RunTeller
from cockpit.headless.session import runs_of
from cockpit.headless.wishes import Wishes, heeded


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_attach(args.run, args.json))


async def _attach(wanted: str, as_json: bool) -> int:
    report = make_report(as_json)
    async with looked_up(wanted) as found:
        engine, view = found.engine, found.view
        if found.failure is not None:
            return await _remembered(found, report)
        runs_of(engine).adopt(view.run)
        wishes = Wishes(stops=False)
        with heeded(wishes):
            following = RunFollowing(engine, report, view.run, view.host)
            code = await following.to_end(wishes)
            if not wishes.leave.is_set():
                code = await gang_code(engine, view.run, code, report)
            await see_it_off(engine, view.run, report, wishes)
            return code


async def _remembered(found: FoundRun, report: RunReport) -> int:
    """Its host does not tell of it: one that has ended is shown from what is kept here."""
    view = found.view
    if found.failure is not None and not view.ended:
        raise found.failure
    await say_it_is_remembered(found, report)
    copy = local_copy(Home.from_environ(), view.run)
    if copy is not None:
        printed = await print_copy(copy, report, 0)
        await say_what_is_missing(printed, copy, view, report)
    await RunTeller(found.engine, report, view.run, view.host).ended(view)
    return ExitCode.NOT_NOW if view.exit_status is None else view.exit_status
