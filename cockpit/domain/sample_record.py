"""A sample as one line of the wire that says everything: what `cockpit.domain.wire` reads back as an equal sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from cockpit.domain.models import (
    DiskSample,
    GpuSample,
    HostFacts,
    HostSample,
    MigInstance,
    ProcessSample,
    ProcessTree,
    XidEvent,
)
from cockpit.domain.wire_fields import HOST_CHECKS

_PARTS: Final = frozenset({"mig_instances", "processes", "processes_age_s"})


def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


_GPU: Final = tuple(name for name in _names(GpuSample) if name not in _PARTS)
_PROCESS, _MIG, _DISK = _names(ProcessSample), _names(MigInstance), _names(DiskSample)
_TREE, _XID, _FACTS = _names(ProcessTree), _names(XidEvent), _names(HostFacts)


def sample_record(sample: HostSample, mono_s: float | None = None) -> dict[str, object]:
    """Every field, null where nothing is known. `mono_s`: the host's monotonic clock, where it is known."""
    mono_s = sample.at_s if mono_s is None else mono_s
    ages = [gpu.processes_age_s for gpu in sample.gpus if gpu.processes_age_s is not None]
    host: dict[str, object] = {name: getattr(sample, name) for name in HOST_CHECKS}
    host |= {"net_rx_mib_s": sample.net.rx_mib_s, "net_tx_mib_s": sample.net.tx_mib_s}
    return {
        "k": "sample",
        "seq": sample.seq,
        "at": sample.at_s,
        "mono": float(mono_s),
        "gpus_mono": max(0.0, float(mono_s) - (ages[0] if ages else 0.0)),
        "interval": sample.interval_s,
        "source": sample.source,
        "facts": facts_record(sample.facts),
        "host": host,
        "gpu_error_code": sample.gpu_error_code,
        "gpu_error": sample.gpu_error,
        "cards": [gpu.index for gpu in sample.gpus],
        "gpus": [_gpu(gpu) for gpu in sample.gpus],
        "disks": [_told(disk, _DISK) for disk in sample.disks],
        "trees": [_told(tree, _TREE) for tree in sample.trees],
        "xids": [_told(event, _XID) for event in sample.xids],
    }


def facts_record(facts: HostFacts) -> dict[str, object]:
    return {**_told(facts, _FACTS), "topology": list(facts.topology)}


def _told(value: object, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(value, name) for name in names}


def _gpu(gpu: GpuSample) -> Mapping[str, object]:
    told = _told(gpu, _GPU)
    told["throttle"] = None if gpu.throttle is None else list(gpu.throttle)
    told["mig_instances"] = [_told(one, _MIG) for one in gpu.mig_instances]
    if gpu.processes_age_s is not None or gpu.processes:
        told["processes"] = [_told(one, _PROCESS) for one in gpu.processes]
    return told
