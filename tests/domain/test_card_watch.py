from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from cockpit.domain.card_watch import EVERY_S, REFERENCE_S, CardWatch
from cockpit.domain.detectors import Signal
from cockpit.domain.models import GpuSample, HostFacts, HostName, HostSample
from tests.builders.samples import h100, xid

Story = Callable[[float], tuple[GpuSample, ...]]


def sample(at_s: float, *gpus: GpuSample, **changes: object) -> HostSample:
    base = HostSample(HostName("h"), at_s, facts=HostFacts(incarnation="boot-1"), gpus=gpus)
    return replace(base, **changes)  # type: ignore[arg-type]


def told(story: Story, seconds: int, watch: CardWatch | None = None) -> list[Signal]:
    watch = watch or CardWatch()
    return [signal for at in range(seconds) for signal in watch.feed(sample(at, *story(at)))]


def names(signals: Iterable[Signal]) -> list[tuple[str, str, int | None]]:
    return [(signal.action, signal.finding.signature, signal.gpu) for signal in signals]


@pytest.mark.parametrize(
    ("reasons", "signature"),
    [
        (("thermal_hw", "hw_slowdown"), "throttle-thermal"),
        (("thermal_sw",), "throttle-thermal"),
        (("hw_slowdown", "power_brake"), "throttle-power-brake"),
        (("hw_slowdown",), "throttle-slowdown"),
    ],
)
def test_each_brake_is_told_once_by_its_cause(reasons: tuple[str, ...], signature: str) -> None:
    [signal] = told(lambda at: (h100(2, throttle=reasons, temp_c=91, sm_clock_mhz=900),), 600)
    assert names([signal]) == [("open", signature, 2)]
    assert (signal.finding.family, signal.finding.severity) == ("hardware", "warning")
    assert signal.finding.facts["temp_c"] == 91 and signal.finding.facts["sm_clock_mhz"] == 900


@pytest.mark.parametrize(
    "card",
    [
        h100(throttle=("power_cap",)),
        h100(throttle=("sync_boost", "app_clocks", "display_clocks")),
        h100(throttle=("thermal_sw",), util_pct=3),
        h100(throttle=None),
        h100(throttle=("thermal_hw",), util_pct=None),
        h100(throttle=("thermal_hw",), error="GPU is lost"),
    ],
    ids=["power cap", "settings", "idle", "unknown", "sliced", "lost"],
)
def test_how_cards_work_is_no_fault(card: GpuSample) -> None:
    assert told(lambda at: (card,), 900) == []


def test_a_card_that_cools_down_has_recovered() -> None:
    def hot_then_cool(at: float) -> tuple[GpuSample, ...]:
        return (h100(throttle=("thermal_hw",) if at < 300 else ()),)

    assert names(told(hot_then_cool, 900)) == [
        ("open", "throttle-thermal", 0),
        ("close", "throttle-thermal", 0),
    ]


def test_errors_that_ecc_cannot_correct_are_fatal_and_counted_from_here() -> None:
    def failing(at: float) -> tuple[GpuSample, ...]:
        return (h100(ecc_uncorrected=7 if at < 100 else 9),)

    [signal] = told(failing, 300)
    assert names([signal]) == [("open", "ecc-uncorrected", 0)]
    assert signal.finding.severity == "fatal"
    assert (signal.finding.facts["ecc_uncorrected"], signal.finding.facts["new_errors"]) == (9, 2)


def test_a_counter_that_an_xid_announced_is_not_told_again() -> None:
    watch = CardWatch()
    watch.feed(sample(0, h100(ecc_uncorrected=0, remapped_rows=0)))
    event = xid(94, gpu_index=0)
    first = watch.feed(sample(10, h100(ecc_uncorrected=0, remapped_rows=0), xids=(event,)))
    later = watch.feed(sample(40, h100(ecc_uncorrected=1, remapped_rows=1)))
    other = watch.feed(sample(400, h100(ecc_uncorrected=2, remapped_rows=1)))
    assert (first, later, names(other)) == ([], [], [("open", "ecc-uncorrected", 0)])


def test_a_machine_that_started_anew_counts_from_zero() -> None:
    watch = CardWatch()
    watch.feed(sample(0, h100(ecc_uncorrected=9)))
    again = HostFacts(incarnation="boot-2")
    assert watch.feed(sample(60, h100(ecc_uncorrected=0), facts=again)) == []
    assert names(watch.feed(sample(90, h100(ecc_uncorrected=1), facts=again))) == [
        ("open", "ecc-uncorrected", 0)
    ]


