"""Pages of every server and version become the same concepts; what is no page of theirs becomes nothing."""

from __future__ import annotations

import pytest

from cockpit.domain.server_json import read_iterations, read_models
from cockpit.domain.server_text import MOST_BYTES, ServerReading, read_metrics
from tests.builders.server_pages import histogram, page

V042 = {
    "vllm:num_requests_running": 3, "vllm:num_requests_waiting": 2, "vllm:gpu_cache_usage_perc": 0.5,
    "vllm:prompt_tokens_total": 70, "vllm:generation_tokens_total": 40,
    "vllm:avg_generation_throughput_toks_per_s": 120.5,
}  # fmt: skip
V085 = {
    **V042,
    "vllm:num_preemptions_total": 9,
    "vllm:gpu_prefix_cache_hits_total": 5,
    "vllm:gpu_prefix_cache_queries_total": 10,
}
V011 = {
    **V085,
    "vllm:kv_cache_usage_perc": 0.75,
    "vllm:prefix_cache_hits_total": 50,
    "vllm:prefix_cache_queries_total": 100,
}
V033 = {name: value for name, value in V011.items() if ":gpu_" not in name and ":avg_" not in name}
S036 = {
    "sglang:num_running_reqs": 3, "sglang:num_queue_reqs": 2, "sglang:token_usage": 0.5,
    "sglang:prompt_tokens_total": 70, "sglang:generation_tokens_total": 40, "sglang:gen_throughput": 120.5,
    "sglang:cache_hit_rate": 0.25,
}  # fmt: skip
S0523 = {
    **S036,
    "sglang:num_retracted_requests_total": 9,
    "sglang:cached_tokens_total": 30,
    "sglang:num_aborted_requests_total": 4,
}
TGI = {
    "tgi_batch_current_size": 3,
    "tgi_queue_size": 2,
    "tgi_request_generated_tokens_sum": 40,
    "tgi_request_input_length_sum": 70,
}
TRT = {"trtllm_kv_cache_utilization": 0.5, "trtllm_kv_cache_hit_rate": 0.25}


def test_the_newest_name_counts_and_is_never_summed_with_the_old_one() -> None:
    read = read_metrics(page(V011), 1.0)
    assert read.gauges["kv_usage"] == 0.75
    assert (read.counters["prefix_hits"], read.counters["prefix_queries"]) == (50, 100)
    assert read.names["kv_usage"] == "vllm:kv_cache_usage_perc"
    assert read_metrics(page(V085), 1.0).names["kv_usage"] == "vllm:gpu_cache_usage_perc"


@pytest.mark.parametrize(
    ("numbers", "kv", "preempted"),
    [
        pytest.param(V042, 0.5, None, id="vllm-0.4.2"),
        pytest.param(V085, 0.5, 9, id="vllm-0.8.5"),
        pytest.param(V011, 0.75, 9, id="vllm-0.11"),
        pytest.param(V033, 0.75, 9, id="vllm-0.33"),
        pytest.param(S036, 0.5, None, id="sglang-0.3.6"),
        pytest.param(S0523, 0.5, 9, id="sglang-0.5.23"),
        pytest.param(TGI, None, None, id="tgi-3"),
    ],
)
def test_each_version_tells_the_same(
    numbers: dict[str, float], kv: float | None, preempted: float | None
) -> None:
    read = read_metrics(page(numbers), 1.0)
    assert (read.gauges["running"], read.gauges["waiting"]) == (3, 2)
    assert (read.counters["generated"], read.counters["prompted"]) == (40, 70)
    assert read.gauges.get("kv_usage") == kv
    assert read.counters.get("preemptions") == preempted


def test_exporters_that_write_underscores_and_counters_without_total_are_read() -> None:
    numbers = {name.replace(":", "_").removesuffix("_total"): value for name, value in V033.items()}
    read = read_metrics(page(numbers), 1.0)
    assert (read.gauges["running"], read.counters["preemptions"]) == (3, 9)


def test_engines_and_ranks_add_up_and_the_fullest_cache_counts() -> None:
    rows = page(
        {"vllm:num_requests_running": 3, "vllm:kv_cache_usage_perc": 0.2}, labels='engine="0"'
    )
    rows += page(
        {"vllm:num_requests_running": 4, "vllm:kv_cache_usage_perc": 0.9}, labels='engine="1"'
    )
    read = read_metrics(rows, 1.0)
    assert (read.gauges["running"], read.gauges["kv_usage"]) == (7, 0.9)


def test_buckets_of_several_models_add_up() -> None:
    name = "vllm:time_to_first_token_seconds"
    rows = histogram(name, (1, 2, 0, 0, 0), 'model_name="a"') + "\n"
    rows += histogram(name, (0, 3, 0, 0, 1), 'model_name="b"')
    bounds = dict(read_metrics(rows.encode(), 1.0).histograms["ttft"])
    assert (bounds[0.1], bounds[0.5], bounds[float("inf")]) == (1, 6, 7)


