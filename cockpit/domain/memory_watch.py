"""Memory that grows on one host: a trend for each process on a card, for cards that name none, and for the host.

Readings are taken when they are new: a process list that is repeated in later samples counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from cockpit.domain.detectors import Signal
from cockpit.domain.incidents import FactValue, Finding
from cockpit.domain.load_trend import Load, LoadTrend
from cockpit.domain.memory_trend import MemoryTrend
from cockpit.domain.models import GpuSample, HostSample, ProcessSample, RunId
from cockpit.domain.remedies import make_all

MOST_SERIES: Final = 512
EVERY_S: Final = 2.5
"""A trend of minutes loses nothing by it, and a hundred hosts are cheaper to watch."""
FORGET_S: Final = 120.0
"""A process that was not seen for so long has ended, and its trend with it."""
AGAIN_S: Final = 300.0
"""An open finding is told anew so often, with the numbers of the day."""
_REMEDIES: Final = {
    "gpu": ("detach_what_is_kept", "snapshot_memory", "restart_on_schedule"),
    "host": ("fewer_workers", "snapshot_memory", "restart_on_schedule"),
    "shm": ("fewer_workers", "shm_size"),
}

Key: TypeAlias = "tuple[str, str, int | None, int | None]"
"""(kind, uuid, pid, start): a pid that is used again is another series."""


LoadOf: TypeAlias = Callable[["RunId | None"], "Load | None"]
"""The load of a run that serves; for None that of the only server of the host."""


@dataclass(frozen=True, slots=True)
class _Reading:
    key: Key
    at_s: float
    used_mib: float
    capacity_mib: float | None
    gpu: int | None = None
    process: ProcessSample | None = None


@dataclass(slots=True)
class _Series:
    trend: MemoryTrend
    seen_s: float
    gpu: int | None
    capacity_mib: float | None
    leak: Finding | None = None
    run: RunId | None = None
    soon: Finding | None = None
    told_s: float = 0.0
    load: LoadTrend | None = None

    def signal(self, action: Literal["open", "close", "withdraw"], finding: Finding) -> Signal:
        return Signal(action, finding, self.gpu, run=self.run)


@dataclass(slots=True)
class MemoryWatch:
    """The trends of one host."""

    _series: dict[Key, _Series] = field(default_factory=dict)
    _fed_s: float = float("-inf")

    def feed(self, sample: HostSample, load_of: LoadOf | None = None) -> list[Signal]:
        """What changed with this sample: a leak that began, was withdrawn, or ended with its process.

        A server's memory is read against its load.
        """
        signals: list[Signal] = []
        if 0 <= sample.at_s - self._fed_s < EVERY_S:
            return signals
        self._fed_s = sample.at_s
        for reading in _readings(sample):
            signals += self._take(reading, load_of)
        signals += self._forget(sample.at_s)
        return signals

    def _take(self, reading: _Reading, load_of: LoadOf | None) -> Iterator[Signal]:
        series = self._series.get(reading.key)
        if series is None:
            if len(self._series) >= MOST_SERIES:
                return
            trend = MemoryTrend(reading.capacity_mib)
            series = _Series(trend, reading.at_s, reading.gpu, reading.capacity_mib)
            self._series[reading.key] = series
        if series.run is None and reading.process is not None and not (series.leak or series.soon):
            series.run = reading.process.run  # the first list of processes may not know it yet
        series.seen_s = max(series.seen_s, reading.at_s)
        if reading.capacity_mib != series.capacity_mib:
            series.capacity_mib = reading.capacity_mib
            series.trend.resize(reading.capacity_mib)
        load = None if load_of is None else _load(reading, load_of)
        if load is not None:
            series.load = series.load or LoadTrend()
            series.load.feed(reading.at_s, reading.used_mib, load)
        changed = series.trend.feed(reading.at_s, reading.used_mib)
        if changed or series.trend.is_soon != (series.soon is not None):
            yield from self._judge(series, reading)

    def _judge(self, series: _Series, reading: _Reading) -> Iterator[Signal]:
        trend = series.trend
        again = reading.at_s - series.told_s >= AGAIN_S
        is_held = series.leak is None and series.load is not None and series.load.follows_load
        if trend.flagged and (series.leak is None or again) and not is_held:
            series.leak, series.told_s = _leak(reading, trend, series.load), reading.at_s
            yield series.signal("open", series.leak)
        elif not trend.flagged and series.leak is not None:
            yield series.signal("withdraw", series.leak)
            series.leak = None
        if trend.is_soon and series.soon is None:
            series.soon = _soon(reading, trend)
            yield series.signal("open", series.soon)
        elif series.soon is not None and not trend.is_soon:
            yield series.signal("close", series.soon)
            series.soon = None

    def _forget(self, now_s: float) -> Iterator[Signal]:
        for key, series in list(self._series.items()):
            if now_s - series.seen_s > FORGET_S:
                del self._series[key]
                for finding in (series.leak, series.soon):
                    if finding is not None:
                        yield series.signal("close", finding)


def _readings(sample: HostSample) -> Iterator[_Reading]:
    for gpu in sample.gpus:
        yield from _of_card(gpu, sample.at_s)
    yield from _of_host(sample)


def _of_card(gpu: GpuSample, at_s: float) -> Iterator[_Reading]:
    """Each process with the room that the others leave it; the card as a whole where none is named."""
    used, total = gpu.mem_used_mib, gpu.mem_total_mib
    if used is None or gpu.unified or gpu.error is not None:
        return
    known = [process for process in gpu.processes if process.mem_used_mib]
    if not known:
        if gpu.processes_age_s is None or not gpu.processes:
            yield _Reading(("card", _name(gpu), None, None), at_s, used, total, gpu.index)
        return
    read_s = at_s - (gpu.processes_age_s or 0.0)
    for process in known:
        own = process.mem_used_mib or 0
        room = None if total is None else max(own, total - max(0, used - own))
        key = ("process", _name(gpu), process.pid, process.started_ticks)
        yield _Reading(key, read_s, own, room, gpu.index, process)


def _of_host(sample: HostSample) -> Iterator[_Reading]:
    limit = sample.cgroup_limit_mib
    used = sample.cgroup_used_mib if limit else sample.mem_used_mib
    total = limit or sample.mem_total_mib
    if used is not None:
        yield _Reading(("host", "", None, None), sample.at_s, used, total)
    if sample.shm_total_mib and sample.shm_free_mib is not None:
        taken = sample.shm_total_mib - sample.shm_free_mib
        yield _Reading(("shm", "", None, None), sample.at_s, taken, sample.shm_total_mib)


def _load(reading: _Reading, load_of: LoadOf) -> Load | None:
    """Of a server's own process, or of a host that serves; other processes have none."""
    if reading.process is not None:
        return None if reading.process.run is None else load_of(reading.process.run)
    return load_of(None) if reading.key[0] == "host" else None


