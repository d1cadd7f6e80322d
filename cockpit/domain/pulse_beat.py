"""One look at a run: its log's marks, its cards, its processes and its host, as plain numbers by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from cockpit.domain.models import GpuSample, HostSample, ProcessSample, ProcessTree, RunId
from cockpit.domain.progress import Marks
from cockpit.domain.runs import Progress

SERVING_KINDS: Final = frozenset({"vllm", "sglang", "tgi", "trtllm", "ollama"})
SLOW_REASONS: Final = frozenset({"thermal_sw", "thermal_hw", "hw_slowdown", "power_brake"})


@dataclass(frozen=True, slots=True)
class Beat:
    """`at_s` is our own clock's. A step and its time come from the log as it arrived."""

    at_s: float
    sample: HostSample
    run: RunId
    gpus: tuple[int, ...] = ()
    """The cards that it reserved; without any, those on which a process of it was seen."""
    log_bytes: int = 0
    """Grows with every byte that is heard of its log."""
    progress: Progress = Progress()
    marks: Marks = Marks()
    stepped: tuple[int, float] | None = None
    """The newest step that came while we listened, and when, by any steady clock."""
    is_starting: bool = False
    """Queued, starting, or not yet ready as its profile wants it: others watch over that."""
    is_serving: bool = False
    price_per_h: float | None = None
    currency: str | None = None

    @property
    def cards(self) -> tuple[GpuSample, ...]:
        """Those that answer."""
        answering = [gpu for gpu in self.sample.gpus if gpu.error is None]
        if self.gpus:
            return tuple(gpu for gpu in answering if gpu.index in self.gpus)
        return tuple(gpu for gpu in answering if any(p.run == self.run for p in gpu.processes))


def own_trees(beat: Beat) -> tuple[ProcessTree, ...]:
    """Those that are its own; where none says so, those on its cards that belong to no run."""
    marked = tuple(tree for tree in beat.sample.trees if tree.run == beat.run)
    if marked:
        return marked
    pids = {process.pid for gpu in beat.cards for process in gpu.processes if process.run is None}
    return tuple(tree for tree in beat.sample.trees if tree.run is None and tree.pid in pids)


def own_processes(beat: Beat) -> tuple[ProcessSample, ...]:
    """Each once, on however many cards."""
    listed = {process.pid: process for gpu in beat.cards for process in gpu.processes}
    marked = tuple(process for process in listed.values() if process.run == beat.run)
    return marked or tuple(process for process in listed.values() if process.run is None)


def main_pid(beat: Beat) -> int | None:
    """Its process on the card that is used least: of ranks that wait, the one that they wait for."""
    ours = {process.pid for process in own_processes(beat) if process.visible}
    found = [
        (gpu.util_pct or 0, process.pid)
        for gpu in beat.cards
        for process in gpu.processes
        if process.pid in ours
    ]
    return min(found)[1] if found else None


def foreign_pids(beat: Beat) -> frozenset[int]:
    """On its cards, and known to be another's."""
    ours = {process.pid for process in own_processes(beat)}
    return frozenset(p.pid for gpu in beat.cards for p in gpu.processes if p.pid not in ours)


def vitals(beat: Beat, cards: tuple[GpuSample, ...]) -> dict[str, float]:
    """What can be known now of the run on these cards of it; a name that is missing is not known."""
    sample = beat.sample
    told: dict[str, float | None] = {
        "host_cpu": sample.cpu_pct,
        "load": sample.load1,
        "iowait": sample.iowait_pct,
        "cpu_wait": sample.pressure_cpu_pct,
        "io_full": sample.pressure_io_full_pct,
        "mem_full": sample.pressure_mem_full_pct,
        "throttled": sample.cpu_throttled_pct,
        "net_in": sample.net.rx_mib_s,
        "net_out": sample.net.tx_mib_s,
        "disk": _sum(_both(disk.read_mib_s, disk.write_mib_s) for disk in sample.disks),
        "disk_in": _sum(disk.read_mib_s for disk in sample.disks),
        "data_share": _data_share(beat.progress),
        "tokens": beat.progress.tokens_s,
        **_of_cards(cards),
        **_of_processes(beat),
    }
    return {name: float(value) for name, value in told.items() if value is not None}


def _of_cards(cards: tuple[GpuSample, ...]) -> dict[str, float | None]:
    utils = [float(gpu.util_pct) for gpu in cards if gpu.util_pct is not None]
    powers = [gpu.power_w for gpu in cards if gpu.power_w is not None]
    clocks = [float(gpu.sm_clock_mhz) for gpu in cards if gpu.sm_clock_mhz is not None]
    shares = [
        gpu.power_w / gpu.power_limit_w
        for gpu in cards
        if gpu.power_w is not None and gpu.power_limit_w
    ]
    slowed = any(SLOW_REASONS & set(gpu.throttle or ()) for gpu in cards)
    return {
        "util": fmean(utils) if utils else None,
        "util_most": max(utils) if utils else None,
        "util_least": min(utils) if utils else None,
        "power": fmean(powers) if powers else None,
        "power_share": fmean(shares) if shares else None,
        "clock": fmean(clocks) if clocks else None,
        "slowed": float(slowed),
    }


def _of_processes(beat: Beat) -> dict[str, float | None]:
    trees = own_trees(beat)
    mains = [tree.cpu_pct for tree in trees if tree.cpu_pct is not None]
    if not mains:
        mains = [one.cpu_pct for one in own_processes(beat) if one.cpu_pct is not None]
    workers = _sum(tree.workers_cpu_pct for tree in trees)
    main = fmean(mains) * len(mains) if mains else None
    return {
        "main_cpu": median(mains) if mains else None,
        "cpu": None if main is None else main + (workers or 0.0),
        "processes": float(len(mains)) if mains else None,
        "workers": _sum(tree.workers for tree in trees),
        "workers_cpu": workers,
        "workers_busy": _sum(tree.workers_busy for tree in trees),
        "workers_blocked": _sum(tree.workers_blocked for tree in trees),
        "mains_blocked": float(sum(tree.state == "D" for tree in trees)) if trees else None,
    }


def _data_share(progress: Progress) -> float | None:
    if progress.data_s is None or not progress.step_s:
        return None
    return min(1.0, progress.data_s / progress.step_s)


def _both(first: float | None, second: float | None) -> float | None:
    return None if first is None and second is None else (first or 0.0) + (second or 0.0)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None
