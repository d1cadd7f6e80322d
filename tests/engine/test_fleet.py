"""The fleet store: versions, histories and their bounds."""

from __future__ import annotations

from cockpit.domain.models import HostName
from cockpit.engine.fleet import HISTORY_CARDS, HISTORY_SAMPLES, FleetStore
from tests.builders.samples import fleet_of, gpu, host_sample, lost_gpu, tape

VAST = HostName("vast-a")


def test_a_reader_learns_which_hosts_changed_since_it_looked() -> None:
    fleet = fleet_of(host_sample("a"), host_sample("b"))
    seen = fleet.version
    assert fleet.changed_since(seen) == []
    fleet.record(host_sample("b", seq=1), 1.0)
    assert fleet.changed_since(seen) == ["b"]
    fleet.set_link(HostName("a"), "stale", code="no_sample")
    assert fleet.changed_since(seen) == ["a", "b"]


def test_a_lost_host_keeps_its_last_values_and_its_age_grows() -> None:
    fleet = fleet_of(host_sample(gpus=2), received_s=10.0)
    before = fleet.set_link(VAST, "unreachable", code="link_lost", why="reset")
    state = fleet.hosts[VAST]
    assert (before, state.why) == ("live", {"why": "reset"})
    assert state.latest is not None and len(state.latest.gpus) == 2
    assert state.age_s(24.0) == 14.0


def test_a_history_has_the_samples_in_order_with_gaps_where_a_value_was_missing() -> None:
    fleet = FleetStore([VAST])
    for sample in tape("vast-a", [100, 200]):
        fleet.record(sample, 0.0)
    fleet.record(host_sample(gpus=[lost_gpu(0)], seq=2), 0.0)
    (history,) = fleet.hosts[VAST].history.values()
    assert list(history.mem_used_mib) == [100, 200, None]
    assert list(history.util_pct) == [97, 97, None]
    assert len(history.at_s) == 3


def test_histories_are_bounded_in_length_and_in_number() -> None:
    fleet = FleetStore([VAST])
    for seq in range(HISTORY_SAMPLES + 50):
        fleet.record(host_sample(gpus=[gpu(0), gpu(1, uuid=f"GPU-new-{seq}")], seq=seq), 0.0)
    history = fleet.hosts[VAST].history
    assert len(history) <= HISTORY_CARDS + 1
    assert len(history[gpu(0).uuid].util_pct) == HISTORY_SAMPLES


def test_cards_without_a_uuid_are_told_apart_by_index() -> None:
    fleet = fleet_of(host_sample(gpus=[gpu(0, uuid=""), gpu(1, uuid="")]))
    assert list(fleet.hosts[VAST].history) == ["index:0", "index:1"]


def test_a_removed_host_is_a_change() -> None:
    fleet = fleet_of(host_sample("a"), host_sample("b"))
    seen = fleet.version
    fleet.remove(HostName("a"))
    assert fleet.version > seen and list(fleet.hosts) == ["b"]


def test_a_host_is_idle_from_the_sample_on_in_which_no_card_worked() -> None:
    fleet = FleetStore([VAST])
    state = fleet.hosts[VAST]
    free = [
        gpu(0, util_pct=0, mem_used_mib=10, processes=()),
        gpu(1, util_pct=1, mem_used_mib=10, processes=()),
    ]
    busy = [free[0], gpu(1, util_pct=97, mem_used_mib=10, processes=())]
    for seq, (cards, at_s) in enumerate([(busy, 1.0), (free, 2.0), (free, 50.0)]):
        fleet.record(host_sample(gpus=cards, seq=seq), at_s)
        fleet.set_link(VAST, "live")
    assert state.idle_s(62.0) == 60.0
    fleet.set_link(VAST, "unreachable")
    assert state.idle_s(62.0) is None
    fleet.set_link(VAST, "live")
    fleet.record(host_sample(gpus=busy, seq=4), 70.0)
    assert state.idle_s(80.0) is None
