"""kind = "command": any program without a shell, or a text for /bin/sh."""

from __future__ import annotations

from cockpit.config.profile import Profile
from cockpit.launchers.base import Command, LaunchFacts

SHELL = "/bin/sh"


def command(profile: Profile, facts: LaunchFacts) -> Command:
    """The argv as it stands; a script is one argument of `sh -c`, so that nothing of it is read twice.

    On several hosts it is one rank on each, by the variables that torch's `env://` reads; a launcher that it
    calls sets its own.
    """
    table = profile.command
    assert table is not None  # the profile's checks hold for its kind
    several = facts.nodes > 1
    env = {"RANK": str(facts.node_rank), "WORLD_SIZE": str(facts.nodes)} if several else {}
    if table.script is not None:
        return Command((SHELL, "-c", table.script, profile.name, *table.args), env)
    return Command((*(table.argv or ()), *table.args), env)
