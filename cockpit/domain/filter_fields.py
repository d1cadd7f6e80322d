"""The fields and flags of the filter language, in one table: parser, completion, help and tests read it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cockpit.domain.incidents import Severity
from cockpit.domain.models import GpuSample, HostSample, LinkState
from cockpit.domain.occupancy import card_use
from cockpit.domain.runs import RunView

Kind: TypeAlias = Literal[
    "text", "memory", "percent", "celsius", "watt", "mhz", "count", "money", "time", "version"
]
Value: TypeAlias = "float | str | tuple[str, ...] | None"


@dataclass(frozen=True, slots=True)
class FilterRow:
    """What a filter looks at: a card on its host, or a host without cards."""

    host: str
    link: LinkState
    sample: HostSample | None = None
    gpu: GpuSample | None = None
    tags: tuple[str, ...] = ()
    platform: str | None = None
    price_per_h: float | None = None
    age_s: float | None = None
    run: str | None = None
    incidents: tuple[str, ...] = ()
    """Families of the open incidents here."""
    severity: Severity | None = None
    marked: bool = False
    view: RunView | None = None
    """In a list of runs: the run itself; the other fields tell of its host."""
    words: tuple[str, ...] = ()
    """What plain words are looked for in, beside the names."""
    took_s: float | None = None
    rank: int | None = None
    card_index: int | None = None
    """In a list of incidents: the card that one names."""
    own_state: str | None = None
    """In a list of incidents: open, seen, recovered, …"""
    muted: bool = False
    opened_s: float | None = None
    """How long ago it opened."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its name, what its values are, and how to read it from a row."""

    name: str
    kind: Kind
    read: Callable[[FilterRow], Value]
    aliases: tuple[str, ...] = ()


Flag: TypeAlias = Callable[[FilterRow], "bool | None"]


def folded(text: str) -> str:
    """Text as it is compared: without case, full-width twins as their plain ones."""
    return unicodedata.normalize("NFKC", text).casefold()


def _of_gpu(name: str) -> Callable[[FilterRow], Value]:
    def read(row: FilterRow) -> Value:
        value: Value = None if row.gpu is None else getattr(row.gpu, name)
        return value

    return read


def _of_sample(name: str) -> Callable[[FilterRow], Value]:
    def read(row: FilterRow) -> Value:
        value: Value = None if row.sample is None else getattr(row.sample, name)
        return value

    return read


def _index(row: FilterRow) -> Value:
    return row.card_index if row.gpu is None else row.gpu.index


def _free_mib(row: FilterRow) -> Value:
    gpu = row.gpu
    if gpu is None or gpu.mem_total_mib is None or gpu.mem_used_mib is None:
        return None
    return gpu.mem_total_mib - gpu.mem_used_mib


def _free_pct(row: FilterRow) -> Value:
    free = _free_mib(row)
    total = row.gpu.mem_total_mib if row.gpu else None
    return 100 * free / total if isinstance(free, int) and total else None


def _power_pct(row: FilterRow) -> Value:
    gpu = row.gpu
    if gpu is None or gpu.power_w is None or not gpu.power_limit_w:
        return None
    return 100 * gpu.power_w / gpu.power_limit_w


def _users(row: FilterRow) -> Value:
    if row.gpu is None:
        return None
    return tuple(process.user for process in row.gpu.processes if process.user)


def _pids(row: FilterRow) -> Value:
    return None if row.gpu is None else tuple(str(process.pid) for process in row.gpu.processes)


def _procs(row: FilterRow) -> Value:
    return None if row.gpu is None else float(len(row.gpu.processes))


def _ram_free(row: FilterRow) -> Value:
    sample = row.sample
    if sample is None or sample.mem_total_mib is None or sample.mem_used_mib is None:
        return None
    return sample.mem_total_mib - sample.mem_used_mib


def _disk_free(row: FilterRow) -> Value:
    free = [] if row.sample is None else [disk.free_mib for disk in row.sample.disks]
    return min((mib for mib in free if mib is not None), default=None)


def _net(row: FilterRow) -> Value:
    net = None if row.sample is None else row.sample.net
    if net is None or (net.rx_mib_s is None and net.tx_mib_s is None):
        return None
    return (net.rx_mib_s or 0.0) + (net.tx_mib_s or 0.0)


def _of_run(name: str) -> Callable[[FilterRow], Value]:
    def read(row: FilterRow) -> Value:
        value: Value = None if row.view is None else getattr(row.view, name)
        return value

    return read


