from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.detectors import HostWatch, Signal
from cockpit.domain.models import GpuSample, HostFacts, HostName, HostSample, XidEvent

TOTAL = 24576


def sample(at_s: float, used_mib: int | None = 1000, **changes: object) -> HostSample:
    gpu = GpuSample(0, "GPU-0", mem_used_mib=used_mib, mem_total_mib=TOTAL)
    base = HostSample(HostName("h"), at_s, facts=HostFacts(incarnation="boot-1"), gpus=(gpu,))
    return replace(base, **changes)  # type: ignore[arg-type]


def feed(watch: HostWatch, *samples: HostSample) -> list[tuple[str, str, str]]:
    told = [signal for one in samples for signal in watch.feed(one)]
    return [(signal.action, signal.finding.family, signal.finding.signature) for signal in told]


def used(fraction: float) -> int:
    return round(TOTAL * fraction)


OPEN = ("open", "near_full", "near-full")
CLOSE = ("close", "near_full", "near-full")


def test_near_full_opens_after_thirty_seconds_and_tells_its_numbers() -> None:
    watch = HostWatch()
    assert feed(watch, *(sample(t, used(0.98)) for t in range(30))) == []
    [signal] = watch.feed(sample(30, used(0.98)))
    assert (signal.action, signal.gpu, signal.finding.severity) == ("open", 0, "warning")
    assert signal.finding.facts["in_use_mib"] == used(0.98)
    assert signal.finding.facts["total_mib"] == TOTAL


@pytest.mark.parametrize(
    ("fractions", "told"),
    [
        ([0.98] * 31 + [0.95] * 600, [OPEN]),
        ([0.98] * 31 + [0.90] * 119 + [0.95] + [0.90] * 119, [OPEN]),
        ([0.98] * 31 + [0.90] * 121, [OPEN, CLOSE]),
        (([0.98] * 20 + [0.96]) * 20, []),
        ([0.92] * 600, []),
        ([None] * 600, []),
    ],
    ids=["between", "interrupted", "closes", "spikes", "servers share", "missing"],
)  # fmt: skip
def test_near_full_has_two_thresholds_and_two_times(
    fractions: list[float | None], told: list[tuple[str, str, str]]
) -> None:
    samples = (sample(t, None if part is None else used(part)) for t, part in enumerate(fractions))
    assert feed(HostWatch(), *samples) == told


def test_a_long_gap_is_not_time_above_the_threshold() -> None:
    watch = HostWatch()
    assert feed(watch, sample(0, used(0.98)), sample(10_000, used(0.5))) == []


def test_shared_memory_machines_and_lost_cards_are_not_near_full() -> None:
    unified = GpuSample(0, mem_used_mib=TOTAL, mem_total_mib=TOTAL, unified=True)
    watch = HostWatch()
    assert feed(watch, *(sample(t, gpus=(unified,)) for t in range(60))) == []


def test_a_lost_card_is_told_once_and_seven_go_on() -> None:
    lost = GpuSample(3, error="GPU is lost", error_code="gpu_lost", bus_id="0000:1b:00.0")
    alive = GpuSample(0, mem_used_mib=1, mem_total_mib=TOTAL)
    watch = HostWatch()
    [signal] = watch.feed(sample(0, gpus=(alive, lost)))
    assert (signal.gpu, signal.finding.signature) == (3, "gpu-lost")
    assert signal.finding.facts == {"gpu_index": 3, "bus_id": "0000:1b:00.0"}
    assert signal.evidence[0].text == "GPU is lost"
    assert feed(watch, sample(1, gpus=(alive, lost))) == []
    back = GpuSample(3, mem_used_mib=1, mem_total_mib=TOTAL)
    assert feed(watch, sample(2, gpus=(alive, back))) == [("close", "hardware", "gpu-lost")]


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("driver_mismatch", "driver_mismatch"),
        ("nvml_lost", "container_lost_gpus"),
        ("driver_hung", "driver_hung"),
    ],
)
def test_a_driver_that_does_not_answer_is_told_with_its_words(code: str, cause: str) -> None:
    watch = HostWatch()
    broken = sample(0, gpus=(), gpu_error="Failed to initialize NVML", gpu_error_code=code)
    [signal] = watch.feed(broken)
    assert (signal.finding.family, signal.finding.cause) == ("driver", cause)
    assert signal.finding.facts == {"words": "Failed to initialize NVML"}
    assert feed(watch, replace(broken, at_s=1)) == []
    assert feed(watch, sample(2)) == [("close", "driver", code.replace("_", "-"))]


@pytest.mark.parametrize("code", ["no_gpu", "no_driver", None])
def test_a_host_without_gpus_is_no_incident(code: str | None) -> None:
    assert feed(HostWatch(), sample(0, gpus=(), gpu_error="none", gpu_error_code=code)) == []


def test_the_containers_kill_counter_counts_from_what_it_was() -> None:
    watch = HostWatch()
    kill = ("open", "host_oom", "cgroup-oom-kill")
    assert feed(watch, sample(0, cgroup_oom_kills=3), sample(1, cgroup_oom_kills=3)) == []
    assert feed(watch, sample(2, cgroup_oom_kills=None)) == []
    assert feed(watch, sample(3, cgroup_oom_kills=5, cgroup_limit_mib=65536)) == [kill]
    again = HostFacts(incarnation="boot-2")
    assert feed(watch, sample(4, facts=again, cgroup_oom_kills=9)) == []


def xid(number: int) -> list[Signal]:
    event = XidEvent(number, "0000:65:00", 2, f"NVRM: Xid (PCI:0000:65:00): {number}", 5.0)
    return HostWatch().feed(sample(5, xids=(event,)))


def test_an_xid_carries_its_meaning() -> None:
    [signal] = xid(79)
    assert (signal.gpu, signal.finding.severity, signal.finding.signature) == (2, "fatal", "xid-79")
    assert signal.finding.facts == {"xid": 79, "bus_id": "0000:65:00", "gpu_index": 2}
    [noted] = xid(63)
    assert noted.finding.severity == "notice"
    [unknown] = xid(9999)
    assert unknown.finding.severity == "warning"


@pytest.mark.parametrize("number", [43, 45])
def test_an_xid_that_only_follows_is_silent(number: int) -> None:
    assert xid(number) == []
