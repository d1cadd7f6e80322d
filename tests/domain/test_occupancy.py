"""Busy, free, lost, and the sums of a fleet."""

from __future__ import annotations

import pytest

from cockpit.domain.models import GpuSample
from cockpit.domain.occupancy import Sums, card_use, largest_free_mib, main_process, money_text
from tests.builders.samples import gpu, h100, host_sample, lost_gpu, process


@pytest.mark.parametrize(
    ("card", "use"),
    [
        (gpu(), "busy"),
        (gpu(util_pct=0, mem_used_mib=450), "free"),
        (gpu(util_pct=0, mem_used_mib=3_000), "busy"),
        (gpu(util_pct=0, mem_used_mib=450, processes=(process(),)), "busy"),
        (gpu(util_pct=None, mem_used_mib=None), "unknown"),
        (gpu(util_pct=0, mem_used_mib=None), "free"),
        (lost_gpu(), "lost"),
    ],
)
def test_card_use(card: GpuSample, use: str) -> None:
    assert card_use(card) == use


def test_sums_count_what_is_known_and_price_what_is_idle() -> None:
    sums = Sums()
    sums.add(
        host_sample("a", gpus=[h100(0), h100(1, util_pct=0, mem_used_mib=3), lost_gpu(2)]),
        3.0,
        "USD",
    )
    sums.add_unseen(1.0, "USD")
    sums.add(
        host_sample("c", gpus=[gpu(0, util_pct=None, mem_used_mib=None, power_w=None)]), 2.0, "CNY"
    )

    assert (sums.cards, sums.busy, sums.free, sums.lost) == (4, 1, 1, 1)
    assert sums.price_per_h == {"USD": 4.0, "CNY": 2.0}
    assert sums.idle_per_h == {"USD": 1.0, "CNY": 0.0}
    assert money_text(sums.price_per_h) == "2.00 CNY + 4.00 USD"


def test_largest_free_and_main_process() -> None:
    assert largest_free_mib([gpu(mem_used_mib=100), lost_gpu()]) == 24_464
    assert largest_free_mib([lost_gpu()]) is None
    small, large = process(1, mem_used_mib=10), process(2, mem_used_mib=20)
    assert main_process(gpu(processes=(small, large))) == large
    assert main_process(gpu()) is None