def test_rows_that_wait_that_were_replaced_and_that_are_gone() -> None:
    watch = CardWatch()
    assert watch.feed(sample(0, h100())) == []
    replaced = watch.feed(sample(30, h100(remapped_rows=1, remap_pending=True)))
    assert [(one.finding.signature, one.finding.severity) for one in replaced] == [
        ("rows-replaced", "notice"),
        ("remap-pending", "notice"),
    ]
    gone = watch.feed(sample(60, h100(remapped_rows=1, remap_pending=False, remap_failed=True)))
    assert [(one.action, one.finding.signature, one.finding.severity) for one in gone] == [
        ("open", "remap-failed", "fatal"),
        ("close", "remap-pending", "notice"),
    ]


def test_a_narrow_or_slow_bus_counts_under_load_only() -> None:
    narrow = {"pcie_width": 4, "pcie_width_max": 16, "pcie_gen": 3, "pcie_gen_max": 5}
    idle = told(lambda at: (h100(util_pct=0, **narrow),), 600)
    busy = told(lambda at: (h100(util_pct=97, **narrow),), 600)
    assert idle == []
    assert [(one.finding.signature, one.finding.severity) for one in busy] == [
        ("pcie-narrow", "warning"),
        ("pcie-slow", "notice"),
    ]
    assert busy[0].finding.facts["pcie_width"] == 4


def test_a_link_is_down_when_it_was_up_or_when_the_neighbours_have_more() -> None:
    def lost_later(at: float) -> tuple[GpuSample, ...]:
        return (h100(0, nvlinks_up=18 if at < 60 else 16),)

    def fewer_from_the_start(at: float) -> tuple[GpuSample, ...]:
        return tuple(h100(index, nvlinks_up=12 if index == 1 else 18) for index in range(4))

    def bridged_pairs(at: float) -> tuple[GpuSample, ...]:
        return tuple(h100(index, nvlinks_up=12 if index < 2 else 0) for index in range(4))

    assert names(told(lost_later, 120)) == [("open", "nvlink-down", 0)]
    [signal] = told(fewer_from_the_start, 120)
    assert names([signal]) == [("open", "nvlink-down", 1)]
    assert (signal.finding.facts["nvlinks_up"], signal.finding.facts["nvlinks"]) == (12, 18)
    assert told(bridged_pairs, 120) == []


def test_a_clock_that_drops_without_a_reason_is_told() -> None:
    def dropping(at: float) -> tuple[GpuSample, ...]:
        return (h100(sm_clock_mhz=1980 if at < 2 * REFERENCE_S else 1000, power_w=300.0),)

    [signal] = told(dropping, 900)
    assert names([signal]) == [("open", "clock-drop", 0)]
    assert (signal.finding.facts["sm_clock_mhz"], signal.finding.facts["expected_mhz"]) == (
        1000,
        1980,
    )


def test_a_card_slower_than_its_busy_neighbours_is_told() -> None:
    def beside(at: float) -> tuple[GpuSample, ...]:
        return tuple(h100(index, sm_clock_mhz=900 if index == 3 else 1900) for index in range(4))

    [signal] = told(beside, 900)
    assert names([signal]) == [("open", "clock-drop", 3)]
    assert signal.finding.facts["busy_neighbours"] == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"throttle": ("power_cap",)},
        {"throttle": ("thermal_sw",)},
        {"throttle": ("app_clocks",)},
        {"util_pct": 20},
        {"sm_clock_mhz": 1700},
    ],
    ids=["power cap", "heat", "locked", "idle", "a little"],
)
def test_clocks_that_have_a_reason_are_no_drop(changes: dict[str, object]) -> None:
    def later(at: float) -> tuple[GpuSample, ...]:
        card = h100(sm_clock_mhz=1980)
        late = {"sm_clock_mhz": 1000, **changes}
        return (card if at < 2 * REFERENCE_S else replace(card, **late),)  # type: ignore[arg-type]

    assert [one for one in told(later, 900) if one.finding.signature == "clock-drop"] == []


def test_samples_between_two_looks_cost_nothing_and_lose_no_xid() -> None:
    watch = CardWatch()
    watch.feed(sample(0, h100(ecc_uncorrected=0)))
    watch.feed(sample(EVERY_S / 2, h100(ecc_uncorrected=1), xids=(xid(94, gpu_index=0),)))
    assert watch.feed(sample(EVERY_S, h100(ecc_uncorrected=1))) == []
