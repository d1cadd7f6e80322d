"""Where a run goes: hosts are looked at in their order, and no host is waited for that is not needed."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.config.profile import Profile, load_profile
from cockpit.domain.models import HostName
from cockpit.engine.api import LaunchPlan
from cockpit.engine.choosing import candidate_hosts, wanted_cards
from cockpit.engine.engine import Engine
from cockpit.errors import HostUnreachable, NotNow
from cockpit.headless.session import chosen_hosts, link_failure, link_settled, runs_listed

LIST_LIMIT_S = 10.0


def wanted_hosts(home: Home, args: argparse.Namespace) -> tuple[Profile, dict[HostName, HostSpec]]:
    """The profile and where it may go. Raises ProfileError, UsageError."""
    profile = load_profile(args.profile, home, args.overrides)
    return profile, candidate_hosts(profile, chosen_hosts(home, args.host), args.host)


async def plan_somewhere(
    engine: Engine, args: argparse.Namespace, profile: Profile, hosts: Mapping[HostName, HostSpec]
) -> LaunchPlan:
    """The first host with room; else the queue of one. Raises NotNow, ProfileError, TransportError."""
    names = list(hosts)
    for_cards = wanted_cards(profile, args.gpus) is not None
    if profile.nodes is not None and profile.nodes > 1:
        return await _plan_on_several(engine, args, names, for_cards=for_cards)
    for count in range(1, len(names) + 1):
        await link_settled(engine, names[count - 1], for_cards=for_cards)
        if for_cards:
            await runs_listed(engine, names[count - 1 : count], LIST_LIMIT_S)
        is_last = count == len(names)
        try:
            plan = await _plan(engine, args, names[:count])
        except (NotNow, HostUnreachable):
            if is_last:
                raise
        else:
            if is_last or not plan.queued:
                return plan
    raise AssertionError("the last host returns or raises")


async def _plan_on_several(
    engine: Engine, args: argparse.Namespace, names: list[HostName], *, for_cards: bool
) -> LaunchPlan:
    """Every host is looked at: those with room are taken in their order."""
    await asyncio.gather(*(link_settled(engine, name, for_cards=for_cards) for name in names))
    if for_cards:
        await runs_listed(engine, names, LIST_LIMIT_S)
    return await _plan(engine, args, names)


async def _plan(engine: Engine, args: argparse.Namespace, names: list[HostName]) -> LaunchPlan:
    try:
        return await engine.plan(
            args.profile, hosts=names, gpus=args.gpus, overrides=args.overrides
        )
    except HostUnreachable as error:
        state = engine.fleet.hosts[names[0]]
        if error.code == "no_host_ready" and state.link in (
            "unreachable",
            "auth_failed",
            "host_key",
        ):
            raise link_failure(state) from error
        raise
