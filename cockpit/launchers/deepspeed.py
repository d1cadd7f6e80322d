"""kind = "deepspeed": its launcher on one host, on exactly the reserved cards."""

from __future__ import annotations

from cockpit.config.profile import Profile
from cockpit.errors import Problem, ProfileError
from cockpit.launchers.base import Command, LaunchFacts, options
from cockpit.launchers.torchrun import DEFAULT_PORT


def command(profile: Profile, facts: LaunchFacts) -> Command:
    """The launcher ignores CUDA_VISIBLE_DEVICES once it is told a number of cards, so it is told which ones."""
    table = profile.deepspeed
    assert table is not None  # the profile's checks hold for its kind
    if facts.nodes > 1:
        raise ProfileError(problems=(Problem("one_host_only", key="nodes", kind=profile.kind),))
    cards: tuple[str, ...] = ()
    if table.include is not None:
        cards = ("--include", table.include)
    elif facts.gpus:
        chosen = facts.gpus[: table.num_gpus]
        cards = ("--include", "localhost:" + ",".join(map(str, chosen)))
    elif table.num_gpus is not None:
        cards = ("--num_gpus", str(table.num_gpus))
    program = ("--module", table.module) if table.module is not None else (table.script or "",)
    own = options(table, ("script", "module", "num_gpus", "include"), "underscore")
    port = str(facts.free_port or DEFAULT_PORT)
    return Command(
        (
            "deepspeed",
            *cards,
            "--master_port",
            port,
            *own,
            *table.launcher_args,
            *program,
            *table.args,
        )
    )
