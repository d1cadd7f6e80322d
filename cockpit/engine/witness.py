"""What the instruments say at the moment an incident opens: the curve before it, who is on the card, the versions."""

from __future__ import annotations

from typing import Final

from cockpit.domain.curves import STEPS_S, HostCurves, Series, SeriesKey
from cockpit.domain.incident_kin import Place
from cockpit.domain.incident_proof import MOST_HOLDERS, Curve, CurveKind, Holder, Proof
from cockpit.domain.incidents import Finding
from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.domain.text import safe_line
from cockpit.engine.fleet import FleetStore

_NO_CURVE: Final = frozenset({"env", "port", "cost", "driver"})
_BY_USE: Final = frozenset({"hang", "idle", "starved", "nccl"})
"""Families that the card's work tells more of than its memory."""
_SLOW: Final = frozenset({"leak", "near_full", "disk", "shm"})
"""Families that take hours: their curve is as long as there are readings for."""
_WORD_CHARS: Final = 64


class Witness:
    """Takes every sample, and testifies when the desk asks."""

    def __init__(self, fleet: FleetStore) -> None:
        self._fleet = fleet
        self._curves: dict[HostName, HostCurves] = {}

    def take(self, sample: HostSample, wall_s: float) -> None:
        curves = self._curves.get(sample.host)
        if curves is None:
            curves = self._curves[sample.host] = HostCurves()
        curves.take(sample, wall_s)

    def forget(self, host: HostName) -> None:
        self._curves.pop(host, None)

    def testify(self, finding: Finding, place: Place, at_s: float) -> Proof | None:
        """None when nothing is known of the host."""
        state = None if place.host is None else self._fleet.hosts.get(place.host)
        sample = None if state is None else state.latest
        if sample is None:
            return None
        card = _card(sample, finding, place)
        return Proof(
            self._curve(sample, card, finding, at_s), _company(card), _machine(sample, card)
        )

    def _curve(
        self, sample: HostSample, card: GpuSample | None, finding: Finding, at_s: float
    ) -> Curve | None:
        curves = self._curves.get(sample.host)
        if curves is None or finding.family in _NO_CURVE:
            return None
        for key, name in _wanted(sample, card, finding):
            series = curves.get(key)
            if series is not None:
                return _drawn(series, key, name, finding, at_s)
        return None


def _drawn(
    series: Series, key: SeriesKey, name: str, finding: Finding, at_s: float
) -> Curve | None:
    level = series.widest() if finding.family in _SLOW else 0
    step_s = STEPS_S[level]
    values = series.values(level, at_s)
    kind: CurveKind = key[0]  # type: ignore[assignment]
    if not values:
        return None
    gpu = key[1] if isinstance(key[1], int) else None
    return Curve(kind, step_s, at_s, values, series.top, safe_line(name)[:_WORD_CHARS], gpu)


def _wanted(
    sample: HostSample, card: GpuSample | None, finding: Finding
) -> list[tuple[SeriesKey, str]]:
    """Series that would tell, the best first."""
    found: list[tuple[SeriesKey, str]] = []
    pid = finding.facts.get("pid")
    if finding.family == "disk":
        return [(("disk", mount, None), mount) for mount in _mounts(sample, finding)]
    if finding.family == "shm" or finding.cause == "leak_shm":
        return [(("shm", None, None), "/dev/shm")]
    if card is not None and finding.family != "host_oom":
        if finding.family in _BY_USE:
            found.append((("util", card.index, None), ""))
        if finding.family == "leak" and isinstance(pid, int):
            found.append((("process", card.index, pid), _process_name(card, pid)))
        return [*found, (("gpu", card.index, None), "")]
    return [(("host", None, None), "")]


def _mounts(sample: HostSample, finding: Finding) -> list[str]:
    """The file system that the path is on, else the fullest one."""
    path = str(finding.facts.get("path", ""))
    mounts = [disk.mount for disk in sample.disks]
    over = [one for one in mounts if path == one or path.startswith(one.rstrip("/") + "/")]
    if over:
        return [max(over, key=len)]
    by_room = sorted(
        sample.disks, key=lambda disk: disk.free_mib if disk.free_mib is not None else 1e12
    )
    return [disk.mount for disk in by_room[:1]]


def _card(sample: HostSample, finding: Finding, place: Place) -> GpuSample | None:
    """The incident's own card; where none is named, the fullest of its run."""
    if place.gpu is not None:
        return next((gpu for gpu in sample.gpus if gpu.index == place.gpu), None)
    ours = [
        gpu
        for gpu in sample.gpus
        if place.run is not None and any(one.run == place.run for one in gpu.processes)
    ]
    if not ours and finding.family in ("gpu_oom", "kv_cache") and len(sample.gpus) == 1:
        ours = list(sample.gpus)
    return max(ours, key=lambda gpu: gpu.mem_used_mib or 0, default=None)


def _company(card: GpuSample | None) -> tuple[Holder, ...] | None:
    if card is None or card.processes_age_s is None:
        return None
    by_size = sorted(card.processes, key=lambda one: -(one.mem_used_mib or 0))[:MOST_HOLDERS]
    return tuple(
        Holder(
            one.pid,
            safe_line(one.name or "")[:_WORD_CHARS],
            safe_line(one.user or "")[:_WORD_CHARS],
            one.mem_used_mib,
            one.run or "",
        )
        for one in by_size
    )


def _process_name(card: GpuSample, pid: int) -> str:
    name = next((one.name for one in card.processes if one.pid == pid), None)
    return f"{name} {pid}" if name else f"pid {pid}"


def _machine(sample: HostSample, card: GpuSample | None) -> dict[str, str]:
    facts = sample.facts
    told = {
        "gpu": card.name if card is not None else "",
        "driver": facts.driver or "",
        "cuda": facts.cuda or "",
        "os": facts.os_name,
        "kernel": facts.kernel,
        "platform": facts.platform or "",
    }
    return {name: safe_line(text)[:_WORD_CHARS] for name, text in told.items() if text}
