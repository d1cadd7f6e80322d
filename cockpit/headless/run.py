"""`cockpit run`: start a profile, show its log, end with its exit code."""

from __future__ import annotations

import argparse
import asyncio
import json

from cockpit.config.paths import Home
from cockpit.config.profile import load_profile
from cockpit.domain.masking import Masker
from cockpit.domain.models import HostName
from cockpit.engine.api import LaunchPlan
from cockpit.engine.choosing import candidate_hosts
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event
from cockpit.errors import ExitCode
from cockpit.headless.follow_run import RunFollowing, Wishes, listen_to_signals
from cockpit.headless.plan_text import plan_fields, plan_text
from cockpit.headless.run_report import make_report, words_for
from cockpit.headless.session import (
    chosen_hosts,
    engine_for,
    link_failure,
    links_settled,
    runs_of,
)


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    home = Home.from_environ()
    profile = load_profile(args.profile, home, args.overrides)
    hosts = candidate_hosts(profile, chosen_hosts(home, args.host), args.host)
    async with engine_for(home, hosts) as engine:
        await links_settled(engine, hosts)
        _refuse_unreachable(engine, list(hosts))
        plan = await engine.plan(
            args.profile, hosts=list(hosts), gpus=args.gpus, overrides=args.overrides
        )
        if args.dry_run:
            _print_plan(plan, args.json)
            return ExitCode.OK
        if args.detach:
            return await _detached(engine, plan, args.json)
        return await _followed(engine, plan, args.json)


def _refuse_unreachable(engine: Engine, hosts: list[HostName]) -> None:
    """Raise the first host's failure when none of them can be used."""
    states = [engine.fleet.hosts[host] for host in hosts]
    if not any(state.link in ("live", "degraded", "stale") for state in states):
        raise link_failure(states[0])


def _print_plan(plan: LaunchPlan, as_json: bool) -> None:
    print(json.dumps(plan_fields(plan), ensure_ascii=False) if as_json else plan_text(plan))


async def _detached(engine: Engine, plan: LaunchPlan, as_json: bool) -> int:
    run = await engine.launch(plan)
    if as_json:
        report = make_report(True, run, plan.host, Masker())
        cards = [card.index for card in plan.cards]
        report.event("run.started", {"gpus": cards, "at_s": round(engine.wall_s(), 3)})
    else:
        print(run, flush=True)
    return ExitCode.OK


async def _followed(engine: Engine, plan: LaunchPlan, as_json: bool) -> int:
    wishes = Wishes()
    events: list[Event] = []
    unsubscribe = engine.subscribe(events.append)
    stop_listening = listen_to_signals(wishes)
    try:
        run = await engine.launch(plan)
        unsubscribe()
        masker = runs_of(engine).follower(run).masker
        report = make_report(as_json, run, plan.host, masker)
        facts = {"run": run, "host": plan.host, "profile": plan.profile.name}
        report.event(
            "run.starting",
            {"profile": plan.profile.name, "at_s": round(engine.wall_s(), 3)},
            words_for("run_starting", facts),
        )
        return await RunFollowing(engine, report, run, plan.host, events).to_end(wishes)
    finally:
        unsubscribe()
        stop_listening()
