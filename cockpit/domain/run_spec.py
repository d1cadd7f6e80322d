"""What is asked of a host to start one run. It is made by the planner and read by remote/supervisor.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cockpit.domain.models import RunId

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"

MAX_SPEC_BYTES = 1 << 20
"""A start request longer than this is refused by the host; a long script is the only way to come near."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card as the host is asked for it: the index for CUDA_VISIBLE_DEVICES, the uuid for its lock."""

    index: int
    uuid: str


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """Cards to reserve for the run's life: the first `count` of `cards` that are free."""

    cards: tuple[Card, ...]
    """Every card that would do, the best first."""
    count: int
    min_free_mib: int | None = None
    """Checked on the host where it can read its cards' memory; locks alone decide where it cannot."""
    wait_s: float = 0.0
    """How long to queue for them, first come first served; 0 means now or never."""
    share: bool = False
    """Take cards that other runs share too."""


@dataclass(frozen=True, slots=True)
class StopGrace:
    """How long each step of the stop ladder waits before the next."""

    int_s: float = 15.0
    term_s: float = 10.0


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Whether the host starts the run again when its job ends without being asked to.

    `on-lost` is for clients: after a restart of the host nobody is there to do it.
    """

    on: Literal["never", "on-failure", "always", "on-lost"] = "never"
    max: int = 3
    backoff_s: float = 30.0
    """Before the second attempt; it doubles from one to the next, up to ten minutes."""
    resume_args: tuple[str, ...] = ()
    """Added to the arguments of every attempt but the first."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run on one host. Values of `secrets` reach the job's environment and nothing else."""

    run: RunId
    profile: str
    kind: str
    argv: tuple[str, ...]
    cwd: str = "~"
    script: str | None = None
    """Shell text that is kept beside the log and given to `argv` as its last argument."""
    env: Mapping[str, str] = field(default_factory=dict)
    env_defaults: Mapping[str, str] = field(default_factory=dict)
    """Set only where the host's own environment says nothing."""
    path_first: tuple[str, ...] = ()
    """Folders to put in front of the host's PATH."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    gpus: GpuRequest | None = None
    stop: StopGrace = field(default_factory=StopGrace)
    run_root: str | None = None
    """Folder for the run's files; None lets the host choose."""
    data_dir: str | None = None
    """Folder for caches of models and kernels; None leaves them where the host has room."""
    log_max_mib: int | None = 512
    """Beyond it the middle of the log is given back to the disk; offsets stay. None keeps all."""
    log_share_pct: float | None = 5.0
    """Of the space that is free at the start: a log takes no more, whatever `log_max_mib` says."""
    disk_free_mib: int = 0
    """Free space that `cwd` must have before the start."""
    hold_s: float = 0.0
    """Hold the cards and wait so long for the call to begin; without it the run ends as `not_called`."""
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    expect: Literal["end", "server"] = "end"
    """Of a server that ends unasked, code 0 is a failure too."""
    before: str | None = None
    """Shell text that runs on the host before the job; its failure is the run's end."""
    after: str | None = None
    """Shell text that runs there once the job has ended; COCKPIT_EXIT_CODE says how."""
    tags: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    """Kept with the run for whoever reads it later: the profile's hash, a commit, our version."""


def encode_spec(spec: RunSpec) -> dict[str, Json]:
    """The spec as the supervisor takes it, without the secrets' values."""
    return {
        "run": spec.run,
        "profile": spec.profile,
        "kind": spec.kind,
        "argv": list(spec.argv),
        "cwd": spec.cwd,
        "script": spec.script,
        "env": dict(spec.env),
        "env_defaults": dict(spec.env_defaults),
        "path_first": list(spec.path_first),
        "secret_names": sorted(spec.secrets),
        "gpus": None if spec.gpus is None else _encode_gpus(spec.gpus),
        "stop": {"int_s": spec.stop.int_s, "term_s": spec.stop.term_s},
        "run_root": spec.run_root,
        "data_dir": spec.data_dir,
        "log_max_mib": spec.log_max_mib,
        "log_share_pct": spec.log_share_pct,
        "disk_free_mib": spec.disk_free_mib,
        "hold_s": spec.hold_s,
        "restart": {
            "on": spec.restart.on,
            "max": spec.restart.max,
            "backoff_s": spec.restart.backoff_s,
            "resume_args": list(spec.restart.resume_args),
        },
        "expect": spec.expect,
        "before": spec.before,
        "after": spec.after,
        "tags": list(spec.tags),
        "notes": dict(spec.notes),
    }


def _encode_gpus(gpus: GpuRequest) -> dict[str, Json]:
    return {
        "cards": [{"index": card.index, "uuid": card.uuid} for card in gpus.cards],
        "count": gpus.count,
        "min_free_mib": gpus.min_free_mib,
        "wait_s": gpus.wait_s,
        "share": gpus.share,
    }
