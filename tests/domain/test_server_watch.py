"""The rules over a server's numbers: each opens once, closes again, and stays silent on what is normal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cockpit.domain.detectors import Signal
from cockpit.domain.server_sample import ServerSample
from cockpit.domain.server_watch import ServerWatch

STEP_S = 3.0


def fed(
    make: Callable[[float], ServerSample],
    for_s: float,
    watch: ServerWatch | None = None,
    from_s: float = 0.0,
) -> list[tuple[float, Signal]]:
    watch = watch or ServerWatch()
    told = []
    at_s = from_s
    while at_s <= from_s + for_s:
        told += [(at_s, signal) for signal in watch.feed(make(at_s))]
        at_s += STEP_S
    return told


def opened(told: list[tuple[float, Signal]]) -> list[str]:
    return [one.finding.signature for _, one in told if one.action == "open"]


def busy(at_s: float, **numbers: Any) -> ServerSample:
    usual: dict[str, Any] = {"running": 8, "waiting": 0, "kv_usage": 0.5}
    return ServerSample(at_s, tokens_total=100 * at_s, **{**usual, **numbers})


def test_a_full_cache_with_requests_waiting_is_kv_bound_after_a_minute() -> None:
    watch = ServerWatch()
    told = fed(lambda at_s: busy(at_s, waiting=30, kv_usage=0.99), 180.0, watch)
    ((at_s, signal),) = told
    assert 55.0 <= at_s <= 70.0
    finding = signal.finding
    assert (finding.family, finding.severity, finding.cause) == ("kv_cache", "warning", "kv_bound")
    assert (finding.facts["waiting"], finding.facts["kv_pct"]) == (30, 99)
    assert [one.code for one in finding.remedies][:2] == ["raise_utilisation", "kv_fp8"]
    assert signal.evidence[0].source == "metrics"
    after = fed(busy, 300.0, watch, 183.0)
    assert [(one.action, one.finding.signature) for _, one in after] == [("close", "kv-bound")]


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param({"kv_usage": 0.99}, id="a-full-cache-alone"),
        pytest.param({"waiting": 20, "kv_usage": 0.9}, id="a-queue-and-a-cache-between"),
        pytest.param({"kv_usage": 0.9, "preemptions_per_s": 0.3}, id="a-few-preemptions"),
        pytest.param({"running": 0, "waiting": 0, "kv_usage": 0.0}, id="idle"),
        pytest.param({"kv_usage": None, "waiting": None}, id="no-numbers"),
    ],
)
def test_what_is_normal_is_silent(numbers: dict[str, float | None]) -> None:
    assert fed(lambda at_s: busy(at_s, **numbers), 900.0) == []


def test_a_burst_of_half_a_minute_is_silent() -> None:
    def burst(at_s: float) -> ServerSample:
        return busy(at_s, waiting=30 if at_s % 300 < 30 else 0, kv_usage=0.99)

    assert fed(burst, 1800.0) == []


def test_more_than_a_preemption_a_second_is_thrashing_and_takes_the_place_of_kv_bound() -> None:
    told = fed(lambda at_s: busy(at_s, waiting=5, kv_usage=0.99, preemptions_per_s=2.0), 200.0)
    assert opened(told) == ["kv-thrash"]
    assert told[0][1].finding.facts["preemptions_per_min"] == 120


def test_a_queue_with_room_in_the_cache_is_the_limit_of_requests() -> None:
    told = fed(lambda at_s: busy(at_s, waiting=40, kv_usage=0.3), 300.0)
    assert opened(told) == ["queue-bound"]
    assert told[0][1].finding.remedies[0].code == "max_num_seqs_up"


def test_requests_that_are_late_by_the_queue_and_not_by_computing() -> None:
    def late(at_s: float) -> ServerSample:
        return busy(
            at_s, waiting=40, kv_usage=0.85, queue_p95_s=50.0, e2e_p95_s=60.0, aborted_per_s=1.0
        )

    told = fed(late, 200.0)
    assert opened(told) == ["queue-timeouts"]
    facts = told[0][1].finding.facts
    assert (facts["queue_p95_s"], facts["e2e_p95_s"], facts["aborted_per_min"]) == (50.0, 60.0, 60)
    assert fed(lambda at_s: busy(at_s, queue_p95_s=2.0, e2e_p95_s=60.0), 300.0) == []


def frozen(at_s: float, tokens: float = 5.0, running: int = 3) -> ServerSample:
    return ServerSample(at_s, running=running, tokens_total=tokens)


def test_requests_in_work_without_a_token_hang_sooner_after_the_first_minutes() -> None:
    ((at_s, signal),) = fed(frozen, 120.0)
    assert 57.0 <= at_s <= 63.0
    assert (signal.finding.family, signal.finding.severity) == ("hang", "fatal")
    watch = ServerWatch()
    assert fed(busy, 900.0, watch) == []
    ((at_s, _),) = fed(lambda at_s: frozen(at_s, 1e9), 60.0, watch, 903.0)
    assert 930.0 <= at_s <= 939.0
    ((_, again),) = fed(lambda at_s: busy(at_s + 1e9), 9.0, watch, 966.0)
    assert again.action == "close"


def test_a_server_that_nobody_asks_does_not_hang() -> None:
    assert fed(lambda at_s: frozen(at_s, running=0), 600.0) == []


def test_nobody_looked_is_no_hang() -> None:
    watch = ServerWatch()
    watch.feed(frozen(0.0))
    assert watch.feed(frozen(500.0)) == []


def test_a_restart_inside_the_run_is_told_for_a_while() -> None:
    watch = ServerWatch()
    fed(busy, 60.0, watch)
    (signal,) = watch.feed(ServerSample(63.0, running=0, tokens_total=1.0, restarted=True))
    assert (signal.finding.cause, signal.finding.severity) == ("server_restarted", "notice")
    assert [one.action for _, one in fed(busy, 700.0, watch, 66.0)] == ["close"]


def test_an_engine_that_answers_with_errors_is_dead_after_some_time_and_not_at_once() -> None:
    watch = ServerWatch()
    assert watch.failed(0.0, "errors") == [] and watch.failed(15.0, "silent") == []
    (signal,) = watch.failed(21.0, "errors")
    assert (signal.finding.cause, signal.finding.severity) == ("engine_dead", "fatal")
    assert watch.failed(24.0, "errors") == []
    assert [one.action for one in watch.feed(busy(27.0))] == ["close"]


def test_a_model_that_comes_and_goes_is_loaded_again_and_again() -> None:
    watch, told, at_s = ServerWatch(), [], 0.0
    for _ in range(4):
        for loaded in (frozenset[str](), frozenset({"qwen3:8b"})):
            told += watch.models(at_s, loaded)
            at_s += 30.0
    ((signal,)) = told
    assert (signal.finding.cause, signal.finding.facts["times"]) == ("model_reloads", 3)
    assert [one.action for one in watch.models(at_s + 700.0, frozenset({"qwen3:8b"}))] == ["close"]


def test_models_that_stay_are_silent() -> None:
    watch = ServerWatch()
    assert [s for t in range(100) for s in watch.models(10.0 * t, frozenset({"a", "b"}))] == []


def test_a_cold_prefix_cache_is_told_against_its_own_usual() -> None:
    watch = ServerWatch()
    assert fed(lambda at_s: busy(at_s, prefix_hit=0.8), 1800.0, watch) == []
    told = fed(lambda at_s: busy(at_s, prefix_hit=0.1), 900.0, watch, 1803.0)
    assert opened(told) == ["prefix-cold"]
    assert told[0][1].finding.facts == {"hit_pct": 10, "usual_pct": 80}


def test_its_end_closes_what_was_open() -> None:
    watch = ServerWatch()
    fed(frozen, 120.0, watch)
    assert [one.action for one in watch.end()] == ["close"]
    assert watch.end() == []
