"""The watch over a run's progress on simulated runs: each sick kind is named once, each look-alike stays silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.pulse_traces import (
    CROWDED,
    DEAD,
    LOOK_ALIKES,
    LOW,
    SICK,
    SPIN,
    WORK,
    Act,
    Trace,
    beats,
    play,
)
from cockpit.domain.incidents import Finding
from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.domain.pulse import RunPulse
from cockpit.domain.pulse_idle import HostIdle
from cockpit.domain.pulse_levels import LEVELS
from cockpit.i18n.cause_texts import CAUSES
from cockpit.i18n.incident_texts import TITLES_BY_CAUSE
from cockpit.i18n.messages import describe_incident
from cockpit.i18n.remedy_texts import REMEDIES

NAMES = [trace.name for trace in SICK]


@pytest.mark.parametrize("trace", SICK, ids=NAMES)
def test_each_trouble_is_one_incident_with_its_cause(trace: Trace) -> None:
    heard = play(trace, seed=7, every=2)
    assert {name for _at_s, name, _cause, _severity in heard.opened} == {trace.wanted}
    if trace.cause:
        assert heard.opened[0][2] == trace.cause
    assert [one.signature for one in heard.still_open] == ([] if trace.closes else [trace.wanted])
    for finding in heard.findings:
        reads_well(finding)


@pytest.mark.parametrize("trace", LOOK_ALIKES, ids=[trace.name for trace in LOOK_ALIKES])
def test_what_only_looks_like_trouble_stays_silent(trace: Trace) -> None:
    assert play(trace, seed=7, every=2).opened == []


def first(
    trace: Trace, stall_s: float | None = 900.0, idle_s: float | None = 1200.0
) -> float | None:
    heard = play(trace, levels=LEVELS.for_run(stall_s, idle_s), every=2)
    return heard.opened[0][0] - 1000.0 if heard.opened else None


def test_a_spinning_collective_is_told_long_before_the_stall_and_a_deadlock_after_it() -> None:
    short = replace(WORK, seconds=300)
    spin, dead = first(Trace("s", (short, SPIN))), first(Trace("d", (short, DEAD)))
    assert spin is not None and 420 <= spin <= 560
    assert dead is not None and 1200 <= dead <= 1330


@pytest.mark.parametrize(
    "acts", [(WORK, SPIN), (WORK, DEAD), (CROWDED,)], ids=["spins", "dead", "starved"]
)
def test_who_wants_to_know_of_a_stall_sooner_is_told_of_all_sooner(acts: tuple[Act, ...]) -> None:
    hurried = tuple(replace(act, seconds=min(act.seconds, 90)) for act in acts)
    told = first(Trace("fast", hurried), stall_s=20.0)
    assert told is not None and told <= 90.0 * (len(acts) - 1) + 65.0


def test_who_wants_to_know_of_no_stall_is_not_told() -> None:
    assert first(Trace("off", (WORK, DEAD)), stall_s=None, idle_s=None) is None


def test_idle_cards_are_told_after_the_profile_s_time() -> None:
    trace = Trace("idle", (replace(DEAD, seconds=400, main_cpu=70.0),), stepped=False)
    told = first(trace, stall_s=900.0, idle_s=120.0)
    assert told is not None and 120 <= told <= 200


def test_a_hang_takes_over_from_what_led_to_it() -> None:
    """Starved first, then dead: the older finding gives way to the newer one, which says it all."""
    pulse, said = RunPulse(), list[tuple[str, str]]()
    for beat in beats(Trace("both", (CROWDED, DEAD))):
        said += [(signal.action, signal.finding.signature) for signal in pulse.feed(beat)]
    kinds = list(dict.fromkeys(said))
    assert kinds[0] == ("open", "starved-input") and kinds[-1] == ("open", "hang-silence")
    assert len(pulse.open_findings) == 1


def test_a_new_attempt_leaves_nothing_open() -> None:
    pulse = RunPulse()
    for beat in beats(Trace("x", (WORK, SPIN))):
        pulse.feed(beat)
    assert [(one.action, one.finding.signature) for one in pulse.end()] == [
        ("close", "hang-silence")
    ]
    assert pulse.open_findings == ()


def test_memory_does_not_grow_with_the_run() -> None:
    pulse = RunPulse()
    for beat in beats(Trace("long", (replace(WORK, seconds=5_000),))):
        pulse.feed(beat)
    state = pulse._state
    sizes = (
        len(state.windows.closed),
        len(state.steps.recent),
        len(state.steps._base),
        len(state.swings),
    )
    assert sizes <= (32, 20, 64, 300)
    assert all(len(values) <= 128 for values in state.windows._readings.values())


def reads_well(finding: Finding) -> None:
    assert finding.cause in CAUSES and finding.remedies
    assert all(remedy.code in REMEDIES for remedy in finding.remedies)
    words = describe_incident(finding)
    assert words.cause and words.summary.startswith(words.title)
    assert words.summary != words.title, "the numbers stand in it"
    assert "{" not in words.summary + words.cause + "".join(one.text for one in words.remedies)


def test_the_verdict_of_a_starved_run_names_share_and_evidence() -> None:
    waits = replace(LOW, worker_cpu=99.0, data_s=1.9)
    pulse, told = RunPulse(), None
    for beat in beats(Trace("w", (waits,))):
        for signal in pulse.feed(beat):
            told = told or signal
    assert told is not None
    words = describe_incident(told.finding)
    assert words.title == TITLES_BY_CAUSE["starved_cpu"]
    assert "certain" in words.summary and "63 % of each step waits for data" in words.summary
    assert told.finding.remedies[0].patch == {"env.set.OMP_NUM_THREADS": "1"}
    assert any("at a full core" in one.text for one in told.evidence)


def idle_host(**changes: object) -> HostSample:
    gpus = tuple(GpuSample(index, f"G{index}", util_pct=0) for index in range(8))
    return replace(HostSample(HostName("h"), 0.0, gpus=gpus), **changes)  # type: ignore[arg-type]


def feed(
    watch: HostIdle, seconds: range, sample: HostSample, *, has_runs: bool = False
) -> list[float]:
    """The seconds at which it holds."""
    return [
        at_s
        for at_s in seconds
        if watch.feed(at_s, sample, has_runs=has_runs, price_per_h=2.4, currency="USD")
    ]


def test_a_host_without_runs_is_told_with_what_it_costs() -> None:
    watch = HostIdle()
    assert feed(watch, range(0, 1200, 5), idle_host()) == []
    finding = watch.feed(1200, idle_host(), has_runs=False, price_per_h=2.4, currency="USD")
    assert finding is not None and finding.severity == "notice"
    assert (finding.facts["cost"], finding.facts["cards"]) == (0.8, 8)


@pytest.mark.parametrize(
    ("sample", "has_runs"),
    [
        (idle_host(gpus=(GpuSample(0, util_pct=80), GpuSample(1, util_pct=0))), False),
        (idle_host(gpus=(GpuSample(0, util_pct=None),)), False),
        (idle_host(gpus=()), False),
        (idle_host(), True),
    ],
    ids=["one works", "not known", "no card", "a run"],
)
def test_a_host_that_works_or_cannot_be_judged_is_not_idle(
    sample: HostSample, has_runs: bool
) -> None:
    assert feed(HostIdle(), range(0, 4000, 5), sample, has_runs=has_runs) == []


def test_time_without_a_link_is_no_idle_time() -> None:
    watch = HostIdle()
    feed(watch, range(0, 600, 5), idle_host())
    assert feed(watch, range(3000, 4100, 5), idle_host()) == []
