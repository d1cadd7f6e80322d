"""What a launcher makes of a profile: a command, its environment, its ports, and how to see that it is up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from cockpit.config.fields import Table
from cockpit.config.profile import Profile
from cockpit.domain.readiness import Readiness as Readiness

ENV_DEFAULTS: Mapping[str, str] = {
    "PYTHONUNBUFFERED": "1",
    "COLUMNS": "120",
    "TQDM_MININTERVAL": "2",
    "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT",
}
"""What makes a log readable without a terminal, and torchrun deaf to a hang-up."""

_ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What the planner knows by the time a run is about to start on one host."""

    gpus: tuple[int, ...] = ()
    """The reserved cards; empty when the profile reserves none."""
    visible: tuple[str, ...] = ()
    """What CUDA is told of each: its index, of a slice the uuid. Empty: the indices."""
    home: str | None = None
    """The user's home folder on the host; None leaves a leading `~` for the host to expand."""
    free_port: int | None = None
    """A port that is free on the host, for a rendezvous."""
    nodes: int = 1
    node_rank: int = 0
    master_addr: str = "127.0.0.1"
    local_addr: str | None = None
    """This host's own address on the way to the others."""

    def meeting_point(self, default_port: int) -> str:
        """`address:port` of the rendezvous, with brackets around IPv6."""
        address = f"[{self.master_addr}]" if ":" in self.master_addr else self.master_addr
        return f"{address}:{self.free_port or default_port}"


@dataclass(frozen=True, slots=True)
class Command:
    """A launcher's own part: the rest of a Launch is the same for every kind."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None
    """The port on which it serves."""
    bind: str = "127.0.0.1"
    http: tuple[str, ...] = ()
    """Paths that answer 200 once it is up."""
    log: str | None = None
    """A line of the log that says that it is up."""
    metrics: str | None = None
    """Path of its metrics, or of what it tells instead."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that the supervisor needs to start the run; secrets are names only."""

    argv: tuple[str, ...]
    cwd: str = "~"
    env: Mapping[str, str] = field(default_factory=dict)
    env_defaults: Mapping[str, str] = field(default_factory=dict)
    """Set only where the host's own environment says nothing."""
    path_first: tuple[str, ...] = ()
    """Folders to put in front of the host's PATH."""
    secret_names: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    """Ports on which the run will listen."""
    ready: Readiness | None = None
    forwards: tuple[tuple[int, int], ...] = ()
    """(port of this computer, port of the host)."""
    metrics: tuple[int, str] | None = None
    """Port and path of the run's own metrics."""
    notices: tuple[str, ...] = ()
    """Codes of what a person should know before it starts: binds_everywhere."""


def complete(profile: Profile, facts: LaunchFacts, command: Command) -> Launch:
    """The launcher's command with what the profile's common tables add to it."""
    python_env, path_first = _python_env(profile, facts)
    port = _port(profile, command)
    return Launch(
        argv=command.argv,
        cwd=expand_home(profile.cwd, facts.home),
        env={
            **python_env,
            **command.env,
            **profile.env.variables,
            **_nodes_env(facts),
            **_cards_env(facts),
        },
        env_defaults=ENV_DEFAULTS,
        path_first=path_first,
        secret_names=profile.env.secrets,
        ports=() if command.port is None else (command.port,),
        ready=_readiness(profile, command, port),
        forwards=tuple(profile.forward.items()),
        metrics=_metrics(profile, command, port),
        notices=("binds_everywhere",) if command.bind in _ANY_ADDRESS else (),
    )


def expand_home(path: str, home: str | None) -> str:
    """The path with the host's home folder in place of a leading `~`, where that is known."""
    if home is not None and (path == "~" or path.startswith("~/")):
        return home.rstrip("/") + path[1:]
    return path


def process_count(said: int | str | None, facts: LaunchFacts) -> str:
    """Processes on this host: what the profile says, else one for each reserved card."""
    return str(said if said is not None else max(1, len(facts.gpus)))


