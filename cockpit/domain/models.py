"""What a host told us, as values: samples, cards, processes, disks. Missing is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NewType, TypeAlias

HostName = NewType("HostName", str)
RunId = NewType("RunId", str)

LinkState: TypeAlias = Literal[
    "connecting", "live", "degraded", "stale", "unreachable", "auth_failed", "host_key"
]
"""State of OUR link to a host. `degraded`: connected and sampling, yet without NVML (see `HostSample.source`)."""

Source: TypeAlias = Literal["nvml", "nvidia-smi", "proc"]
"""Where a sample's numbers come from; anything but `nvml` is labelled in the UI."""


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """A process on a card. Keyed by (host, gpu uuid, pid)."""

    pid: int
    name: str | None = None
    user: str | None = None
    command: str | None = None
    mem_used_mib: int | None = None
    cpu_pct: float | None = None
    started_ticks: int | None = None
    """Field 22 of /proc/PID/stat: with the pid it identifies the process; None when not visible."""
    run: RunId | None = None
    visible: bool = True
    """False when the pid belongs to another namespace: shown as such and never signalled."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One card at one moment. `error` holds the driver's own words when the card does not answer."""

    index: int
    uuid: str = ""
    name: str = ""
    bus_id: str | None = None
    util_pct: int | None = None
    mem_util_pct: int | None = None
    mem_used_mib: int | None = None
    mem_total_mib: int | None = None
    mem_reserved_mib: int | None = None
    unified: bool = False
    """Memory is shared with the host (GB10, Jetson): used is the processes' sum, total the host's."""
    temp_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    fan_pct: int | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    mem_clock_mhz: int | None = None
    throttle: tuple[str, ...] | None = None
    """Active reasons: power_cap, thermal_sw, thermal_hw, hw_slowdown, power_brake, sync_boost, …"""
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    remapped_rows: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retired_pages: int | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    pcie_gen_max: int | None = None
    pcie_width_max: int | None = None
    """What card and slot can do together; the link may be slower while the card is idle."""
    nvlinks_up: int | None = None
    pcie_rx_mib_s: float | None = None
    pcie_tx_mib_s: float | None = None
    persistence: bool | None = None
    mig: bool | None = None
    mig_instances: tuple[MigInstance, ...] = ()
    error: str | None = None
    error_code: str | None = None
    """gpu_lost, not_supported, unknown, …: stable, for rules; `error` is for the eye."""
    processes: tuple[ProcessSample, ...] = ()
    processes_age_s: float | None = None
    """Seconds between the reading of `processes` and this sample; None: never read."""

    @property
    def unattributed_mib(self) -> int | None:
        """Memory in use that no listed process explains: managed memory, another container, a leak."""
        if self.mem_used_mib is None or self.processes_age_s is None:
            return None
        known = sum(process.mem_used_mib or 0 for process in self.processes)
        return max(0, self.mem_used_mib - known)


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A slice of a MIG card. Utilisation is not available through NVML."""

    index: int
    uuid: str = ""
    profile: str = ""
    mem_used_mib: int | None = None
    mem_total_mib: int | None = None


@dataclass(frozen=True, slots=True)
class DiskSample:
    """A mounted file system that could hold someone's data."""

    mount: str
    free_mib: int | None = None
    total_mib: int | None = None
    inodes_free_pct: float | None = None
    fstype: str | None = None
    read_mib_s: float | None = None
    write_mib_s: float | None = None


@dataclass(frozen=True, slots=True)
class NetSample:
    """Bytes over all interfaces but loopback."""

    rx_mib_s: float | None = None
    tx_mib_s: float | None = None


@dataclass(frozen=True, slots=True)
class XidEvent:
    """A line of the NVIDIA driver about a card (kernel log or NVML event set)."""

    xid: int
    bus_id: str | None
    gpu_index: int | None
    text: str
    at_s: float


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What does not change while a probe runs: its hello."""

    hostname: str = ""
    user: str = ""
    uid: int | None = None
    kernel: str = ""
    os_name: str = ""
    python: str = ""
    cores: int | None = None
    platform: str | None = None
    """vast, runpod, autodl, lambda, … as detected on the host; None when nothing tells."""
    container: bool | None = None
    driver: str | None = None
    cuda: str | None = None
    """The newest CUDA that the driver serves, as "12.4"."""
    incarnation: str = ""
    """Boot id and start of PID 1: changes when the machine or the container restarted."""
    topology: tuple[str, ...] = ()
    source: Source = "proc"


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """A process on a card with its children and theirs, summed up where they run: a loader's workers above all."""

    pid: int
    run: RunId | None = None
    state: str | None = None
    """Of the process itself, as the kernel has it: R computes, S sleeps, D waits for a disk or the driver."""
    cpu_pct: float | None = None
    """Of one core, over all of its threads."""
    workers: int | None = None
    """None where the kernel does not say who somebody's children are."""
    workers_cpu_pct: float | None = None
    """Of one core, over all workers."""
    workers_busy: int | None = None
    """Those that use a core nearly whole."""
    workers_blocked: int | None = None
    """Those in state D."""


@dataclass(frozen=True, slots=True)
class HostSample:
    """Everything one tick of the probe says about a host."""

    host: HostName
    at_s: float
    """The host's own wall clock, seconds since the epoch."""
    seq: int = 0
    interval_s: float = 1.0
    source: Source = "nvml"
    facts: HostFacts = field(default_factory=HostFacts)
    gpu_error: str | None = None
    """Why there are no cards to see, in the driver's own words."""
    gpu_error_code: str | None = None
    """no_driver, driver_mismatch, nvml_lost, driver_hung, no_gpu, …"""
    cpu_pct: float | None = None
    steal_pct: float | None = None
    iowait_pct: float | None = None
    load1: float | None = None
    mem_used_mib: int | None = None
    mem_total_mib: int | None = None
    swap_used_mib: int | None = None
    swap_total_mib: int | None = None
    cgroup_used_mib: int | None = None
    cgroup_limit_mib: int | None = None
    cgroup_oom_kills: int | None = None
    shm_free_mib: int | None = None
    shm_total_mib: int | None = None
    uptime_s: float | None = None
    pressure_cpu_pct: float | None = None
    """Of the last ten seconds, those in which somebody waited for a core; None where the kernel does not count."""
    pressure_io_pct: float | None = None
    pressure_io_full_pct: float | None = None
    """Those in which nobody could go on for want of a disk."""
    pressure_mem_full_pct: float | None = None
    cpu_quota_cores: float | None = None
    """What the container may use, where that is limited."""
    cpu_throttled_pct: float | None = None
    """Of the quota's periods, those that were cut short."""
    disks: tuple[DiskSample, ...] = ()
    net: NetSample = field(default_factory=NetSample)
    gpus: tuple[GpuSample, ...] = ()
    xids: tuple[XidEvent, ...] = ()
    """Only those that are new since the sample before."""
    trees: tuple[ProcessTree, ...] = ()
    """As last read, every few seconds."""
