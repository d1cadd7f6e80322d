"""Samples, cards and processes for tests: a healthy RTX 4090 host unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cockpit.domain.models import (
    DiskSample,
    GpuSample,
    HostFacts,
    HostName,
    HostSample,
    NetSample,
    ProcessSample,
    XidEvent,
)
from cockpit.engine.fleet import FleetStore
from cockpit.engine.link_state import reason_of_sample

AT_S = 1_700_000_000.0
"""The wall clock of every builder's first sample."""


def gpu(index: int = 0, **changes: object) -> GpuSample:
    """A card that answers everything."""
    card = GpuSample(
        index=index,
        uuid=f"GPU-{index:08x}-0000-4000-8000-000000000000",
        name="NVIDIA GeForce RTX 4090",
        bus_id=f"00000000:{index + 1:02X}:00.0",
        util_pct=97,
        mem_util_pct=41,
        mem_used_mib=20_480,
        mem_total_mib=24_564,
        mem_reserved_mib=450,
        temp_c=64,
        power_w=402.5,
        power_limit_w=450.0,
        fan_pct=60,
        sm_clock_mhz=2520,
        sm_clock_max_mhz=3105,
        mem_clock_mhz=10_501,
        throttle=(),
        ecc_corrected=None,
        ecc_uncorrected=None,
        pcie_gen=4,
        pcie_width=16,
        persistence=True,
        mig=False,
        processes_age_s=0.0,
    )
    return replace(card, **changes)  # type: ignore[arg-type]


def h100(index: int = 0, **changes: object) -> GpuSample:
    """A data-centre card: more memory, ECC counters."""
    base: dict[str, object] = {
        "name": "NVIDIA H100 80GB HBM3",
        "mem_used_mib": 79_974,
        "mem_total_mib": 81_559,
        "power_w": 655.0,
        "power_limit_w": 700.0,
        "sm_clock_mhz": 1980,
        "sm_clock_max_mhz": 1980,
        "fan_pct": None,
        "ecc_corrected": 0,
        "ecc_uncorrected": 0,
        "remapped_rows": 0,
        "remap_pending": False,
    }
    return gpu(index, **{**base, **changes})


def lost_gpu(index: int = 0, **changes: object) -> GpuSample:
    """A card that fell off the bus: it keeps its identity and nothing else."""
    card = GpuSample(
        index=index,
        uuid=f"GPU-{index:08x}-0000-4000-8000-000000000000",
        name="NVIDIA H100 80GB HBM3",
        bus_id=f"00000000:{index + 1:02X}:00.0",
        error="GPU is lost",
        error_code="gpu_lost",
    )
    return replace(card, **changes)  # type: ignore[arg-type]


def process(pid: int = 4121, **changes: object) -> ProcessSample:
    found = ProcessSample(
        pid=pid,
        name="python",
        user="root",
        command="python train.py --lr 1e-4",
        mem_used_mib=20_000,
        cpu_pct=101.0,
        started_ticks=123_456,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def disk(mount: str = "/", **changes: object) -> DiskSample:
    found = DiskSample(
        mount=mount,
        free_mib=18_432,
        total_mib=81_920,
        inodes_free_pct=93.0,
        fstype="ext4",
        read_mib_s=0.5,
        write_mib_s=12.0,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def xid(number: int = 79, **changes: object) -> XidEvent:
    event = XidEvent(
        xid=number,
        bus_id="00000000:04:00.0",
        gpu_index=3,
        text=f"NVRM: Xid (PCI:0000:04:00): {number}, pid=4121, GPU has fallen off the bus.",
        at_s=AT_S,
    )
    return replace(event, **changes)  # type: ignore[arg-type]


def host_facts(**changes: object) -> HostFacts:
    facts = HostFacts(
        hostname="a1b2c3",
        user="root",
        uid=0,
        kernel="5.15.0-91-generic",
        os_name="Ubuntu 22.04.3 LTS",
        python="3.10.12",
        cores=32,
        platform="vast",
        container=True,
        driver="550.54.15",
        cuda="12.4",
        incarnation="boot-1/100",
        source="nvml",
    )
    return replace(facts, **changes)  # type: ignore[arg-type]


def host_sample(
    host: str = "vast-a",
    *,
    gpus: Iterable[GpuSample] | int = 1,
    seq: int = 0,
    facts: HostFacts | None = None,
    **changes: object,
) -> HostSample:
    """One tick of a healthy host; `gpus` is the cards, or how many builders' cards there are."""
    cards = tuple(gpu(n) for n in range(gpus)) if isinstance(gpus, int) else tuple(gpus)
    sample = HostSample(
        host=HostName(host),
        at_s=AT_S + seq,
        seq=seq,
        facts=facts or host_facts(),
        cpu_pct=12.0,
        steal_pct=0.0,
        load1=1.5,
        mem_used_mib=41_984,
        mem_total_mib=65_536,
        swap_used_mib=0,
        swap_total_mib=0,
        cgroup_used_mib=30_000,
        cgroup_limit_mib=60_000,
        cgroup_oom_kills=0,
        shm_free_mib=30_000,
        shm_total_mib=32_768,
        uptime_s=86_400.0 + seq,
        disks=(disk(),),
        net=NetSample(rx_mib_s=1.5, tx_mib_s=0.5),
        gpus=cards,
    )
    return replace(sample, **changes)  # type: ignore[arg-type]


def degraded_sample(host: str = "a100", **changes: object) -> HostSample:
    """A host whose driver library and kernel module differ: no cards, live CPU and RAM."""
    base: dict[str, object] = {
        "gpus": (),
        "facts": host_facts(driver=None, cuda=None, source="proc"),
        "source": "proc",
        "gpu_error": "Failed to initialize NVML: Driver/library version mismatch",
        "gpu_error_code": "driver_mismatch",
    }
    return host_sample(host, **{**base, **changes})  # type: ignore[arg-type]


def fleet_of(*samples: HostSample, received_s: float = 0.0) -> FleetStore:
    """A store in which every sample's host is live (or degraded, when it says why it has no cards)."""
    fleet = FleetStore()
    for sample in samples:
        fleet.add(sample.host)
        fleet.record(sample, received_s)
        link, code, why = reason_of_sample(sample, has_python=True)
        fleet.set_link(sample.host, link, code=code, **why)
    return fleet


def tape(
    host: str, used_mib: Iterable[int], *, util_pct: int = 97, interval_s: float = 1.0
) -> list[HostSample]:
    """A run of samples of a one-card host whose memory takes these values in turn."""
    return [
        host_sample(
            host,
            gpus=(gpu(0, mem_used_mib=used, util_pct=util_pct),),
            seq=seq,
            at_s=AT_S + seq * interval_s,
            interval_s=interval_s,
        )
        for seq, used in enumerate(used_mib)
    ]
