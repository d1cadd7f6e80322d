"""What inference servers call their numbers, newest name first. Counters without `_total`, histograms bare.

Sources: the code of vLLM 0.4.2 to 0.33, SGLang 0.3.6 to 0.5.23, TGI 3 and TensorRT-LLM 1. Names are compared
with `:` as `_`, since some exporters write them so; never are an old and a new name summed.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Sum: TypeAlias = Literal["sum", "max"]

GAUGES: Final[dict[str, tuple[Sum, tuple[str, ...]]]] = {
    "running": (
        "sum",
        (
            "vllm_num_requests_running",
            "sglang_num_running_reqs",
            "tgi_batch_current_size",
            "trtllm_num_requests_running",
            "nv_trt_llm_request_metrics",
            "llamacpp_requests_processing",
        ),
    ),
    "waiting": (
        "sum",
        (
            "vllm_num_requests_waiting",
            "sglang_num_queue_reqs",
            "tgi_queue_size",
            "trtllm_num_requests_waiting",
            "llamacpp_requests_deferred",
        ),
    ),
    "kv_usage": (
        "max",
        (
            "vllm_kv_cache_usage_perc",
            "vllm_gpu_cache_usage_perc",
            "sglang_token_usage",
            "sglang_full_token_usage",
            "trtllm_kv_cache_utilization",
            "llamacpp_kv_cache_usage_ratio",
        ),
    ),
    "deferred": ("sum", ("vllm_num_requests_waiting_by_reason",)),
    "prefix_hit": (
        "max",
        (
            "vllm_gpu_prefix_cache_hit_rate",
            "sglang_cache_hit_rate",
            "trtllm_kv_cache_hit_rate",
        ),
    ),
    "gen_tokens_per_s": (
        "sum",
        (
            "vllm_avg_generation_throughput_toks_per_s",
            "sglang_gen_throughput",
            "llamacpp_predicted_tokens_seconds",
        ),
    ),
}
"""Concept: how the values of several engines or ranks make one, and the names to try."""
COUNTERS: Final[dict[str, tuple[str, ...]]] = {
    "preemptions": (
        "vllm_num_preemptions",
        "sglang_num_retracted_requests",
        "sglang_num_retractions_sum",
    ),
    "generated": (
        "vllm_generation_tokens",
        "sglang_generation_tokens",
        "tgi_request_generated_tokens_sum",
        "llamacpp_tokens_predicted",
    ),
    "prompted": (
        "vllm_prompt_tokens",
        "sglang_prompt_tokens",
        "tgi_request_input_length_sum",
        "llamacpp_prompt_tokens",
    ),
    "finished": (
        "vllm_request_success",
        "sglang_num_requests",
        "tgi_request_success",
        "trtllm_request_success",
    ),
    "aborted": ("sglang_num_aborted_requests", "tgi_request_failure"),
    "corrupted": ("vllm_corrupted_requests",),
    "prefix_hits": (
        "vllm_prefix_cache_hits",
        "vllm_gpu_prefix_cache_hits",
        "sglang_cached_tokens",
    ),
    "prefix_queries": (
        "vllm_prefix_cache_queries",
        "vllm_gpu_prefix_cache_queries",
        "sglang_prompt_tokens",
    ),
}
HISTOGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "ttft": (
        "vllm_time_to_first_token_seconds",
        "sglang_time_to_first_token_seconds",
        "trtllm_time_to_first_token_seconds",
    ),
    "tpot": (
        "vllm_request_time_per_output_token_seconds",
        "vllm_inter_token_latency_seconds",
        "vllm_time_per_output_token_seconds",
        "sglang_request_time_per_output_token_seconds",
        "sglang_inter_token_latency_seconds",
        "sglang_time_per_output_token_seconds",
        "trtllm_time_per_output_token_seconds",
        "tgi_request_mean_time_per_token_duration",
    ),
    "itl": (
        "vllm_inter_token_latency_seconds",
        "vllm_time_per_output_token_seconds",
        "sglang_inter_token_latency_seconds",
        "sglang_time_per_output_token_seconds",
        "trtllm_inter_token_latency_seconds",
    ),
    "e2e": (
        "vllm_e2e_request_latency_seconds",
        "sglang_e2e_request_latency_seconds",
        "trtllm_e2e_request_latency_seconds",
        "tgi_request_duration",
    ),
    "queue": (
        "vllm_request_queue_time_seconds",
        "vllm_time_in_queue_requests",
        "sglang_queue_time_seconds",
        "trtllm_request_queue_time_seconds",
        "tgi_request_queue_duration",
    ),
}
FINISHED_ABORT: Final = "vllm_request_success"
"""vLLM counts aborts as one more reason to finish: its label finished_reason says abort."""
WHERE: Final[dict[str, tuple[str, frozenset[str]]]] = {
    "vllm_num_requests_waiting_by_reason": ("reason", frozenset({"deferred"})),
    "nv_trt_llm_request_metrics": ("request_type", frozenset({"active"})),
}
"""Of these only the series with such a label count."""
