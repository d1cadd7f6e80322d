"""Readings of one host for hours in little memory: four scales, each with the highest of every stretch.

Ten minutes in steps of 5 s, then 40 minutes, 2 h 40 and 10 h 40, each four times as coarse.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from typing import Final, TypeAlias

from cockpit.domain.incident_proof import MOST_POINTS
from cockpit.domain.models import GpuSample, HostSample

STEPS_S: Final = (5.0, 20.0, 80.0, 320.0)
MOST_SERIES: Final = 512
FORGET_S: Final = 900.0
"""What was not read for so long has gone: a process, a disk, a card."""
TIDY_EVERY_S: Final = 60.0
ENOUGH: Final = 24
"""Points that make a curve worth its scale."""

SeriesKey: TypeAlias = "tuple[str, str | int | None, int | None]"
"""(gpu or util, index, None), (process, index, pid), (host or shm, None, None), (disk, mount, None)."""


class _Scale:
    """One scale: a row of stretches up to the newest one."""

    __slots__ = ("last", "step_s", "values")

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self.values: array[float] = array("f")
        self.last = 0

    def put(self, place: int, value: float) -> None:
        """The reading of a stretch that is the newest or a newer one."""
        values = self.values
        if not values:
            self.last = place
            values.append(value)
            return
        ahead = place - self.last
        if ahead <= 0:
            values[-1] = max(values[-1], value)
            return
        values.extend([math.nan] * min(ahead - 1, MOST_POINTS))
        values.append(value)
        del values[: max(0, len(values) - MOST_POINTS)]
        self.last = place

    def points(self) -> Iterator[tuple[int, float]]:
        first = self.last - len(self.values) + 1
        return ((first + n, value) for n, value in enumerate(self.values) if value == value)


class Series:
    """One quantity on every scale; a stretch that is over is handed to the next coarser one."""

    __slots__ = ("_scales", "seen_s", "top")

    def __init__(self) -> None:
        self._scales = tuple(_Scale(step_s) for step_s in STEPS_S)
        self.seen_s = 0.0
        self.top: float | None = None

    def feed(self, at_s: float, value: float, top: float | None = None) -> None:
        self.seen_s, self.top = at_s, top
        scale = self._scales[0]
        place = int(at_s // scale.step_s)
        if scale.values and place > scale.last:
            self._hand_on(0)
        scale.put(place, value)

    def _hand_on(self, level: int) -> None:
        if level + 1 == len(self._scales):
            return
        done, coarser = self._scales[level], self._scales[level + 1]
        place = int(done.last * done.step_s // coarser.step_s)
        if coarser.values and place > coarser.last:
            self._hand_on(level + 1)
        coarser.put(place, done.values[-1])

    def filled(self, level: int) -> int:
        """How many stretches of a scale have a reading."""
        return sum(1 for _point in self._scales[level].points())

    def widest(self) -> int:
        """The coarsest scale on which there is enough to see a shape."""
        levels = range(len(self._scales) - 1, 0, -1)
        return next((level for level in levels if self.filled(level) >= ENOUGH), 0)

    def values(self, level: int, until_s: float) -> tuple[float | None, ...]:
        """The stretches up to `until_s`, without the empty ones before the first reading."""
        step_s = self._scales[level].step_s
        last = int(until_s // step_s)
        found: list[float | None] = [None] * MOST_POINTS
        for scale in self._scales[: level + 1]:
            for number, value in scale.points():
                place = MOST_POINTS - 1 - (last - int(number * scale.step_s // step_s))
                if 0 <= place < MOST_POINTS:
                    known = found[place]
                    found[place] = value if known is None else max(known, value)
        first = next((n for n, value in enumerate(found) if value is not None), MOST_POINTS)
        return tuple(found[first:])


class HostCurves:
    """Every series of one host."""

    def __init__(self) -> None:
        self._series: dict[SeriesKey, Series] = {}
        self._tidied_s = 0.0

    def take(self, sample: HostSample, at_s: float) -> None:
        """A sample that arrived at `at_s` of our clock."""
        for gpu in sample.gpus:
            self._card(gpu, at_s)
        limit = sample.cgroup_limit_mib
        used = sample.cgroup_used_mib if limit else sample.mem_used_mib
        self._put(("host", None, None), at_s, used, limit or sample.mem_total_mib)
        if sample.shm_total_mib and sample.shm_free_mib is not None:
            taken = sample.shm_total_mib - sample.shm_free_mib
            self._put(("shm", None, None), at_s, taken, sample.shm_total_mib)
        for disk in sample.disks:
            if disk.total_mib is not None and disk.free_mib is not None:
                taken = disk.total_mib - disk.free_mib
                self._put(("disk", disk.mount, None), at_s, taken, disk.total_mib)
        if at_s - self._tidied_s >= TIDY_EVERY_S:
            self._tidy(at_s)

    def get(self, key: SeriesKey) -> Series | None:
        return self._series.get(key)

    def __len__(self) -> int:
        return len(self._series)

    def _card(self, gpu: GpuSample, at_s: float) -> None:
        self._put(("gpu", gpu.index, None), at_s, gpu.mem_used_mib, gpu.mem_total_mib)
        self._put(("util", gpu.index, None), at_s, gpu.util_pct, 100)
        for process in gpu.processes:
            key = ("process", gpu.index, process.pid)
            self._put(key, at_s, process.mem_used_mib, gpu.mem_total_mib)

    def _put(self, key: SeriesKey, at_s: float, value: float | None, top: float | None) -> None:
        if value is None:
            return
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= MOST_SERIES:
                return
            series = self._series[key] = Series()
        series.feed(at_s, value, top)

    def _tidy(self, at_s: float) -> None:
        self._tidied_s = at_s
        gone = [key for key, one in self._series.items() if at_s - one.seen_s > FORGET_S]
        for key in gone:
            del self._series[key]
