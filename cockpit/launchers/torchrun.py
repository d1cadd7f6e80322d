"""kind = "torchrun" and "megatron": one process a card, by torch's own launcher."""

from __future__ import annotations

from cockpit.config.kinds import MegatronTable, TorchrunTable
from cockpit.config.profile import Profile
from cockpit.launchers.base import Command, LaunchFacts, options, process_count

DEFAULT_PORT = 29500


def command(profile: Profile, facts: LaunchFacts) -> Command:
    table = profile.torchrun
    assert table is not None  # the profile's checks hold for its kind
    own = options(table, ("script", "module", "nproc_per_node"), "dash")
    return Command((*_torchrun(table, facts, table.rdzv_backend), *own, *_program(table)))


def megatron(profile: Profile, facts: LaunchFacts) -> Command:
    """Megatron-LM's scripts, whose options come after the script."""
    table = profile.megatron
    assert table is not None  # the profile's checks hold for its kind
    own = options(table, ("script", "module", "nproc_per_node"), "dash")
    return Command((*_torchrun(table, facts, None), *_program(table), *own))


def _torchrun(
    table: TorchrunTable | MegatronTable, facts: LaunchFacts, backend: str | None
) -> tuple[str, ...]:
    """torchrun up to its rendezvous: a free port of its own on one host, static addresses on several."""
    head = ("torchrun", "--nproc-per-node", process_count(table.nproc_per_node, facts))
    port = str(facts.free_port or DEFAULT_PORT)
    if facts.nodes == 1:
        return head if backend else (*head, "--standalone")
    nodes = (*head, "--nnodes", str(facts.nodes))
    if backend:
        return (*nodes, *_c10d(facts))
    where = ("--master-addr", facts.master_addr, "--master-port", port)
    return (*nodes, "--node-rank", str(facts.node_rank), *where)


def _c10d(facts: LaunchFacts) -> tuple[str, ...]:
    """torch compares the endpoint with what a host's own name resolves to: left to itself every node takes
    another for the host, and the first tells the others a name that leads them to themselves.
    """
    is_host = "1" if facts.node_rank == 0 else "0"
    own = () if facts.local_addr is None else ("--local-addr", facts.local_addr)
    endpoint = facts.meeting_point(DEFAULT_PORT)
    return ("--rdzv-endpoint", endpoint, "--rdzv-conf", f"is_host={is_host}", *own)


def _program(table: TorchrunTable | MegatronTable) -> tuple[str, ...]:
    start = ("--module", table.module) if table.module is not None else (table.script or "",)
    return (*table.launcher_args, *start, *table.args)
