"""One host as the probe's lines add up to it: a line says what changed, a sample says everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from typing import Final, TypeVar, cast

from cockpit.domain.models import (
    DiskSample,
    GpuSample,
    HostFacts,
    HostName,
    HostSample,
    MigInstance,
    NetSample,
    ProcessSample,
    ProcessTree,
    Source,
    XidEvent,
)
from cockpit.domain.quick_make import quick_maker
from cockpit.domain.units import LATEST_S
from cockpit.domain.wire_fields import (
    DISK_CHECKS,
    FACT_CHECKS,
    GPU_CHECKS,
    HOST_CHECKS,
    MIG_CHECKS,
    NET_CHECKS,
    PROCESS_CHECKS,
    SECONDS,
    TREE_CHECKS,
    Checks,
    code,
    number,
    one_of,
    text,
    text_or_none,
    whole,
)

GPUS_MAX: Final = 64
PROCESSES_MAX: Final = 512
HOST_PROCESSES_MAX: Final = 1024
"""Over all cards of a host: each keeps its share, 16 at least."""
DISKS_MAX: Final = 64
MIG_MAX: Final = 64
XIDS_MAX: Final = 64
TREES_MAX: Final = 64

Value = TypeVar("Value")

_SOURCE: Final = one_of("nvml", "nvidia-smi", "proc")
_INTERVAL: Final = number(0.0, 3600.0)
_AT: Final = number(0.0, LATEST_S)
_WHOLE: Final = whole(0, (1 << 62) - 1)
_INDEX: Final = whole(0, GPUS_MAX - 1)
_XID: Final = whole(1, 10_000)
_ERROR: Final = text_or_none(400)
_BUS: Final = text_or_none(32)
_LINE: Final = text(400)


def _blank(kind: type) -> list[object]:
    """A dataclass's defaults by position, None where there is no default."""
    values: list[object] = []
    for field in cast("tuple[Field[object], ...]", fields(kind)):
        if field.default_factory is not MISSING:
            values.append(field.default_factory())
        else:
            values.append(None if field.default is MISSING else field.default)
    return values


_make_gpu: Final = quick_maker(GpuSample)
_GPU_BLANK: Final = _blank(GpuSample)
_GPU_PLACE: Final = {field.name: place for place, field in enumerate(fields(GpuSample))}
_IDENTITY: Final = [_GPU_PLACE[name] for name in ("index", "uuid", "name", "bus_id")]
_ERROR_AT: Final = _GPU_PLACE["error"]
_PROCESSES_AT: Final = _GPU_PLACE["processes"]
_AGE_AT: Final = _GPU_PLACE["processes_age_s"]
_MIG_AT: Final = _GPU_PLACE["mig_instances"]


def _objects(value: object, most: int) -> Iterator[Mapping[str, object]]:
    """The objects of a list, at most `most` of them; nothing when it is no list."""
    if type(value) is list:
        for item in value[:most]:
            if type(item) is dict:
                yield item


def _fill(values: list[object], checks: Checks, item: Mapping[str, object]) -> list[object]:
    for name, value in item.items():
        known = checks.get(name)
        if known is not None:
            place, check = known
            values[place] = None if value is None else check(value)
    return values


def _built(
    make: Callable[..., Value], blank: list[object], checks: Checks, item: Mapping[str, object]
) -> Value:
    values = blank.copy()
    for name, value in item.items():
        known = checks.get(name)
        if known is not None and value is not None:
            place, check = known
            values[place] = check(value)
    return make(*values)


class MergedGpu:
    """One card's newest values, by position in GpuSample."""

    __slots__ = ("_processes_mono_s", "_values")

    def __init__(self, index: int) -> None:
        self._values = _GPU_BLANK.copy()
        self._values[0] = index
        self._processes_mono_s: float | None = None

    def merge(self, item: Mapping[str, object], mono_s: float, most: int) -> None:
        """Take what a line says of this card; a card with an error keeps its identity alone."""
        if item.get("error") is not None:
            self._forget_readings()
        values = self._values
        _fill(values, GPU_CHECKS, item)
        for name in ("uuid", "name"):
            if name in item and values[_GPU_PLACE[name]] is None:
                values[_GPU_PLACE[name]] = ""
        if values[_GPU_PLACE["unified"]] is None:
            values[_GPU_PLACE["unified"]] = False
        if "processes" in item:
            self._take_processes(item["processes"], mono_s, most)
        if "mig_instances" in item:
            slices = (
                _built(MigInstance, _blank(MigInstance), MIG_CHECKS, part)
                for part in _objects(item["mig_instances"], MIG_MAX)
            )
            values[_MIG_AT] = tuple(part for part in slices if part.index is not None)

    def sample(self, mono_s: float) -> GpuSample:
        if self._processes_mono_s is not None:
            self._values[_AGE_AT] = max(0.0, round(mono_s - self._processes_mono_s, 3))
        return _make_gpu(self._values)

    def _forget_readings(self) -> None:
        kept = [self._values[place] for place in _IDENTITY]
        self._values = _GPU_BLANK.copy()
        for place, value in zip(_IDENTITY, kept, strict=True):
            self._values[place] = value
        self._processes_mono_s = None

    def _take_processes(self, listed: object, mono_s: float, most: int) -> None:
        if type(listed) is not list:
            self._values[_PROCESSES_AT] = ()
            self._values[_AGE_AT] = self._processes_mono_s = None
            return
        found: dict[int, ProcessSample] = {}
        for item in _objects(listed, most):
            process = _built(ProcessSample, _PROCESS_BLANK, PROCESS_CHECKS, item)
            if process.pid is not None:
                found.setdefault(process.pid, process)
        self._values[_PROCESSES_AT] = tuple(found.values())
        self._processes_mono_s = mono_s


