from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cockpit.domain.detectors import Signal
from cockpit.domain.holders_watch import HoldersWatch
from cockpit.domain.models import GpuSample, HostFacts, HostName, HostSample, RunId
from tests.builders.samples import gpu, process

RUN = RunId("lora-1")


def told(
    watch: HoldersWatch,
    card: GpuSample,
    start_s: int,
    seconds: int = 300,
    ours: Mapping[int, RunId] | None = None,
    container: bool = False,
) -> list[Signal]:
    facts = HostFacts(incarnation="b", container=container)
    signals: list[Signal] = []
    for at in range(start_s, start_s + seconds):
        sample = HostSample(HostName("h"), float(at), facts=facts, gpus=(card,))
        signals += watch.feed(sample, lambda: ours or {})
    return signals


IDLE = gpu(util_pct=0, mem_used_mib=450, processes=())
LEFT = gpu(util_pct=0, mem_used_mib=18_000, processes=())
OWN = process(77, run=RUN, mem_used_mib=15_000)


def test_memory_that_stays_after_its_process_is_an_orphan() -> None:
    watch = HoldersWatch()
    told(watch, gpu(processes=(process(4121, mem_used_mib=17_000),)), 0, 60)
    [signal] = told(watch, LEFT, 60, container=True)
    finding = signal.finding
    assert (signal.action, finding.signature, finding.cause) == (
        "open",
        "memory-orphaned",
        "memory_orphaned",
    )
    assert (finding.severity, finding.facts["held_mib"], finding.facts["holder_pid"]) == (
        "warning",
        17_550,
        4121,
    )
    [closed] = told(watch, IDLE, 400)
    assert (closed.action, closed.finding.signature) == ("close", "memory-orphaned")


@pytest.mark.parametrize(
    ("container", "cause", "severity"),
    [(True, "memory_elsewhere", "notice"), (False, "memory_orphaned", "warning")],
)
def test_memory_of_nobody_that_was_there_before(container: bool, cause: str, severity: str) -> None:
    [signal] = told(HoldersWatch(), LEFT, 0, container=container)
    assert (signal.finding.cause, signal.finding.severity) == (cause, severity)
    assert "holder_pid" not in signal.finding.facts


@pytest.mark.parametrize(
    ("card", "ours"),
    [
        (IDLE, {}),
        (replace(LEFT, util_pct=40), {}),
        (replace(LEFT, util_pct=None), {}),
        (replace(LEFT, processes_age_s=None), {}),
        (replace(LEFT, unified=True), {}),
        (replace(LEFT, mig=True), {}),
        (replace(LEFT, processes=(process(visible=False),)), {}),
        (LEFT, {0: RUN}),
    ],
    ids=["little", "busy", "unknown", "no list", "unified", "mig", "outside", "our run"],
)
def test_what_is_no_orphan(card: GpuSample, ours: dict[int, RunId]) -> None:
    assert told(HoldersWatch(), card, 0, ours=ours) == []


def test_a_stranger_on_the_card_of_a_run_is_told_with_its_share() -> None:
    watch = HoldersWatch()
    both = gpu(mem_used_mib=21_000, processes=(OWN, process(99, mem_used_mib=5_500)))
    [signal] = told(watch, both, 0, ours={0: RUN})
    assert (signal.action, signal.run, signal.gpu) == ("open", RUN, 0)
    facts = signal.finding.facts
    assert (facts["holder_pid"], facts["holder_mib"], facts["free_mib"]) == (99, 5_500, 3_564)
    [closed] = told(watch, gpu(processes=(OWN,)), 300, ours={0: RUN})
    assert (closed.action, closed.run) == ("close", RUN)


@pytest.mark.parametrize(
    ("card", "ours"),
    [
        (gpu(processes=(OWN, process(99, mem_used_mib=5_500))), {}),
        (gpu(processes=(OWN, process(99, mem_used_mib=200))), {0: RUN}),
        (gpu(processes=(OWN, process(99, run=RunId("other")))), {0: RUN}),
        (gpu(processes=(process(99),)), {0: RUN}),
    ],
    ids=["not reserved", "small", "another run of ours", "ours is not seen"],
)
def test_what_is_no_stranger(card: GpuSample, ours: dict[int, RunId]) -> None:
    assert told(HoldersWatch(), card, 0, ours=ours) == []
