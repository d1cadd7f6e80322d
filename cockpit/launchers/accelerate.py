"""kind = "accelerate": every value that a forgotten default config file would change is said aloud."""

from __future__ import annotations

from cockpit.config.kinds import AccelerateTable
from cockpit.config.profile import Profile
from cockpit.launchers.base import Command, LaunchFacts, options

_OWN = ("script", "module", "num_processes", "multi_gpu", "mixed_precision", "dynamo_backend")


def command(profile: Profile, facts: LaunchFacts) -> Command:
    table = profile.accelerate
    assert table is not None  # the profile's checks hold for its kind
    program = ("--module", table.module) if table.module is not None else (table.script or "",)
    return Command(
        (
            "accelerate", "launch",
            *_world(table, facts),
            *_said(table),
            *options(table, _OWN, "underscore"),
            *table.launcher_args,
            *program,
            *table.args,
        )
    )  # fmt: skip


def _world(table: AccelerateTable, facts: LaunchFacts) -> tuple[str, ...]:
    """Processes over all hosts, and where they meet; port 0 is a free one of accelerate's choice."""
    processes = table.num_processes
    if processes is None and table.config_file is not None and not facts.gpus:
        return ()
    count = processes if processes is not None else max(1, len(facts.gpus)) * facts.nodes
    port = 0 if facts.free_port is None else facts.free_port
    words = ["--num_processes", str(count), "--num_machines", str(facts.nodes)]
    words += ["--machine_rank", str(facts.node_rank)]
    if facts.nodes > 1:
        words += ["--main_process_ip", facts.master_addr]
    words += ["--main_process_port", str(port)]
    several = count > 1 and not (table.use_deepspeed or table.use_fsdp)
    if table.multi_gpu or (table.multi_gpu is None and several and table.config_file is None):
        words.append("--multi_gpu")
    return tuple(words)


def _said(table: AccelerateTable) -> tuple[str, ...]:
    """Precision and compiler: what the profile says, else "no", unless a config file decides."""
    words: list[str] = []
    for option, value in (
        ("--mixed_precision", table.mixed_precision),
        ("--dynamo_backend", table.dynamo_backend),
    ):
        if value is not None or table.config_file is None:
            words += [option, value or "no"]
    return tuple(words)
