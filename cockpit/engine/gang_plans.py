"""Plans and specs of a run on several hosts, in the order of their ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from cockpit.domain.gang import GANG_NOTE, Member, gang_note, member_id
from cockpit.domain.models import HostName
from cockpit.domain.run_spec import RestartPolicy, RunSpec
from cockpit.engine.api import Check, LaunchPlan
from cockpit.engine.bounds import within
from cockpit.engine.gang import HOLD_S
from cockpit.engine.meeting import Meeting
from cockpit.engine.needs import shell_path, versions_of
from cockpit.errors import CockpitError
from cockpit.launchers import build
from cockpit.launchers.base import LaunchFacts
from cockpit.transport.base import HostTransport

AGREE_ON: Final = (
    "python",
    "torch",
    "nvidia-nccl-cu11",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "vllm",
    "sglang",
    "deepspeed",
    "accelerate",
    "transformers",
)
"""What all ranks must have in one version: a difference shows as a hang, hours later."""
LOOK_S: Final = 15.0
_MISSING: Final = 3
_INTERFACE_NAMES: Final = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")


async def agreed(
    plans: Sequence[LaunchPlan], transports: Mapping[HostName, HostTransport]
) -> list[Check]:
    """One check for each package that differs, naming both versions."""
    asked = [plan for plan in plans if plan.launch is not None and plan.host in transports]
    found = await asyncio.gather(
        *(
            versions_of(plan.launch, AGREE_ON, transports[plan.host])
            for plan in asked
            if plan.launch
        )
    )
    return list(_differences([plan.host for plan in asked], found))


def _differences(
    hosts: Sequence[HostName], found: Sequence[Mapping[str, str | None]]
) -> Iterable[Check]:
    for name in AGREE_ON:
        told = [
            (host, versions[name])
            for host, versions in zip(hosts, found, strict=True)
            if versions.get(name)
        ]
        if _differ(name, [version for _host, version in told if version]):
            words = ", ".join(f"{host} {version}" for host, version in told)
            yield Check("gang_versions_differ", "blocked", {"name": name, "found": words})


def _differ(name: str, versions: Iterable[str]) -> bool:
    """Of Python the minor version decides; a build (`+cu121`) only where every one tells its own."""
    if name == "python":
        return len({tuple(version.split(".")[:2]) for version in versions}) > 1
    parts = [version.partition("+") for version in versions]
    builds = {build for _release, _plus, build in parts if build}
    return len({release for release, _plus, _build in parts}) > 1 or len(builds) > 1


async def scripts_present(
    plans: Sequence[LaunchPlan], transports: Mapping[HostName, HostTransport]
) -> list[Check]:
    """One check for each host that lacks the script which all of them are to run; code that is sent brings it."""
    table = getattr(plans[0].profile, plans[0].profile.kind)
    script = None if plans[0].profile.kind == "command" else getattr(table, "script", None)
    if script is None or plans[0].profile.code is not None:
        return []
    asked = [plan for plan in plans if plan.host in transports]
    there = await asyncio.gather(
        *(_is_there(transports[plan.host], plan.cwd, script) for plan in asked)
    )
    return [
        Check("gang_script_missing", "blocked", {"host": plan.host, "path": _joined(plan, script)})
        for plan, found in zip(asked, there, strict=True)
        if not found
    ]


def _joined(plan: LaunchPlan, script: str) -> str:
    return str(PurePosixPath(plan.cwd, script))


async def _is_there(transport: HostTransport, cwd: str, script: str) -> bool:
    """False only when the host said so."""
    look = f"cd {shell_path(cwd)} && test -e {shell_path(script)} || exit {_MISSING}\n"
    try:
        done = await within(LOOK_S + 1, transport.run(look.encode(), timeout_s=LOOK_S, limit=4096))
    except (CockpitError, TimeoutError, asyncio.TimeoutError):
        return True
    return done.exit_code != _MISSING


def as_one(plans: Sequence[LaunchPlan], checks: Iterable[Check]) -> LaunchPlan:
    """The plan of rank 0, which knows the others."""
    first, *others = plans
    extra = [*checks, *_cards_differ(plans)]
    if first.profile.restart.on != "never":
        extra.append(Check("gang_no_restart", "warning"))
    if first.profile.gpus is not None and first.profile.gpus.wait_s:
        extra.append(Check("gang_no_queue", "warning"))
    return replace(first, nodes=tuple(others), checks=(*first.checks, *extra))


def _cards_differ(plans: Sequence[LaunchPlan]) -> Iterable[Check]:
    """Launchers count on one number of processes on every host."""
    if len({len(plan.cards) for plan in plans}) > 1:
        words = ", ".join(f"{plan.host} {len(plan.cards)}" for plan in plans)
        yield Check("gang_cards_differ", "blocked", {"found": words})


async def gang_specs(
    plan: LaunchPlan,
    first: RunSpec,
    meeting: Meeting,
    specify: Callable[[LaunchPlan], Awaitable[RunSpec]],
) -> list[RunSpec]:
    """What each host is asked to start: the same run with its rank, and the way to the others."""
    plans = (plan, *plan.nodes)
    hosts = tuple(one.host for one in plans)
    specs = []
    for rank, one in enumerate(plans):
        spec = await specify(_placed(one, rank, len(plans), meeting))
        note = gang_note(Member(first.run, rank, hosts))
        specs.append(
            replace(
                spec,
                run=member_id(first.run, rank),
                hold_s=HOLD_S,
                restart=RestartPolicy(),
                gpus=None if spec.gpus is None else replace(spec.gpus, wait_s=0.0),
                notes={**spec.notes, GANG_NOTE: note},
            )
        )
    return specs


def _placed(plan: LaunchPlan, rank: int, count: int, meeting: Meeting) -> LaunchPlan:
    """The plan with what is known now: where rank 0 is found, and by which interface."""
    facts = LaunchFacts(
        gpus=tuple(card.index for card in plan.cards),
        nodes=count,
        node_rank=rank,
        master_addr=meeting.address,
        free_port=meeting.port,
        local_addr=meeting.ways[rank].address,
    )
    launch = build(plan.profile, facts)
    interface = meeting.ways[rank].interface
    if interface is not None:
        said = plan.profile.env.variables
        ways = {name: interface for name in _INTERFACE_NAMES if name not in said}
        launch = replace(launch, env={**launch.env, **ways})
    if rank:
        launch = replace(launch, ready=None, forwards=())
    return replace(plan, launch=launch, argv=launch.argv)
