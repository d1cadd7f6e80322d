"""What a hit means once its numbers are read: exit codes, Xids, signals, paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cockpit.domain.signatures.match import Hit
from cockpit.domain.signatures.values import signal_number
from cockpit.domain.signatures.xids import cause_of, meaning, nvlink_severity

_SIGNALS: Final = frozenset({2, 4, 6, 7, 8, 9, 11, 15})
"""As -N from a launcher, or as 128 + N from a shell."""
_KILLED_REMEDIES: Final = ("check_kernel_log", "fewer_workers", "raise_container_limit")
_SHM_REMEDIES: Final = ("shm_size", "fewer_workers", "file_system_sharing")
_CRASH_REMEDIES: Final = ("check_kernel_log", "read_first_error")
FRAGMENTED_MIB: Final = 4096.0
FRAGMENTED_SHARE: Final = 0.25
"""A quarter of what is held was never needed at once, and it is some GiB: the cache is in pieces."""
_PORT_GROUPS: Final = ("port2", "port3", "port4")
_PORT_IN_TEXT: Final = re.compile(r"\bport: (\d{2,5})\b")
_CODE_IN_BRACES: Final = re.compile(r":\s*(-?\d{1,5})\b")


def refine(hit: Hit) -> Hit | None:
    """The hit with what its details say, or None when they say that it is nothing."""
    rule = _RULES.get(hit.signature.id)
    return rule(hit) if rule else hit


def _by_code(hit: Hit) -> Hit | None:
    """-9 is the kernel or a person, -7 shared memory, -15 a request to stop: not the launcher."""
    code = hit.facts.get("exitcode")
    if not isinstance(code, int):
        return hit
    number = -code if code < 0 else code - 128
    return _by_signal(hit, number if number in _SIGNALS else None)


def _by_signal(hit: Hit, number: int | None) -> Hit | None:
    if number is None:
        return hit
    hit = replace(hit, facts={**hit.facts, "signal": number})
    if number == 9:
        return replace(hit, family="host_oom", cause="killed", remedies=_KILLED_REMEDIES)
    if number == 7:
        return replace(hit, family="shm", cause="shm_full", remedies=_SHM_REMEDIES)
    if number in (2, 15):
        return replace(hit, role="fallout", severity="notice", cause="told_to_stop")
    return replace(hit, family="crash", cause="native_crash", remedies=_CRASH_REMEDIES)


def _engine_init(hit: Hit) -> Hit | None:
    codes = [int(code) for code in _CODE_IN_BRACES.findall(hit.details.get("procs", ""))]
    if not codes:
        return hit
    return _by_code(replace(hit, facts={**hit.facts, "exitcode": codes[0]}))


def _data_loader(hit: Hit) -> Hit | None:
    name = hit.details.get("signal", "").strip()
    refined = _by_signal(hit, signal_number(name))
    return None if refined is None or refined.role == "fallout" else refined


def _spawned(hit: Hit) -> Hit | None:
    number = hit.facts.get("signal") or signal_number(hit.details.get("signal", ""))
    return _by_signal(hit, number) if isinstance(number, int) else hit


def _xid(hit: Hit) -> Hit | None:
    fact = hit.facts.get("xid")
    code = fact if isinstance(fact, int) else -1
    known = meaning(code)
    return replace(
        hit,
        severity=nvlink_severity(code, hit.text) or known.severity,
        role="fallout" if "prev" in hit.details else known.weight,
        cause=cause_of(code),
        remedies=known.advice,
    )


def _nvswitch(hit: Hit) -> Hit | None:
    fatal = not hit.details.get("msg", "").lower().startswith(("non-fatal", "nonfatal"))
    return hit if fatal else replace(hit, severity="warning")


def _pcie(hit: Hit) -> Hit | None:
    words = hit.details.get("sev", "") + hit.details.get("kind", "")
    corrected = "Corrected" in words or words.startswith("Uncorrected (Non")
    return replace(hit, severity="notice", role="metric") if corrected else hit


def _disk_full(hit: Hit) -> Hit | None:
    if "/dev/shm" in hit.text:
        return replace(hit, family="shm", cause="shm_full", remedies=_SHM_REMEDIES)
    return replace(hit, facts={**hit.facts, "errno": 28})


def _shared_memory(hit: Hit) -> Hit | None:
    if hit.facts.get("errno") in (23, 24):
        remedies = ("nofile_limit", "file_system_sharing")
        return replace(hit, family="env", cause="too_many_files", remedies=remedies)
    return hit


def _ray(hit: Hit) -> Hit | None:
    return None if hit.details.get("n") == "0" else hit


def _nccl_last(hit: Hit) -> Hit | None:
    if "out of memory" not in hit.text:
        return hit
    return replace(hit, family="gpu_oom", cause="nccl_buffers", remedies=("leave_room_for_nccl",))


def _tensorflow(hit: Hit) -> Hit | None:
    if "device:CPU" in hit.text:
        return replace(hit, family="host_oom", cause="host_allocation", remedies=("smaller_batch",))
    return hit


def _soft_watchdog(hit: Hit) -> Hit | None:
    return replace(hit, severity="warning") if hit.details.get("soft") == "True" else hit


def _scheduler_end(hit: Hit) -> Hit | None:
    causes = {"TIME LIMIT": "time_limit", "PREEMPTION": "preempted", "NODE FAILURE": "node_failed"}
    return replace(hit, cause=causes.get(hit.details.get("why", ""), hit.cause))


def _kernel_kill(hit: Hit) -> Hit | None:
    in_group = "emory cgroup" in hit.text or "CONSTRAINT_MEMCG" in hit.text
    return replace(hit, cause="cgroup_oom_kill") if in_group else hit


def _kv_memory(hit: Hit) -> Hit | None:
    available = hit.facts.get("available_mib")
    return (
        hit if available is None else replace(hit, facts={**hit.facts, "kv_cache_mib": available})
    )


def _rendezvous(hit: Hit) -> Hit | None:
    """A master that cannot listen because its port is taken."""
    if "EADDRINUSE" not in hit.text and "already in use" not in hit.text:
        return hit
    remedies = ("other_master_port", "kill_orphan")
    port = replace(hit, family="port", role="cause", cause="port_taken", remedies=remedies)
    return _port(port)


def _port(hit: Hit) -> Hit | None:
    number = next((hit.details[name] for name in _PORT_GROUPS if name in hit.details), None)
    if number is None and (found := _PORT_IN_TEXT.search(hit.text)):
        number = found[1]
    return hit if number is None else replace(hit, facts={**hit.facts, "port": int(number)})


def _triton(hit: Hit) -> Hit | None:
    return None if hit.handled else hit


def _memory_report(hit: Hit) -> Hit | None:
    """What is held far above the most that was ever needed lies in pieces."""
    allocated, reserved = hit.facts.get("allocated_mib"), hit.facts.get("reserved_mib")
    if not isinstance(allocated, int | float) or not isinstance(reserved, int | float):
        return None
    spare = reserved - allocated
    return hit if spare >= FRAGMENTED_MIB and spare >= FRAGMENTED_SHARE * reserved else None


_RULES: Final[dict[str, Callable[[Hit], Hit | None]]] = {
    "elastic-fail": _by_code, "elastic-rc": _by_code, "vllm-worker-died": _by_code,
    "vllm-proc-rc": _by_code, "dl-exit": _by_code, "vllm-core-init": _engine_init,
    "dl-signal": _data_loader, "mp-spawn": _spawned, "xid": _xid, "sxid": _nvswitch,
    "k-aer": _pcie, "enospc": _disk_full, "shm-nospace": _shared_memory, "ray-oom": _ray,
    "nccl-last": _nccl_last, "tf-oom": _tensorflow, "sgl-watchdog": _soft_watchdog,
    "slurm-limit": _scheduler_end, "k-oom-kill": _kernel_kill, "k-oom-ctx": _kernel_kill,
    "ds-memory": _memory_report, "megatron-memory": _memory_report, "triton-oor": _triton, "vllm-kvshort": _kv_memory,
    "tcpstore": _rendezvous, "port": _port, "elastic-signal": _spawned,
}  # fmt: skip
