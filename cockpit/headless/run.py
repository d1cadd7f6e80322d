"""`cockpit run`: start a profile, show its log, end with its exit code."""

from __future__ import annotations

import argparse
import asyncio
import json

from cockpit.config.paths import Home
from cockpit.domain.masking import Masker
from cockpit.engine.api import LaunchPlan
from cockpit.engine.code_planning import too_large
from cockpit.engine.engine import Engine
from cockpit.errors import CockpitError, ExitCode, LaunchFailed, NoPython, ProfileError
from cockpit.headless.around_run import see_it_off
from cockpit.headless.choose_host import plan_somewhere, wanted_hosts
from cockpit.headless.follow_run import RunFollowing, or_leave
from cockpit.headless.gang_end import gang_code
from cockpit.headless.plan_text import plan_fields, plan_text, plan_warnings
from cockpit.headless.run_report import RunReport, make_report, words_for
from cockpit.headless.session import engine_for, runs_of
from cockpit.headless.step_talk import start_unless_stopped, steps_told
from cockpit.headless.streams import ReaderGone
from cockpit.headless.wishes import Wishes, heeded

INTERRUPTED = 130
"""128 + SIGINT: it was called off before anything ran."""


def main(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_run(args))
    except ReaderGone as error:
        raise BrokenPipeError from error


async def _run(args: argparse.Namespace) -> int:
    home = Home.from_environ()
    profile, hosts = wanted_hosts(home, args)
    async with engine_for(home, hosts, records=not args.dry_run) as engine:
        plan = await plan_somewhere(engine, args, profile, hosts)
        if args.dry_run:
            _print_plan(plan, args.json)
            return ExitCode.OK
        _refuse_blocked(plan)
        report = make_report(args.json)
        for words in plan_warnings(plan):
            await report.say(words)
        if args.detach:
            return await _detached(engine, plan, report, args.json)
        return await _followed(engine, plan, report)


def _refuse_blocked(plan: LaunchPlan) -> None:
    for check in plan.all_checks:
        if check.verdict == "blocked":
            raise _refusal(check.code)(check.code, **check.facts)
    if plan.code is not None and plan.code.is_too_large:
        raise _refusal("code_too_large")("code_too_large", **too_large(plan.code).facts)


def _refusal(code: str) -> type[CockpitError]:
    if code == "no_python":
        return NoPython
    return ProfileError if code.startswith(("code_", "fetch_")) else LaunchFailed


def _print_plan(plan: LaunchPlan, as_json: bool) -> None:
    print(json.dumps(plan_fields(plan), ensure_ascii=False) if as_json else plan_text(plan))


async def _detached(engine: Engine, plan: LaunchPlan, report: RunReport, as_json: bool) -> int:
    runs_of(engine).goes_at_once()
    async with steps_told(engine, report):
        run = await engine.launch(plan)
    if not as_json:
        print(run, flush=True)
        return ExitCode.OK
    view = engine.runs.get(run)
    report.about(run, plan.host, Masker())
    fields = {
        "gpus": list(view.gpus) if view is not None else [],
        "state": view.state if view is not None else None,
    }
    await report.event("run.started", engine.wall_s(), fields)
    return ExitCode.OK


async def _followed(engine: Engine, plan: LaunchPlan, report: RunReport) -> int:
    runs = runs_of(engine)
    spec = await runs.specify(plan)
    report.about(spec.run, plan.host, Masker(spec.secrets.values()))
    facts = {"run": spec.run, "host": plan.host, "profile": plan.profile.name}
    wishes = Wishes()
    with heeded(wishes):
        following = RunFollowing(engine, report, spec.run, plan.host)
        started = {"profile": plan.profile.name}
        await report.event(
            "run.starting", engine.wall_s(), started, words_for("run_starting", facts)
        )
        async with steps_told(engine, report):
            starting = runs.start(plan, spec)
            if plan.code is not None:
                became = await start_unless_stopped(engine, starting, wishes)
            else:
                became = "started" if await or_leave(starting, wishes) else "left"
        if became == "dropped":
            await report.say(words_for("run_dropped", facts))
            return INTERRUPTED
        if became == "left":
            await report.say(words_for("run_left_starting", facts))
            return ExitCode.NOT_NOW
        code = await following.to_end(wishes)
        if plan.nodes and not wishes.leave.is_set():
            code = await gang_code(engine, spec.run, code, report)
        await see_it_off(engine, spec.run, report, wishes)
        return code
