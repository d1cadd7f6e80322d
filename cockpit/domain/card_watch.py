"""Hardware trouble of cards that samples show: throttling by cause, ECC, rows, the bus, NVLinks, clocks.

What the driver prints by itself (Xid, a lost card) is told elsewhere; here are the faults that only slow a
card down, or that wait for the next reset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Final, TypeAlias

from cockpit.domain.detectors import LARGEST_STEP_S, Signal, finding_with
from cockpit.domain.incidents import FactValue, Finding
from cockpit.domain.lasting import Lasting
from cockpit.domain.models import GpuSample, HostSample
from cockpit.domain.signatures.xids import cause_of

BUSY_PCT: Final = 50
"""Below this a low clock, a narrow link or a brake says nothing: an idle card saves power."""
THROTTLE_TAU_S: Final = 90.0
LINK_TAU_S: Final = 60.0
CLOCK_TAU_S: Final = 120.0
CLOCK_SHARE: Final = 0.8
"""Of the card's own best clock under load, or of its busy neighbours' (NVIDIA's guides call 10 % normal)."""
REFERENCE_S: Final = 120.0
"""So long a card has to be busy before its clock is compared with anything."""
COMPUTES_PCT: Final = 80
EVERY_S: Final = 5.0
"""Nothing here is decided within seconds, and a hundred hosts are cheaper to watch."""

XID_S: Final = 120.0
"""Counters are read seldom: one that moves so soon after an Xid of memory is the same event."""
_OF_MEMORY: Final = frozenset({"memory_hardware", "row_remapped"})

Make: TypeAlias = Callable[[], Finding]
Rule: TypeAlias = tuple[str, str, tuple[str, ...], frozenset[str]]
THROTTLES: Final[tuple[Rule, ...]] = (
    (
        "throttle-thermal",
        "throttle_thermal",
        ("card_cooling", "report_card", "other_card"),
        frozenset({"thermal_hw", "thermal_sw"}),
    ),
    (
        "throttle-power-brake",
        "throttle_power_brake",
        ("report_card", "other_card"),
        frozenset({"power_brake"}),
    ),
    (
        "throttle-slowdown",
        "throttle_slowdown",
        ("report_card", "other_card"),
        frozenset({"hw_slowdown"}),
    ),
)
"""(signature, cause, remedies, reasons); the first that fits is told. A power cap is how cards work under load."""


@dataclass(slots=True)
class _Card:
    throttles: tuple[Lasting, ...] = field(
        default_factory=lambda: tuple(Lasting(THROTTLE_TAU_S) for _ in THROTTLES)
    )
    narrow: Lasting = field(default_factory=lambda: Lasting(LINK_TAU_S))
    slow_link: Lasting = field(default_factory=lambda: Lasting(2 * LINK_TAU_S))
    clock: Lasting = field(default_factory=lambda: Lasting(CLOCK_TAU_S))
    busy_s: float = 0.0
    best_mhz: int = 0
    links_most: int = 0
    ecc: int | None = None
    rows: int | None = None
    uuid: str = ""
    opened: dict[str, Finding] = field(default_factory=dict)


@dataclass(slots=True)
class CardWatch:
    """The cards of one host."""

    _told_s: dict[int | None, float] = field(default_factory=dict)
    _cards: dict[int, _Card] = field(default_factory=dict)
    _last_s: float | None = None
    _incarnation: str = ""

    def feed(self, sample: HostSample) -> list[Signal]:
        """What changed with this sample."""
        for event in sample.xids:
            if cause_of(event.xid) in _OF_MEMORY:
                self._told_s[event.gpu_index] = sample.at_s
        step_s = 0.0 if self._last_s is None else sample.at_s - self._last_s
        if self._last_s is not None and 0.0 <= step_s < EVERY_S:
            return []
        self._last_s = sample.at_s
        if sample.facts.incarnation != self._incarnation:
            self._incarnation = sample.facts.incarnation
            self._cards.clear()
        signals: list[Signal] = []
        step_s = max(0.0, min(step_s, LARGEST_STEP_S))
        for gpu in sample.gpus:
            if gpu.error is None:
                signals += self._judge(gpu, sample.gpus, sample.at_s, step_s)
        return signals

    def _judge(
        self, gpu: GpuSample, everyone: tuple[GpuSample, ...], at_s: float, step_s: float
    ) -> Iterator[Signal]:
        card = self._cards.get(gpu.index)
        if card is None or card.uuid != gpu.uuid:
            card = self._cards[gpu.index] = _Card(uuid=gpu.uuid)
        yield from _throttles(card, gpu, step_s)
        told_s = self._told_s.get(gpu.index, self._told_s.get(None))
        is_told = told_s is not None and abs(at_s - told_s) <= XID_S
        yield from _counters(card, gpu, is_told)
        yield from _links(card, gpu, everyone, step_s)
        yield from _clock(card, gpu, everyone, step_s)


def _throttles(card: _Card, gpu: GpuSample, step_s: float) -> Iterator[Signal]:
    if gpu.throttle is None:
        return
    active = frozenset(gpu.throttle) if gpu.throttle and _is_busy(gpu) else frozenset[str]()
    told = False
    for (signature, cause, remedies, reasons), lasting in zip(
        THROTTLES, card.throttles, strict=True
    ):
        holds = not told and not active.isdisjoint(reasons)
        told = told or holds
        make = partial(_slowed, signature, cause, remedies, gpu)
        yield from _lasting(card, gpu, lasting, holds, step_s, signature, make)


def _slowed(signature: str, cause: str, remedies: tuple[str, ...], gpu: GpuSample) -> Finding:
    return finding_with("hardware", signature, "warning", cause, _speed_facts(gpu), remedies)


def _counters(card: _Card, gpu: GpuSample, is_told: bool) -> Iterator[Signal]:
    """Counts that went up since we look, unless an Xid told it; what they held before is the card's past."""
    before, card.ecc = card.ecc, gpu.ecc_uncorrected
    if before is not None and card.ecc is not None and card.ecc > before and not is_told:
        facts = _facts(gpu, ecc_uncorrected=card.ecc, new_errors=card.ecc - before)
        finding = finding_with(
            "hardware", "ecc-uncorrected", "fatal", "memory_hardware", facts, _RESET
        )
        yield Signal("open", finding, gpu.index)
    rows = _rows(gpu)
    was, card.rows = card.rows, rows
    if was is not None and rows is not None and rows > was and not is_told:
        facts = _facts(gpu, rows=rows, new_rows=rows - was)
        finding = finding_with("hardware", "rows-replaced", "notice", "row_remapped", facts, _LATER)
        yield Signal("open", finding, gpu.index)
    yield from _stands(card, gpu, gpu.remap_failed, "remap-failed", partial(_rows_gone, gpu))
    yield from _stands(card, gpu, gpu.remap_pending, "remap-pending", partial(_rows_wait, gpu))


def _rows_gone(gpu: GpuSample) -> Finding:
    return finding_with("hardware", "remap-failed", "fatal", "rows_exhausted", _facts(gpu), _TICKET)


def _rows_wait(gpu: GpuSample) -> Finding:
    return finding_with(
        "hardware", "remap-pending", "notice", "row_remap_pending", _facts(gpu), _LATER
    )


def _links(
    card: _Card, gpu: GpuSample, everyone: tuple[GpuSample, ...], step_s: float
) -> Iterator[Signal]:
    width, most = gpu.pcie_width, gpu.pcie_width_max
    if width is not None and most is not None:
        holds = width < most and _is_busy(gpu)
        make = partial(_narrow, gpu, width, most)
        yield from _lasting(card, gpu, card.narrow, holds, step_s, "pcie-narrow", make)
    speed, fastest = gpu.pcie_gen, gpu.pcie_gen_max
    if speed is not None and fastest is not None:
        holds = speed < fastest and _is_busy(gpu)
        make = partial(_slow_link, gpu, speed, fastest)
        yield from _lasting(card, gpu, card.slow_link, holds, step_s, "pcie-slow", make)
    if gpu.nvlinks_up is not None:
        peers = sorted(one.nvlinks_up or 0 for one in everyone if one.name == gpu.name)
        usual = peers[len(peers) // 4]  # three of four have as many; some are joined in pairs only
        card.links_most = max(card.links_most, gpu.nvlinks_up, usual)
        make = partial(_links_down, gpu, gpu.nvlinks_up, card.links_most)
        yield from _stands(card, gpu, gpu.nvlinks_up < card.links_most, "nvlink-down", make)


def _narrow(gpu: GpuSample, width: int, most: int) -> Finding:
    facts = _facts(gpu, pcie_width=width, pcie_width_max=most)
    return finding_with("hardware", "pcie-narrow", "warning", "pcie_narrow", facts, _LINK)


def _slow_link(gpu: GpuSample, speed: int, fastest: int) -> Finding:
    facts = _facts(gpu, pcie_gen=speed, pcie_gen_max=fastest)
    return finding_with("hardware", "pcie-slow", "notice", "pcie_slow", facts, _LINK)


def _links_down(gpu: GpuSample, links_up: int, most: int) -> Finding:
    facts = _facts(gpu, nvlinks_up=links_up, nvlinks=most)
    return finding_with("hardware", "nvlink-down", "warning", "nvlink_down", facts, _LINK)


def _clock(
    card: _Card, gpu: GpuSample, everyone: tuple[GpuSample, ...], step_s: float
) -> Iterator[Signal]:
    """A clock far below the card's own or its neighbours', which neither heat nor the power cap explains."""
    if gpu.sm_clock_mhz is None or gpu.throttle is None:
        return
    computes = _computes(gpu)
    if computes:
        card.busy_s += step_s
        if card.busy_s <= REFERENCE_S:
            card.best_mhz = max(card.best_mhz, gpu.sm_clock_mhz)
    wanted, others = 0.0, 0
    if computes and card.busy_s > REFERENCE_S and _EXPLAINED.isdisjoint(gpu.throttle):
        clocks = [one.sm_clock_mhz or 0 for one in everyone if _is_peer(one, gpu)]
        wanted, others = max(card.best_mhz, median(clocks) if clocks else 0.0), len(clocks)
    holds = gpu.sm_clock_mhz < CLOCK_SHARE * wanted
    make = partial(_clock_low, gpu, round(wanted), others)
    yield from _lasting(card, gpu, card.clock, holds, step_s, "clock-drop", make)


def _is_peer(one: GpuSample, gpu: GpuSample) -> bool:
    return one.index != gpu.index and one.name == gpu.name and _computes(one)


def _clock_low(gpu: GpuSample, wanted_mhz: int, others: int) -> Finding:
    facts = _speed_facts(gpu) | {"expected_mhz": wanted_mhz, "busy_neighbours": others}
    return finding_with("hardware", "clock-drop", "warning", "clock_drop", facts, _SLOW)


_EXPLAINED: Final = frozenset(
    {"power_cap", "thermal_hw", "thermal_sw", "hw_slowdown", "power_brake", "app_clocks"}
)
_RESET: Final = ("restart_run", "restart_instance", "report_card")
_LATER: Final = ("reset_at_next_stop",)
_TICKET: Final = ("report_card", "other_card")
_LINK: Final = ("check_link", "report_card", "other_card")
_SLOW: Final = ("compare_cards", "report_card", "other_card")


def _lasting(
    card: _Card,
    gpu: GpuSample,
    lasting: Lasting,
    holds: bool,
    step_s: float,
    signature: str,
    make: Make,
) -> Iterator[Signal]:
    change = lasting.feed(holds, step_s)
    if change is not None:
        yield from _stands(card, gpu, change == "open", signature, make)


def _stands(
    card: _Card, gpu: GpuSample, holds: bool | None, signature: str, make: Make
) -> Iterator[Signal]:
    """Open when it holds and is not open yet, close when it no longer does; None is no answer."""
    known = card.opened.get(signature)
    if holds and known is None:
        card.opened[signature] = finding = make()
        yield Signal("open", finding, gpu.index)
    elif holds is False and known is not None:
        del card.opened[signature]
        yield Signal("close", known, gpu.index)


def _is_busy(gpu: GpuSample) -> bool:
    return gpu.util_pct is not None and gpu.util_pct >= BUSY_PCT


def _computes(gpu: GpuSample) -> bool:
    return gpu.error is None and gpu.util_pct is not None and gpu.util_pct >= COMPUTES_PCT


def _rows(gpu: GpuSample) -> int | None:
    known = [count for count in (gpu.remapped_rows, gpu.retired_pages) if count is not None]
    return sum(known) if known else None


def _facts(gpu: GpuSample, **numbers: int) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {"gpu_index": gpu.index}
    if gpu.bus_id:
        facts["bus_id"] = gpu.bus_id
    return facts | numbers


def _speed_facts(gpu: GpuSample) -> dict[str, FactValue]:
    numbers = {
        "sm_clock_mhz": gpu.sm_clock_mhz,
        "sm_clock_max_mhz": gpu.sm_clock_max_mhz,
        "temp_c": gpu.temp_c,
        "power_w": None if gpu.power_w is None else round(gpu.power_w),
    }
    return _facts(gpu) | {name: value for name, value in numbers.items() if value is not None}