def _name(gpu: GpuSample) -> str:
    return gpu.uuid or f"index:{gpu.index}"


def _leak(reading: _Reading, trend: MemoryTrend, load: LoadTrend | None) -> Finding:
    kind = "gpu" if reading.gpu is not None else reading.key[0]
    facts = _facts(reading, trend)
    share = None if load is None else load.per_1000_requests_mib
    if share is not None:
        facts["per_1000_requests_mib"] = round(share, 2)
    remedies = make_all(_REMEDIES[kind], facts)
    signature = f"memory-trend-{reading.process.pid}" if reading.process else "memory-trend"
    return Finding("leak", signature, "warning", facts, cause=f"leak_{kind}", remedies=remedies)


def _soon(reading: _Reading, trend: MemoryTrend) -> Finding:
    facts = _facts(reading, trend)
    remedies = make_all(("smaller_batch", "watch_memory"), facts)
    return Finding("near_full", "full-soon", "warning", facts, cause="full_soon", remedies=remedies)


def _facts(reading: _Reading, trend: MemoryTrend) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {"in_use_mib": round(reading.used_mib)}
    alarm = trend.alarms[-1] if trend.alarms else None
    slope, eta = trend.slope_mib_per_h, trend.eta
    if slope is None and alarm is not None:
        slope, eta = alarm.slope_mib_per_h, alarm.eta
    if slope is not None:
        facts["slope_mib_per_h"] = round(slope, 1)
    if eta is not None:
        facts |= {"eta_s": round(eta.at_s), "eta_low_s": round(eta.low_s)}
        if eta.high_s < 1e9:
            facts["eta_high_s"] = round(eta.high_s)
    if reading.capacity_mib is not None:
        facts["total_mib"] = round(reading.capacity_mib)
    if reading.gpu is not None:
        facts["gpu_index"] = reading.gpu
    if reading.process is not None:
        facts["pid"] = reading.process.pid
    return facts
