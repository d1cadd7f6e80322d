"""Which cards a run gets: the first host with room, its emptiest cards, and why not the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.domain.models import (
    GpuSample,
    HostName,
    HostSample,
    MigInstance,
    ProcessSample,
    RunId,
)
from cockpit.domain.placement import Reserved, Wanted, candidates, place

TOTAL = 24_000


def card(index: int, used: int | None = 0, *, busy_by: str = "", **more: object) -> GpuSample:
    processes = (ProcessSample(pid=7, name=busy_by, user="ann"),) if busy_by else ()
    return GpuSample(
        index=index,
        uuid=f"GPU-{index}",
        util_pct=0,
        mem_used_mib=used,
        mem_total_mib=TOTAL,
        processes=processes,
        **more,  # type: ignore[arg-type]
    )


def busy(gpu: GpuSample) -> GpuSample:
    """Somebody computes there whose processes cannot be seen."""
    return replace(gpu, util_pct=60)


def host(name: str, *gpus: GpuSample) -> HostSample:
    return HostSample(host=HostName(name), at_s=0.0, gpus=gpus)


def chosen(wanted: Wanted, *hosts: HostSample) -> tuple[str | None, list[int]]:
    placement = place(hosts, wanted)
    taken = placement.cards[: wanted.number(len(placement.cards))]
    return placement.host, [one.index for one in taken]


def test_the_first_host_with_room_is_taken_and_the_order_given_decides() -> None:
    busy = host("a", card(0, 20_000, busy_by="python"))
    free = host("b", card(0), card(1))
    also = host("c", card(0))
    assert chosen(Wanted(1), busy, free, also) == ("b", [0])


def test_the_emptiest_cards_are_taken_and_come_in_the_drivers_order() -> None:
    cards = [card(0, 1000), card(1, 10), card(2, 900), card(3, 20)]
    assert chosen(Wanted(2, share=True), host("a", *cards)) == ("a", [1, 3])


def test_cards_that_would_do_as_well_follow_the_chosen_ones() -> None:
    cards = [card(0, 1000), card(1, 10), card(2, 900), card(3, 20)]
    placement = place([host("a", *cards)], Wanted(2))
    assert [one.index for one in placement.cards] == [1, 3, 2, 0]


def test_a_card_that_a_run_holds_is_not_free_before_the_run_uses_it() -> None:
    cards = host("a", card(0), card(1))
    held: Reserved = {(HostName("a"), 0): "qwen-1"}
    placement = place([cards], Wanted(1), held)
    assert [one.index for one in placement.cards] == [1]
    assert placement.candidates[0].holder == "qwen-1"
    assert place([cards], Wanted(2), held).host is None
    assert place([cards], Wanted(2, share=True), held).host == "a"


def test_all_means_every_card_and_one_that_is_held_spoils_it() -> None:
    assert chosen(Wanted(None), host("a", card(0), card(1))) == ("a", [0, 1])
    assert chosen(Wanted(None), host("a", card(0), card(1, 9000, busy_by="x"))) == (None, [])


def test_named_cards_are_taken_in_the_order_in_which_they_were_named() -> None:
    cards = host("a", card(0), card(1), card(2))
    assert chosen(Wanted(2, (2, 0)), cards) == ("a", [2, 0])
    assert chosen(Wanted(2, (2, 5)), cards) == (None, [])


@pytest.mark.parametrize(
    ("gpu", "wanted", "obstacle"),
    [
        (card(0), Wanted(1), None),
        (card(0, 20_000, busy_by="python"), Wanted(1), "held"),
        (card(0, 20_000, busy_by="python"), Wanted(1, share=True), None),
        (card(0, 20_000), Wanted(1, min_free_mib=8000), "small"),
        (card(0, 12_000), Wanted(1, min_free_mib=8000), None),
        (card(0, None), Wanted(1, min_free_mib=8000), "unknown"),
        (card(0, error="GPU is lost"), Wanted(1), "lost"),
        (card(0, 1000, busy_by="python"), Wanted(1, min_free_mib=8000), "held"),
        (busy(card(0)), Wanted(1, min_free_mib=8000), "held"),
        (busy(card(0)), Wanted(1, min_free_mib=8000, share=True), None),
    ],
)
def test_what_speaks_against_a_card(gpu: GpuSample, wanted: Wanted, obstacle: str | None) -> None:
    assert [one.obstacle for one in candidates(host("a", gpu), wanted)] == [obstacle]


def test_a_holder_is_named_by_its_run_its_user_or_as_out_of_sight() -> None:
    run = GpuSample(0, processes=(ProcessSample(1, run=RunId("qwen-1")),))
    user = card(1, 9, busy_by="python")
    outside = GpuSample(2, processes=(ProcessSample(99, visible=False),))
    found = candidates(host("a", run, user, outside, busy(card(3)), card(4)), Wanted(1))
    assert [one.holder for one in found] == [
        "qwen-1", "ann: python", "pid 99 (outside this container)", "somebody out of sight", None,
    ]  # fmt: skip


def test_everything_that_was_looked_at_is_reported() -> None:
    placement = place([host("a", card(0)), host("b", card(0), card(1))], Wanted(4))
    assert placement.host is None
    assert [(one.host, one.index) for one in placement.candidates] == [("a", 0), ("b", 0), ("b", 1)]


# -- cards that are split ----------------------------------------------------------------------


def split(index: int, *used: int | None, total: int = 10_000) -> GpuSample:
    slices = tuple(
        MigInstance(place, f"MIG-{index}-{place}", "1g.10gb", mib, total)
        for place, mib in enumerate(used)
    )
    return card(index, 5_000, mig=True, mig_instances=slices)


def slices(wanted: Wanted, *gpus: GpuSample, held: tuple[str, ...] = ()) -> list[str]:
    reserved: Reserved = {(HostName("a"), uuid): "another" for uuid in held}
    placement = place([host("a", *gpus)], wanted, reserved)
    return [one.uuid for one in placement.cards[: wanted.number(len(placement.cards))]]


def test_of_a_split_card_the_free_slices_are_chosen() -> None:
    assert slices(Wanted(2), split(0, 20, 9_000, 20)) == ["MIG-0-0", "MIG-0-2"]
    assert slices(Wanted(1), split(0, 20, 20), held=("MIG-0-0",)) == ["MIG-0-1"]
    assert slices(Wanted(2), split(0, 20, 9_000)) == []


def test_a_slice_counts_with_its_own_memory() -> None:
    small, large = split(0, 20), split(1, 20, total=40_000)
    assert slices(Wanted(1, min_free_mib=20_000), small, large) == ["MIG-1-0"]
    assert slices(Wanted(1, min_free_mib=1_000), split(0, 6_000)) == []  # somebody is on it


def test_whole_cards_and_slices_stand_side_by_side() -> None:
    assert slices(Wanted(None), card(0), split(1, 20, 20)) == ["GPU-0", "MIG-1-0", "MIG-1-1"]


def test_a_split_card_by_its_number_is_its_emptiest_slice() -> None:
    assert slices(Wanted(indices=(1,)), card(0), split(1, 400, 20, 9_000)) == ["MIG-1-1"]
    assert slices(Wanted(indices=(1, 1)), split(1, 400, 20)) == ["MIG-1-1", "MIG-1-0"]


def test_a_split_card_without_slices_is_no_card() -> None:
    (only,) = candidates(host("a", split(0)), Wanted(1))
    assert only.obstacle == "absent"
    assert slices(Wanted(1), split(0)) == slices(Wanted(1, share=True), split(0)) == []
