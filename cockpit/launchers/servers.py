"""kind = "sglang", "tgi", "trtllm" and "ollama": the other servers of language models."""

from __future__ import annotations

from cockpit.config.profile import Profile
from cockpit.errors import Problem, ProfileError
from cockpit.launchers.base import Command, LaunchFacts, number_text, options

_PLACED = ("model", "host", "port")
_SGLANG_MEETING_PORT = 20000


def sglang(profile: Profile, facts: LaunchFacts) -> Command:
    """Its own log line is the real mark of readiness: /health answers before the warm-up is over."""
    table = profile.sglang
    assert table is not None  # the profile's checks hold for its kind
    words = ["python3", "-m", "sglang.launch_server", "--model-path", table.model]
    words += ["--host", table.host, "--port", str(table.port)]
    divided = table.tp_size or table.dp_size or table.pp_size
    if not divided and len(facts.gpus) * facts.nodes > 1:
        words += ["--tp-size", str(len(facts.gpus) * facts.nodes)]
    if facts.nodes > 1:
        words += ["--nnodes", str(facts.nodes), "--node-rank", str(facts.node_rank)]
        words += ["--dist-init-addr", facts.meeting_point(_SGLANG_MEETING_PORT)]
    words += [*options(table, _PLACED, "dash"), *table.args]
    return Command(
        tuple(words),
        port=table.port,
        bind=table.host,
        http=("/health", "/v1/models"),
        log=r"The server is fired up and ready to roll!",
        metrics="/metrics" if table.enable_metrics else None,
    )


def tgi(profile: Profile, facts: LaunchFacts) -> Command:
    """Every option of TGI is also a variable, so the host's own HOSTNAME and PORT are overruled aloud."""
    table = profile.tgi
    assert table is not None  # the profile's checks hold for its kind
    _one_host(profile, facts)
    words = ["text-generation-launcher", "--model-id", table.model]
    words += ["--hostname", table.host, "--port", str(table.port)]
    if table.num_shard is None and len(facts.gpus) > 1:
        words += ["--num-shard", str(len(facts.gpus))]
    words += [*options(table, _PLACED, "dash"), *table.args]
    return Command(
        tuple(words), port=table.port, bind=table.host, http=("/health",), metrics="/metrics"
    )


def trtllm(profile: Profile, facts: LaunchFacts) -> Command:
    """TensorRT-LLM; its /metrics is not Prometheus, /prometheus/metrics is."""
    table = profile.trtllm
    assert table is not None  # the profile's checks hold for its kind
    _one_host(profile, facts)
    words = ["trtllm-serve", table.model, "--host", table.host, "--port", str(table.port)]
    if table.tp_size is None and table.pp_size is None and len(facts.gpus) > 1:
        words += ["--tp_size", str(len(facts.gpus))]
    words += [*options(table, _PLACED, "underscore"), *table.args]
    return Command(
        tuple(words),
        port=table.port,
        bind=table.host,
        http=("/health",),
        metrics="/prometheus/metrics",
    )


def ollama(profile: Profile, facts: LaunchFacts) -> Command:
    """`ollama serve` takes no options: all of them are variables. It has no metrics; /api/ps says what is loaded."""
    table = profile.ollama
    assert table is not None  # the profile's checks hold for its kind
    _one_host(profile, facts)
    env = {"OLLAMA_HOST": f"{table.host}:{table.port}"}
    for name, value in table.model_dump(exclude_none=True).items():
        if name not in ("host", "port", "args"):
            text = str(int(value)) if isinstance(value, bool) else number_text(value)
            env[f"OLLAMA_{name.upper()}"] = text
    return Command(
        ("ollama", "serve", *table.args),
        env=env,
        port=table.port,
        bind=table.host,
        http=("/api/version",),
        metrics="/api/ps",
    )


def _one_host(profile: Profile, facts: LaunchFacts) -> None:
    if facts.nodes > 1:
        raise ProfileError(problems=(Problem("one_host_only", key="nodes", kind=profile.kind),))