def test_aborts_and_deferred_requests_are_told_by_their_labels() -> None:
    rows = (
        'vllm:request_success_total{finished_reason="stop"} 8\n'
        'vllm:request_success_total{finished_reason="abort"} 2\n'
        'vllm:num_requests_waiting_by_reason{reason="capacity"} 5\n'
        'vllm:num_requests_waiting_by_reason{reason="deferred"} 3\n'
    )
    read = read_metrics(rows.encode(), 1.0)
    assert (read.counters["finished"], read.counters["aborted"]) == (10, 2)
    assert read.gauges["deferred"] == 3


def test_tensorrt_llm_tells_its_cache() -> None:
    read = read_metrics(page(TRT), 1.0)
    assert read.gauges == {"kv_usage": 0.5, "prefix_hit": 0.25}


HOSTILE = {
    "nothing": b"",
    "html": b"<html><body>vllm:num_requests_running 5</body></html>" * 100,
    "binary": bytes(range(256)) * 4096,
    "no-newline": b"vllm:num_requests_running" + b"x" * 3_000_000,
    "nan": b"vllm:num_requests_running NaN\nvllm:kv_cache_usage_perc +Inf\nvllm:num_requests_waiting -5\n",
    "huge-number": b"vllm:num_requests_running 1e300\nvllm:num_requests_waiting 9"
    + b"9" * 400
    + b"\n",
    "bad-labels": b'vllm:num_requests_running{a="b} 5\nvllm:num_requests_running{a=b} 5\n',
    "no-value": b"vllm:num_requests_running\nvllm:num_requests_running \nvllm:num_requests_running{}\n",
    "backslashes": b'vllm:num_requests_running{a="' + b"\\" * 901 + b'"} 5\n',
    "long-row": b'vllm:num_requests_running{a="' + b"x" * 100_000 + b'"} 5\n',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_page_of_theirs_is_empty(name: str) -> None:
    read = read_metrics(HOSTILE[name], 1.0)
    assert read.gauges == {} and read.counters == {} and read.histograms == {}


def test_one_bad_row_costs_itself_alone() -> None:
    rows = b'vllm:num_requests_running{a="\n\xff\xfe\nvllm:num_requests_running{a="1"} 5\n'
    assert read_metrics(rows, 1.0).gauges == {"running": 5}


def test_more_than_is_allowed_is_not_read() -> None:
    rows = b"# junk\n" * (MOST_BYTES // 7 + 1) + b"vllm:num_requests_running 5\n"
    assert read_metrics(rows, 1.0).is_empty


def test_histograms_with_thousands_of_buckets_stay_small() -> None:
    name = "vllm:time_to_first_token_seconds_bucket"
    rows = "".join(f'{name}{{le="{number}"}} 1\n' for number in range(5000))
    assert read_metrics(rows.encode(), 1.0).histograms == {}


OLLAMA = b"""{"models": [
 {"name": "qwen3:8b", "model": "qwen3:8b", "size": 6442450944, "size_vram": 3221225472,
  "expires_at": "2026-12-01T06:00:00Z"},
 {"name": 5}, "x", {"model": "gemma\\u001b[31m3"}]}"""


def test_ollama_tells_its_loaded_models_made_harmless() -> None:
    models = read_models(OLLAMA)
    assert models is not None
    assert [one.name for one in models] == ["qwen3:8b", "gemma3"]
    assert (models[0].size_mib, models[0].vram_mib) == (6144.0, 3072.0)


def test_llama_swap_tells_what_runs() -> None:
    told = read_models(
        b'{"running": [{"model": "a", "state": "ready"}, {"model": "b", "state": "stopped"}]}'
    )
    assert told is not None and [one.name for one in told] == ["a"]


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"models": 5}', b"[" * 100_000, b"\xff"])
def test_what_is_no_list_of_models_is_none(text: bytes) -> None:
    assert read_models(text) is None


def test_the_newest_iteration_of_tensorrt_llm_counts() -> None:
    told = b"""[{"numActiveRequests": 1}, {"numActiveRequests": 4, "numQueuedRequests": 2,
      "kvCacheStats": {"usedNumBlocks": 30, "maxNumBlocks": 40, "cacheHitRate": 0.5}}]"""
    read = read_iterations(told, 1.0)
    assert read is not None
    assert read.gauges == {"running": 4, "waiting": 2, "kv_usage": 0.75, "prefix_hit": 0.5}
    assert read_iterations(b"[]", 1.0) == ServerReading(1.0)
    assert read_iterations(b"{}", 1.0) is None
