"""`cockpit stop`: end a run; returns when nothing of it is left, or says what is."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from cockpit.domain.text import safe_line
from cockpit.domain.units import mib_text
from cockpit.engine.api import StopReport
from cockpit.errors import ExitCode
from cockpit.headless.find_run import looked_up
from cockpit.headless.run_report import words_for

SOMETHING_LEFT = 1


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_stop(args.run, args.json))


async def _stop(wanted: str, as_json: bool) -> int:
    async with looked_up(wanted) as found:
        engine, view = found.engine, found.view
        if found.failure is None:
            report = await engine.stop(view.run)
        elif view.ended:
            report = StopReport(view.run, ())
        else:
            raise found.failure
        alive = [one.run for one in engine.runs.all() if one.profile == wanted and not one.ended]
    if as_json:
        print(json.dumps(stop_fields(report, view.host)))
    else:
        _tell(report)
    if others := [run for run in alive if run != view.run]:
        facts = {"profile": wanted, "runs": ", ".join(others)}
        print(words_for("run_namesakes", facts), file=sys.stderr)
    return SOMETHING_LEFT if report.left else ExitCode.OK


def stop_fields(report: StopReport, host: str) -> dict[str, object]:
    left = [
        {"pid": pid, "command": command}
        for pid, command in zip(report.left, report.left_commands, strict=False)
    ]
    held = [{"index": index, "mib": mib} for index, mib in report.held_mib]
    return {
        "run": report.run,
        "host": host,
        "signals": list(report.signals),
        "left": left,
        "held": held,
    }


def _tell(report: StopReport) -> None:
    facts = {"run": report.run, "signals": ", ".join(report.signals), "left": len(report.left)}
    print(
        words_for("run_stop_incomplete" if report.left else "run_stopped", facts), file=sys.stderr
    )
    for pid, command in zip(report.left, report.left_commands, strict=False):
        print(f"{pid}  {safe_line(command)}")
    if report.stuck:
        pids = ", ".join(map(str, report.stuck))
        facts = {"run": report.run, "count": len(report.stuck), "pids": pids}
        print(words_for("run_unkillable", facts), file=sys.stderr)
    for index, mib in report.held_mib:
        facts = {"run": report.run, "gpu": index, "memory": mib_text(mib)}
        print(words_for("run_memory_held", facts), file=sys.stderr)
