"""Memory trends on one host: whose they are, what room they have, and what ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from cockpit.domain.detectors import Signal
from cockpit.domain.memory_watch import MOST_SERIES, MemoryWatch
from cockpit.domain.models import HostSample, RunId
from cockpit.i18n.messages import describe_incident
from tests.builders.samples import gpu, host_sample, process

CARD_MIB = 24_000
Used = Callable[[float], float]


def samples(
    used: Used, hours: float, *, start_s: float = 0.0, ticks: int = 77
) -> Iterator[HostSample]:
    """One process of a run on a card that another holds 4000 MiB of; read every other second."""
    for number in range(int(hours * 1800)):
        t = start_s + 2.0 * number
        own = int(used(t - start_s))
        ours = process(500, mem_used_mib=own, started_ticks=ticks, run=RunId("vllm-1"))
        other = process(600, mem_used_mib=4000, started_ticks=5)
        card = gpu(
            mem_used_mib=own + 4000, mem_total_mib=CARD_MIB, processes=(ours, other),
            processes_age_s=0.0,
        )  # fmt: skip
        yield host_sample(gpus=[card], at_s=t, mem_used_mib=30_000)


def heard(watch: MemoryWatch, stream: Iterator[HostSample]) -> list[Signal]:
    return [signal for sample in stream for signal in watch.feed(sample)]


def test_a_leak_is_its_process_s_with_the_room_that_others_leave() -> None:
    signals = heard(MemoryWatch(), samples(lambda t: 8000 + 600 * t / 3600, 1.5))
    first = signals[0]
    assert (first.action, first.gpu, first.run) == ("open", 0, "vllm-1")
    facts = first.finding.facts
    assert first.finding.family == "leak" and facts["pid"] == 500
    assert facts["total_mib"] == CARD_MIB - 4000
    assert facts["slope_mib_per_h"] == pytest.approx(600, rel=0.05)
    told = describe_incident(first.finding)
    assert "600 MiB/h" in told.summary and "full in about" in told.summary
    assert told.cause and len(told.remedies) == 3
    assert {signal.finding.signature for signal in signals} == {"memory-trend-500"}


def test_growth_that_stops_withdraws_it() -> None:
    signals = heard(MemoryWatch(), samples(lambda t: 8000 + 900 * min(t, 5400) / 3600, 4))
    assert [signals[0].action, signals[-1].action] == ["open", "withdraw"]


def test_a_process_that_ends_closes_its_finding_and_another_of_its_pid_begins_anew() -> None:
    watch = MemoryWatch()
    assert heard(watch, samples(lambda t: 8000 + 900 * t / 3600, 1.2))[0].action == "open"
    later = heard(watch, samples(lambda t: 8000.0, 0.2, start_s=5000.0, ticks=99))
    assert [signal.action for signal in later] == ["close"]


def test_a_full_card_ahead_is_told_soon_and_closed_when_it_stops() -> None:
    watch = MemoryWatch()
    signals = heard(watch, samples(lambda t: 6000 + 24_000 * min(t, 1500) / 3600, 1.5))
    soon = [signal for signal in signals if signal.finding.signature == "full-soon"]
    assert [signal.action for signal in soon] == ["open", "close"]
    assert soon[0].finding.family == "near_full"


def test_a_list_that_is_repeated_is_read_once() -> None:
    watch = MemoryWatch()
    stale = []
    for sample in samples(lambda t: 8000 + 900 * t / 3600, 1.0):
        card = sample.gpus[0]
        stale.append(replace(sample, gpus=(replace(card, processes_age_s=sample.at_s),)))
    assert heard(watch, iter(stale)) == []


def test_host_memory_is_judged_against_its_limit() -> None:
    watch = MemoryWatch()
    signals = []
    for number in range(2700):
        used = 20_000 + int(1200 * number * 2 / 3600)
        signals += watch.feed(
            host_sample(gpus=[], at_s=2.0 * number, cgroup_used_mib=used, cgroup_limit_mib=64_000)
        )
    assert signals and signals[0].finding.cause == "leak_host"
    assert signals[0].finding.facts["total_mib"] == 64_000 and signals[0].gpu is None


def test_a_host_of_endless_processes_costs_no_endless_room() -> None:
    watch = MemoryWatch()
    crowd = tuple(process(pid, mem_used_mib=1) for pid in range(5000))
    watch.feed(host_sample(gpus=[gpu(processes=crowd, processes_age_s=0.0)], at_s=1.0))
    assert len(watch._series) <= MOST_SERIES


def test_whose_process_it_is_may_be_known_later_than_its_memory() -> None:
    def late(stream: Iterator[HostSample]) -> Iterator[HostSample]:
        for number, sample in enumerate(stream):
            (card,) = sample.gpus
            unknown = tuple(replace(process, run=None) for process in card.processes)
            first = replace(sample, gpus=(replace(card, processes=unknown),))
            yield first if number < 3 else sample

    signals = heard(MemoryWatch(), late(samples(lambda t: 8000 + 600 * t / 3600, 1.5)))
    assert signals and {signal.run for signal in signals} == {"vllm-1"}
