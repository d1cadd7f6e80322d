"""kind = "deepspeed": its launcher on exactly the reserved cards."""

from __future__ import annotations

import base64
import json

from cockpit.config.kinds import DeepspeedTable
from cockpit.config.profile import Profile
from cockpit.errors import Problem, ProfileError
from cockpit.launchers.base import Command, LaunchFacts, options, process_count
from cockpit.launchers.torchrun import DEFAULT_PORT


def command(profile: Profile, facts: LaunchFacts) -> Command:
    table = profile.deepspeed
    assert table is not None  # the profile's checks hold for its kind
    head = _on_each(table, facts) if facts.nodes > 1 else _alone(table, facts)
    program = ("--module", table.module) if table.module is not None else (table.script or "",)
    own = options(table, ("script", "module", "num_gpus", "include"), "underscore")
    return Command((*head, *own, *table.launcher_args, *program, *table.args))


def _alone(table: DeepspeedTable, facts: LaunchFacts) -> tuple[str, ...]:
    """The launcher ignores CUDA_VISIBLE_DEVICES once it is told a number of cards, so it is told which ones."""
    cards: tuple[str, ...] = ()
    if table.include is not None:
        cards = ("--include", table.include)
    elif facts.gpus:
        chosen = facts.gpus[: table.num_gpus]
        cards = ("--include", "localhost:" + ",".join(map(str, chosen)))
    elif table.num_gpus is not None:
        cards = ("--num_gpus", str(table.num_gpus))
    return ("deepspeed", *cards, "--master_port", str(facts.free_port or DEFAULT_PORT))


def _on_each(table: DeepspeedTable, facts: LaunchFacts) -> tuple[str, ...]:
    """The part of it that runs on each node: `deepspeed` itself would reach the others by pdsh or ssh."""
    if table.include is not None:
        raise ProfileError(problems=(Problem("one_host_key", key="deepspeed.include"),))
    rank = ("--node_rank", str(facts.node_rank))
    port = str(facts.free_port or DEFAULT_PORT)
    where = ("--master_addr", facts.master_addr, "--master_port", port)
    return ("python3", "-m", "deepspeed.launcher.launch", *_world(table, facts), *rank, *where)


def _world(table: DeepspeedTable, facts: LaunchFacts) -> tuple[str, str]:
    """Node -> its cards. Of the others only their number is read here, and it is the same on all."""
    cards = list(facts.gpus[: table.num_gpus])
    if not cards:
        cards = list(range(int(process_count(table.num_gpus, facts))))
    world = json.dumps({f"node{rank}": cards for rank in range(facts.nodes)})
    return ("--world_info", base64.urlsafe_b64encode(world.encode()).decode())
