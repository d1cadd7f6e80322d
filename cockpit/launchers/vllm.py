"""kind = "vllm": `vllm serve MODEL` on loopback, with its readiness and its metrics."""

from __future__ import annotations

from cockpit.config.kinds import VllmTable
from cockpit.config.profile import Profile
from cockpit.launchers.base import Command, LaunchFacts, options

MASTER_PORT = 29501
_PLACED = ("model", "host", "port", "tensor_parallel_size")


def command(profile: Profile, facts: LaunchFacts) -> Command:
    """A node other than the first has no HTTP port; there the log is all that tells."""
    table = profile.vllm
    assert table is not None  # the profile's checks hold for its kind
    head = ("vllm", "serve", table.model)
    own = (*_parallel(table, facts), *options(table, _PLACED, "dash", negate=True), *table.args)
    if facts.nodes > 1 and facts.node_rank > 0:
        return Command((*head, *own, *_nodes(facts), "--headless"))
    listen = ("--host", table.host, "--port", str(table.port))
    return Command(
        (*head, *listen, *own, *(_nodes(facts) if facts.nodes > 1 else ())),
        port=table.port,
        bind=table.host,
        http=("/health", "/v1/models"),
        metrics="/metrics",
    )


def _parallel(table: VllmTable, facts: LaunchFacts) -> tuple[str, ...]:
    """As many tensor-parallel ranks as cards are reserved, and a stage of the pipeline for each host, unless the
    profile divides them itself: vLLM spreads tensor times pipeline ranks over the hosts.
    """
    if table.tensor_parallel_size is not None:
        return ("--tensor-parallel-size", str(table.tensor_parallel_size))
    divided = table.pipeline_parallel_size or table.data_parallel_size
    if divided or not facts.gpus:
        return ()
    cards = ("--tensor-parallel-size", str(len(facts.gpus))) if len(facts.gpus) > 1 else ()
    stages = ("--pipeline-parallel-size", str(facts.nodes)) if facts.nodes > 1 else ()
    return (*cards, *stages)


def _nodes(facts: LaunchFacts) -> tuple[str, ...]:
    port = str(facts.free_port or MASTER_PORT)
    where = ("--master-addr", facts.master_addr, "--master-port", port)
    return ("--nnodes", str(facts.nodes), "--node-rank", str(facts.node_rank), *where)
