"""What is told of a server becomes a change of its own profile, computed from its numbers and its card."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.domain.incidents import Finding
from cockpit.domain.remedy_case import Room
from cockpit.domain.remedy_fit import fitted
from cockpit.domain.server_sample import ServerSample
from cockpit.domain.server_watch import ServerWatch

VLLM = {"gpu_memory_utilization": 0.8, "max_num_seqs": 256, "max_model_len": 32_768}


def opened(**numbers: Any) -> Finding:
    watch = ServerWatch()
    for step in range(100):
        sample = ServerSample(3.0 * step, running=64, tokens_total=float(step), **numbers)
        for signal in watch.feed(sample):
            return signal.finding
    raise AssertionError("nothing was found")


def patches(
    finding: Finding, table: dict[str, Any], room: Room, kind: str = "vllm"
) -> list[dict[str, Any]]:
    profile = {"name": "s", "kind": kind, kind: {"model": "m", **table}, "gpus": {"count": 1}}
    made = fitted(finding, profile, room)
    return [dict(one.patch) for one in made.remedies if one.patch]


def test_a_full_cache_takes_what_the_card_really_has_free_then_smaller_numbers() -> None:
    finding = opened(waiting=40, kv_usage=0.99)
    room = Room(total_mib=24_000.0, others_mib=1_200.0, cards=2)
    found = patches(finding, VLLM, room)
    assert found[0] == {"vllm.gpu_memory_utilization": 0.93}
    assert {"vllm.kv_cache_dtype": "fp8"} in found
    assert {"vllm.max_num_seqs": 128} in found
    assert {"vllm.max_model_len": 16_384} in found
    assert {"gpus.count": 2} in found


def test_a_card_without_room_is_not_asked_for_more() -> None:
    finding = opened(waiting=40, kv_usage=0.99)
    found = patches(finding, VLLM, Room(total_mib=24_000.0, others_mib=5_000.0))
    assert found[0] == {"vllm.kv_cache_dtype": "fp8"}
    assert not any("vllm.gpu_memory_utilization" in one for one in found)


def test_requests_that_are_computed_twice_want_fewer_at_once_first() -> None:
    finding = opened(waiting=4, kv_usage=0.99, preemptions_per_s=3.0)
    found = patches(finding, {"max_num_seqs": 256, "gpu_memory_utilization": 0.95}, Room())
    assert found[0] == {"vllm.max_num_seqs": 128}


@pytest.mark.parametrize(
    ("kind", "table", "patch"),
    [
        pytest.param("vllm", {"max_num_seqs": 32}, {"vllm.max_num_seqs": 64}, id="vllm"),
        pytest.param("vllm", {}, {"vllm.max_num_seqs": 512}, id="vllm-default"),
        pytest.param(
            "sglang", {"max_running_requests": 8}, {"sglang.max_running_requests": 16}, id="sglang"
        ),
    ],
)
def test_a_queue_with_room_in_the_cache_wants_more_at_once(
    kind: str, table: dict[str, Any], patch: dict[str, Any]
) -> None:
    finding = opened(waiting=40, kv_usage=0.3)
    assert patches(finding, table, Room(), kind)[0] == patch


def test_a_model_that_is_loaded_again_and_again_is_kept() -> None:
    watch, found = ServerWatch(), []
    for step in range(12):
        loaded = frozenset({f"m{step // 2 % 2}"}) if step % 2 else frozenset[str]()
        found += watch.models(20.0 * step, loaded)
    made = patches(found[0].finding, {}, Room(), "ollama")
    assert made == [{"ollama.keep_alive": "24h"}, {"ollama.max_loaded_models": 2}]
