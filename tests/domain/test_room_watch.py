from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.detectors import Signal
from cockpit.domain.models import HostName, HostSample
from cockpit.domain.room_watch import RoomWatch
from tests.builders.samples import disk

ROOMY = HostSample(
    HostName("h"),
    0.0,
    mem_used_mib=1000,
    mem_total_mib=64_000,
    shm_free_mib=30_000,
    shm_total_mib=32_000,
    disks=(disk("/"), disk("/data")),
)


def told(watch: RoomWatch, sample: HostSample, start_s: int, seconds: int = 200) -> list[Signal]:
    moments = (replace(sample, at_s=float(at)) for at in range(start_s, start_s + seconds))
    return [signal for moment in moments for signal in watch.feed(moment)]


@pytest.mark.parametrize(
    ("changes", "family", "signature", "cause"),
    [
        ({"mem_used_mib": 63_500}, "host_oom", "host-near-full", "host_near_full"),
        (
            {"cgroup_used_mib": 15_900, "cgroup_limit_mib": 16_000},
            "host_oom",
            "host-near-full",
            "host_near_full",
        ),
        ({"shm_free_mib": 100}, "shm", "shm-near-full", "shm_near_full"),
        (
            {"disks": (disk("/"), disk("/data", free_mib=300))},
            "disk",
            "disk-low:/data",
            "disk_low",
        ),
        (
            {"disks": (disk("/", inodes_free_pct=0.2),)},
            "disk",
            "inodes-low:/",
            "inodes_low",
        ),
    ],
    ids=["host", "container", "shm", "disk", "inodes"],
)
def test_what_runs_out_is_told_once_and_is_over_when_there_is_room(
    changes: dict[str, object], family: str, signature: str, cause: str
) -> None:
    watch = RoomWatch()
    assert told(watch, ROOMY, 0) == []
    [signal] = told(watch, replace(ROOMY, **changes), 200)  # type: ignore[arg-type]
    finding = signal.finding
    assert (finding.family, finding.signature, finding.cause, finding.severity) == (
        family,
        signature,
        cause,
        "warning",
    )
    assert [one.action for one in told(watch, ROOMY, 400)] == ["close"]


@pytest.mark.parametrize(
    "changes",
    [
        {"cgroup_used_mib": 15_000, "cgroup_limit_mib": 16_000, "mem_used_mib": 63_999},
        {"disks": (disk("/tiny", free_mib=0, total_mib=2000),)},
        {"disks": (disk("/huge", free_mib=9_000, total_mib=100_000_000),)},
        {"disks": (disk("/nfs", free_mib=None, total_mib=None, inodes_free_pct=None),)},
        {"mem_used_mib": None, "shm_free_mib": None},
    ],
    ids=["a container has its own limit", "tiny", "huge", "does not answer", "unknown"],
)
def test_what_is_no_shortage(changes: dict[str, object]) -> None:
    assert told(RoomWatch(), replace(ROOMY, **changes), 0) == []  # type: ignore[arg-type]


def test_a_moment_at_the_limit_is_none() -> None:
    watch = RoomWatch()
    full = replace(ROOMY, mem_used_mib=63_900)
    assert told(watch, full, 0, 10) + told(watch, ROOMY, 10) == []


def test_a_host_with_a_thousand_mounts_is_bounded() -> None:
    watch = RoomWatch()
    for number in range(1000):
        told(watch, replace(ROOMY, disks=(disk(f"/m{number}", free_mib=1),)), 3 * number, 3)
    assert len(watch._states) <= 200