def _of_progress(name: str) -> Callable[[FilterRow], Value]:
    def read(row: FilterRow) -> Value:
        value: Value = None if row.view is None else getattr(row.view.progress, name)
        return value

    return read


def _state(row: FilterRow) -> Value:
    """A run's own word, and whether it did what it was for."""
    if row.own_state is not None:
        return row.own_state
    view = row.view
    if view is not None:
        well = "done" if view.exit_status == 0 or view.by == "cockpit" else "failed"
        return (view.state, well) if view.ended else (view.state,)
    return {"unreachable": "lost", "auth_failed": "auth", "host_key": "key"}.get(row.link, row.link)


FIELDS: Mapping[str, Field] = {
    field.name: field
    for field in (
        Field("host", "text", lambda row: row.host, ("h",)),
        Field("tag", "text", lambda row: row.tags, ("t", "tags")),
        Field("platform", "text", lambda row: row.platform),
        Field("user", "text", _users),
        Field("gpu", "count", _index, ("index",)),
        Field("card", "text", _of_gpu("name"), ("name",)),
        Field("uuid", "text", _of_gpu("uuid")),
        Field("free", "memory", _free_mib, ("mem_free",)),
        Field("free%", "percent", _free_pct),
        Field("used", "memory", _of_gpu("mem_used_mib"), ("mem_used",)),
        Field("total", "memory", _of_gpu("mem_total_mib"), ("mem_total",)),
        Field("util", "percent", _of_gpu("util_pct")),
        Field("temp", "celsius", _of_gpu("temp_c")),
        Field("power", "watt", _of_gpu("power_w")),
        Field("power%", "percent", _power_pct),
        Field("clock", "mhz", _of_gpu("sm_clock_mhz")),
        Field("fan", "percent", _of_gpu("fan_pct")),
        Field("procs", "count", _procs),
        Field("pid", "text", _pids),
        Field("cpu", "percent", _of_sample("cpu_pct")),
        Field("ram.free", "memory", _ram_free),
        Field("load", "count", _of_sample("load1")),
        Field("disk.free", "memory", _disk_free),
        Field("net", "count", _net),
        Field("price", "money", lambda row: row.price_per_h, ("cost",)),
        Field("state", "text", _state),
        Field("age", "time", lambda row: row.age_s),
        Field("run", "text", lambda row: row.run),
        Field("profile", "text", _of_run("profile")),
        Field("kind", "text", _of_run("kind")),
        Field("remark", "text", _of_run("remark"), ("note",)),
        Field("code", "count", _of_run("exit_status")),
        Field("took", "time", lambda row: row.took_s),
        Field("step", "count", _of_progress("step")),
        Field("loss", "count", _of_progress("loss")),
        Field("eta", "time", _of_progress("eta_s")),
        Field("incident", "text", lambda row: row.incidents, ("family",)),
        Field("rank", "count", lambda row: row.rank),
        Field("opened", "time", lambda row: row.opened_s),
        Field("severity", "text", lambda row: row.severity),
        Field("driver", "version", lambda row: row.sample.facts.driver if row.sample else None),
        Field("cuda", "version", lambda row: row.sample.facts.cuda if row.sample else None),
    )
}
FIELD_NAMES: Mapping[str, str] = {
    **{alias: field.name for field in FIELDS.values() for alias in field.aliases},
    **{name: name for name in FIELDS},
}


def _use_is(use: str) -> Flag:
    def flag(row: FilterRow) -> bool | None:
        if row.gpu is None or row.link not in ("live", "degraded"):
            return None
        found = card_use(row.gpu)
        return None if found == "unknown" else found == use

    return flag


def _lost(row: FilterRow) -> bool:
    return row.link == "unreachable" or (row.gpu is not None and row.gpu.error is not None)


def _throttled(row: FilterRow) -> bool | None:
    reasons = None if row.gpu is None else row.gpu.throttle
    return None if reasons is None else bool(reasons)


FLAGS: Mapping[str, Flag] = {
    "incident": lambda row: bool(row.incidents),
    "fatal": lambda row: row.severity == "fatal",
    "warning": lambda row: row.severity == "warning",
    "notice": lambda row: row.severity == "notice",
    "muted": lambda row: row.muted,
    "free": _use_is("free"),
    "idle": _use_is("free"),
    "busy": _use_is("busy"),
    "stale": lambda row: row.link == "stale",
    "lost": _lost,
    "mine": lambda row: bool(row.run),
    "marked": lambda row: row.marked,
    "throttled": _throttled,
}
