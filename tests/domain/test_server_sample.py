"""Rates and percentiles from what counters moved by, with answers that are known."""

from __future__ import annotations

import pytest

from cockpit.domain.server_sample import ServerMeter, ServerSample, percentile
from cockpit.domain.server_text import read_metrics
from tests.builders.server_pages import histogram, vllm

INF = float("inf")


@pytest.mark.parametrize(
    ("before", "now", "share", "expected"),
    [
        pytest.param((0, 0, 0), (10, 10, 10), 0.5, 0.05, id="half-of-the-first-bucket"),
        pytest.param((0, 0, 0), (5, 10, 10), 0.75, 0.3, id="half-of-the-second"),
        pytest.param((0, 0, 0), (0, 0, 10), 0.5, 0.5, id="beyond-all-bounds"),
        pytest.param((100, 100, 100), (100, 110, 110), 0.5, 0.3, id="only-what-came-since"),
        pytest.param((7, 8, 9), (7, 8, 9), 0.5, None, id="nothing-came"),
    ],
)
def test_percentiles_of_what_came_between_two_looks(
    before: tuple[float, ...], now: tuple[float, ...], share: float, expected: float | None
) -> None:
    bounds = (0.1, 0.5, INF)
    told = percentile(
        tuple(zip(bounds, before, strict=True)), tuple(zip(bounds, now, strict=True)), share
    )
    assert told == (None if expected is None else pytest.approx(expected))


def samples(*pages: tuple[float, bytes]) -> list[ServerSample]:
    meter = ServerMeter()
    return [meter.feed(read_metrics(page, at_s)) for at_s, page in pages]


def test_rates_need_two_looks() -> None:
    first, second = samples((0.0, vllm(1, 0, 0.1, 100)), (5.0, vllm(2, 1, 0.2, 600, 10)))
    assert (first.gen_tokens_per_s, first.running, first.ttft_p50_s) == (None, 1, None)
    assert (second.gen_tokens_per_s, second.preemptions_per_s) == (100.0, 2.0)
    assert (second.running, second.waiting, second.kv_usage) == (2, 1, 0.2)


def test_percentiles_are_of_the_last_half_minute() -> None:
    name = "vllm:time_to_first_token_seconds"
    old = vllm(1, 0, 0.1, 1, 0, histogram(name, (1000, 0, 0, 0, 0)))
    new = vllm(1, 0, 0.1, 2, 0, histogram(name, (1000, 0, 10, 0, 0)))
    *_, last = samples((0.0, old), (40.0, old), (43.0, new))
    assert last.ttft_p50_s == pytest.approx(0.75)
    assert last.tpot_p50_s is None


def test_a_counter_that_fell_is_a_restart_and_no_negative_rate() -> None:
    *_, after, later = samples(
        (0.0, vllm(generated=900)), (3.0, vllm(generated=5)), (6.0, vllm(generated=35))
    )
    assert (after.restarted, after.gen_tokens_per_s) == (True, None)
    assert (later.restarted, later.gen_tokens_per_s) == (False, 10.0)


def test_percent_despite_the_name_is_a_share() -> None:
    assert samples((0.0, vllm(kv=0.97)))[0].kv_usage == 0.97
    assert samples((0.0, vllm(kv=97.0)))[0].kv_usage == 0.97
    assert samples((0.0, vllm(kv=1.004)))[0].kv_usage == 1.0
