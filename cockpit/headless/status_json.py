"""A host's state as the JSON object of `cockpit status`: these keys, always all of them, unknown is null."""

from __future__ import annotations

from typing import TypeAlias

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import GpuSample, HostFacts, HostSample, ProcessSample
from cockpit.engine.fleet import HostState
from cockpit.headless.status_words import reason

JsonValue: TypeAlias = "str | int | float | bool | None | list[JsonValue] | dict[str, JsonValue]"
JsonObject: TypeAlias = dict[str, JsonValue]


def status_object(spec: HostSpec, state: HostState, now_s: float) -> JsonObject:
    sample = state.latest
    facts = state.facts or HostFacts()
    age_s = state.age_s(now_s)
    return {
        "host": spec.name,
        "state": state.link,
        "code": state.code,
        "fingerprint": state.fingerprint,
        "age_s": None if age_s is None else round(age_s, 2),
        "reason": reason(state),
        "platform": spec.platform or facts.platform,
        "driver": facts.driver,
        "cuda": facts.cuda,
        "price_per_h": spec.price_per_h,
        "currency": spec.currency,
        "cpu_pct": sample.cpu_pct if sample else None,
        "load1": sample.load1 if sample else None,
        "mem_used_mib": sample.mem_used_mib if sample else None,
        "mem_total_mib": sample.mem_total_mib if sample else None,
        "disks": _disks(sample) if sample else [],
        "gpus": [gpu_object(gpu) for gpu in sample.gpus] if sample else [],
    }


def _disks(sample: HostSample) -> list[JsonValue]:
    return [
        {"mount": disk.mount, "free_mib": disk.free_mib, "total_mib": disk.total_mib}
        for disk in sample.disks
    ]


def gpu_object(gpu: GpuSample) -> JsonObject:
    return {
        "index": gpu.index,
        "uuid": gpu.uuid or None,
        "name": gpu.name or None,
        "util_pct": gpu.util_pct,
        "mem_used_mib": gpu.mem_used_mib,
        "mem_total_mib": gpu.mem_total_mib,
        "temp_c": gpu.temp_c,
        "power_w": gpu.power_w,
        "power_limit_w": gpu.power_limit_w,
        "sm_clock_mhz": gpu.sm_clock_mhz,
        "throttle": None if gpu.throttle is None else list(gpu.throttle),
        "ecc_uncorrected": gpu.ecc_uncorrected,
        "mig": gpu.mig,
        "error": gpu.error,
        "processes": [_process(process) for process in gpu.processes],
    }


def _process(process: ProcessSample) -> JsonObject:
    return {
        "pid": process.pid,
        "name": process.name,
        "user": process.user,
        "mem_used_mib": process.mem_used_mib,
        "run": process.run,
    }
