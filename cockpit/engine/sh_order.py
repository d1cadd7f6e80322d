"""A start as remote/runs_start.sh reads it: lines on stdin. What such a host cannot do is refused before."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Final

from cockpit.domain.models import HostName
from cockpit.domain.run_spec import GpuRequest, RunSpec, encode_spec
from cockpit.errors import LaunchFailed

JOB_DEFAULTS: Final[Mapping[str, str]] = {
    "PYTHONUNBUFFERED": "1",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "COLUMNS": "120",
    "TQDM_MININTERVAL": "2",
}
"""As supervisor_job.py has them."""
SHELL_NAMES: Final = frozenset(
    {
        "BASHOPTS", "BASHPID", "BASH_ALIASES", "BASH_ARGV", "BASH_CMDS", "BASH_COMMAND", "BASH_SUBSHELL",
        "BASH_VERSINFO", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "IFS",
        "LINENO", "OPTIND", "PPID", "RANDOM", "SECONDS", "SHELLOPTS", "SRANDOM", "UID", "_",
    }
)  # fmt: skip
"""Variables that one shell or another keeps for itself: no job can be given them through it."""
_DONE: Final = frozenset(
    {
        "run", "profile", "kind", "argv", "cwd", "script", "env", "env_defaults", "path_first", "secrets", "gpus",
        "stop", "run_root", "disk_free_mib", "tags", "notes",
    }
)  # fmt: skip
_TOLD: Final = frozenset({"data_dir", "expect", "log_max_mib", "log_share_pct"})
"""Not done, and told before the start: nothing is lost by it."""
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_MIB: Final = 1 << 40


def order_of(spec: RunSpec, host: HostName, roots: Sequence[str] | None = None) -> bytes:
    """The lines of a start; `roots` are noted on the host when it is to remember a new one.

    Raises LaunchFailed for what a host without Python cannot do.
    """
    _refuse_what_is_missing(spec, host)
    return b"".join(_lines(spec, roots))


def _refuse_what_is_missing(spec: RunSpec, host: HostName) -> None:
    for each in fields(spec):
        if each.name in _DONE or each.name in _TOLD:
            continue
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if each.name == "restart" and spec.restart.on == "never":
            continue
        if getattr(spec, each.name) != default:
            raise LaunchFailed(why="sh_only", host=host, what=each.name)
    for name in (*spec.env, *spec.env_defaults, *spec.secrets):
        if name in SHELL_NAMES:
            raise LaunchFailed(why="sh_only_name", host=host, name=name)
        if not _ENV_NAME.fullmatch(name):
            raise LaunchFailed(why="bad_spec", host=host, key="env")
    if spec.gpus is not None and len(spec.gpus.cards) < spec.gpus.count:
        raise LaunchFailed(why="too_few_cards", host=host)


def _lines(spec: RunSpec, roots: Sequence[str] | None) -> Iterator[bytes]:
    cards = [] if spec.gpus is None else _cards(spec.gpus)
    if spec.run_root is not None:
        yield _item("R", spec.run_root)
    if roots is not None:
        yield _item("J", json.dumps({"roots": list(roots)}))
    yield _item("S", _kept(spec))
    yield _item("C", spec.cwd)
    yield _item("N", str(min(max(0, int(spec.disk_free_mib)), _MAX_MIB)))
    yield _item("G", json.dumps(cards, separators=(",", ":")))
    if spec.script is not None:
        yield _item("T", spec.script)
    yield b"claim\n"
    yield from (_item("W", word) for word in spec.argv)
    yield from (_item("P", folder) for folder in spec.path_first)
    for name, value in {**JOB_DEFAULTS, **spec.env_defaults}.items():
        yield _item("D", f"{name}={value}")
    for name, value in {**spec.env, **spec.secrets, **_visible(cards)}.items():
        yield _item("E", f"{name}={value}")
    yield b"go\n"


def _item(key: str, value: str) -> bytes:
    data = value.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise LaunchFailed(why="bad_spec", key=key)
    return key.encode() + b" " + data.replace(b"\n", b"\n+") + b"\n"


def _kept(spec: RunSpec) -> str:
    """What the run's folder keeps, without its closing brace: the host adds when that was."""
    kept = {
        key: value
        for key, value in encode_spec(spec).items()
        if key not in ("env", "env_defaults", "script")
    }
    kept["env_names"] = sorted({*spec.env, *spec.env_defaults})
    return json.dumps(kept, sort_keys=True).removesuffix("}")


def _cards(gpus: GpuRequest) -> list[dict[str, int | str]]:
    return [{"index": card.index, "uuid": card.uuid} for card in gpus.cards[: gpus.count]]


def _visible(cards: Sequence[Mapping[str, int | str]]) -> dict[str, str]:
    """An index, since vLLM does not take a card's uuid; a MIG slice has nothing but its uuid."""
    if not cards:
        return {}
    names = [
        str(card["uuid"] if str(card["uuid"]).startswith("MIG-") else card["index"])
        for card in cards
    ]
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(names)}