def options(
    table: Table, skip: Iterable[str], style: Literal["dash", "underscore"], *, negate: bool = False
) -> Iterator[str]:
    """The table's keys that are set, as command-line options in the schema's order.

    A true flag is the option alone; a false one is left out, or `--no-…` with `negate`.
    """
    left_out = {"args", "launcher_args", *skip}
    for name, info in type(table).model_fields.items():
        value = getattr(table, name)
        if name in left_out or value is None:
            continue
        key = info.alias or name
        option = key.replace("_", "-") if style == "dash" else key
        if value is True:
            yield f"--{option}"
        elif value is False:
            if negate and not key.startswith("disable_"):
                yield f"--no-{option}"
        else:
            yield f"--{option}"
            yield from value if isinstance(value, tuple) else (number_text(value),)


def number_text(value: object) -> str:
    """A value as an argument; whole floats without their fraction."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _python_env(profile: Profile, facts: LaunchFacts) -> tuple[dict[str, str], tuple[str, ...]]:
    """Variables and PATH folders of a Python environment, by its path and never by an activation."""
    env = profile.env
    if env.conda is not None:
        prefix = expand_home(env.conda.rstrip("/"), facts.home)
        return {"CONDA_PREFIX": prefix}, (f"{prefix}/bin",)
    chosen = env.venv if env.venv is not None else None
    if env.uv is not None:
        chosen = f"{env.uv.rstrip('/')}/.venv"
    if chosen is None:
        return {}, ()
    prefix = expand_home(chosen.rstrip("/"), facts.home)
    return {"VIRTUAL_ENV": prefix}, (f"{prefix}/bin",)


def _cards_env(facts: LaunchFacts) -> dict[str, str]:
    """The reserved cards by NVML's own numbers; nothing when none is reserved."""
    if not facts.gpus:
        return {}
    cards = ",".join(facts.visible or map(str, facts.gpus))
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": cards}


def _nodes_env(facts: LaunchFacts) -> dict[str, str]:
    if facts.nodes < 2:
        return {}
    rendezvous = {} if facts.free_port is None else {"MASTER_PORT": str(facts.free_port)}
    return {
        "MASTER_ADDR": facts.master_addr,
        "NODE_RANK": str(facts.node_rank),
        "NNODES": str(facts.nodes),
        **rendezvous,
    }


def _port(profile: Profile, command: Command) -> int | None:
    """The port that paths of the profile mean: the server's own, the only forwarded one, that of [metrics]."""
    if command.port is not None:
        return command.port
    targets = tuple(profile.forward.values())
    if len(targets) == 1:
        return targets[0]
    return None if profile.metrics is None else profile.metrics.port


def _readiness(profile: Profile, command: Command, port: int | None) -> Readiness | None:
    said = profile.ready
    if said is None or (said.http is None and said.log is None):
        http, log = command.http, command.log
    else:
        http, log = () if said.http is None else (said.http,), said.log
    if not http and log is None and (said is None or said.no_progress_s is None):
        return None
    if said is not None and said.port is not None:
        port = said.port
    if len(http) == 1:
        at, path = _address(http[0], port)
        port, http = at, (path,)
    return Readiness(
        port=port if http else None,
        http=http if port is not None else (),
        log=log,
        no_progress_s=None if said is None else said.no_progress_s,
    )


def _metrics(profile: Profile, command: Command, port: int | None) -> tuple[int, str] | None:
    said = profile.metrics
    url = said.url if said is not None else command.metrics
    if url is None:
        return None
    at, path = _address(url, said.port if said is not None and said.port is not None else port)
    return None if at is None else (at, path)


def _address(url: str, port: int | None) -> tuple[int | None, str]:
    """Port and path of a path or of an http address of the host itself."""
    if url.startswith("/"):
        return port, url
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return parts.port or 80, f"{parts.path or '/'}{query}"