_PROCESS_BLANK: Final = _blank(ProcessSample)
_DISK_BLANK: Final = _blank(DiskSample)
_TREE_BLANK: Final = _blank(ProcessTree)


class MergedHost:
    """Everything the lines of one probe added up to. `take` merges a line and gives the sample."""

    def __init__(self, host: HostName) -> None:
        self._host = host
        self.facts = HostFacts()
        self.interval_s = 1.0
        self._source: Source = "proc"
        self._gpu_error: str | None = None
        self._gpu_error_code: str | None = None
        self._numbers: dict[str, float | int | None] = {}
        self._net = NetSample()
        self._disks: tuple[DiskSample, ...] = ()
        self._gpus: dict[int, MergedGpu] = {}
        self._trees: tuple[ProcessTree, ...] = ()

    def take_facts(self, facts: object) -> None:
        """Merge a hello's facts, or those that became known later."""
        if type(facts) is not dict or not facts:
            return
        values = [getattr(self.facts, field.name) for field in fields(HostFacts)]
        _fill(values, FACT_CHECKS, facts)
        blank = _blank(HostFacts)
        for place, field in enumerate(fields(HostFacts)):
            if values[place] is None:
                values[place] = blank[place]
            if field.name == "source":
                self._source = values[place]
        self.facts = HostFacts(*values)

    def take_interval(self, interval: object) -> None:
        checked = _INTERVAL(interval)
        if isinstance(checked, float):
            self.interval_s = checked

    def take(self, record: Mapping[str, object]) -> HostSample | None:
        """Merge a sample's record; None when it does not say when it was taken."""
        at_s, mono_s = _AT(record.get("at")), SECONDS(record.get("mono"))
        if not isinstance(at_s, float) or not isinstance(mono_s, float):
            return None
        if "facts" in record:
            self.take_facts(record["facts"])
        if "interval" in record:
            self.take_interval(record["interval"])
        self._take_host(record)
        self._take_gpus(record, mono_s)
        seq = _WHOLE(record.get("seq"))
        return HostSample(
            host=self._host,
            at_s=at_s,
            seq=seq if isinstance(seq, int) else 0,
            interval_s=self.interval_s,
            source=self._source,
            facts=self.facts,
            gpu_error=self._gpu_error,
            gpu_error_code=self._gpu_error_code,
            disks=self._disks,
            net=self._net,
            gpus=tuple(gpu.sample(mono_s) for gpu in self._gpus.values()),
            xids=_xids(record["xids"]) if "xids" in record else (),
            trees=self._trees,
            **self._numbers,  # type: ignore[arg-type]
        )

    def _take_host(self, record: Mapping[str, object]) -> None:
        said = record.get("host")
        if type(said) is dict:
            for name, value in said.items():
                check = HOST_CHECKS.get(name)
                if check is not None:
                    self._numbers[name] = cast("float | int | None", check(value))
            if "net_rx_mib_s" in said or "net_tx_mib_s" in said:
                rx, tx = (check(said.get(name)) for name, check in NET_CHECKS.items())
                self._net = NetSample(cast("float | None", rx), cast("float | None", tx))
        if "disks" in record:
            disks = (
                _built(DiskSample, _DISK_BLANK, DISK_CHECKS, item)
                for item in _objects(record["disks"], DISKS_MAX)
            )
            self._disks = tuple(disk for disk in disks if disk.mount)
        if "trees" in record:
            trees = (
                _built(ProcessTree, _TREE_BLANK, TREE_CHECKS, item)
                for item in _objects(record["trees"], TREES_MAX)
            )
            self._trees = tuple(tree for tree in trees if tree.pid is not None)
        if "gpu_error_code" in record:
            self._gpu_error_code = code(record["gpu_error_code"])
            self._gpu_error = cast("str | None", _ERROR(record.get("gpu_error")))

    def _take_gpus(self, record: Mapping[str, object], mono_s: float) -> None:
        if "source" in record:
            self._source = cast("Source | None", _SOURCE(record["source"])) or self._source
        listed = record.get("cards")
        if type(listed) is list:
            indices = [index for index in listed[:GPUS_MAX] if _INDEX(index) is not None]
            self._gpus = {index: self._gpus.get(index) or MergedGpu(index) for index in indices}
        read_s = record.get("gpus_mono", mono_s)
        read_mono_s = read_s if type(read_s) is float and 0 <= read_s <= mono_s else mono_s
        most = max(16, min(PROCESSES_MAX, HOST_PROCESSES_MAX // max(1, len(self._gpus))))
        for item in _objects(record.get("gpus"), GPUS_MAX):
            index = _INDEX(item.get("index"))
            card = self._gpus.get(index) if isinstance(index, int) else None
            if card is not None:
                card.merge(item, read_mono_s, most)


def _xids(listed: object) -> tuple[XidEvent, ...]:
    events = []
    for item in _objects(listed, XIDS_MAX):
        xid, at_s = _XID(item.get("xid")), _AT(item.get("at_s"))
        if not isinstance(xid, int) or not isinstance(at_s, float):
            continue
        index = _INDEX(item.get("gpu_index"))
        events.append(
            XidEvent(
                xid=xid,
                bus_id=cast("str | None", _BUS(item.get("bus_id"))),
                gpu_index=index if isinstance(index, int) else None,
                text=cast("str", _LINE(item.get("text"))),
                at_s=at_s,
            )
        )
    return tuple(events)
