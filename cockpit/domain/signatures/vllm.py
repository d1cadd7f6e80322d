"""vLLM: memory at start-up, KV cache, and its periodic lines."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

VLLM: Final = (
    Signature(
        id="vllm-free",
        family="kv_cache",
        literals=("on startup is less than desired GPU memory utilization",),
        pattern=(
            r"Free memory on device(?: (?P<_dev>\S+))? \((?P<free_mib>[\d.]+)/(?P<total_mib>[\d.]+)"
            r" GiB\) on startup is less than desired GPU memory utilization"
            r" \((?P<gpu_memory_utilization>[\d.]+), (?P<needed_mib>[\d.]+) GiB\)"
        ),
        cause="card_already_used",
        remedies=("kill_orphan", "lower_utilisation_to_free", "split_utilisation"),
        bare_unit="GiB",
        source="vllm v1/worker/gpu_worker.py -> v1/worker/utils.py",
        examples=(
            "ValueError: Free memory on device cuda:0 (41.32/79.10 GiB) on startup is less than "
            "desired GPU memory utilization (0.9, 71.19 GiB). Decrease GPU memory utilization or "
            "reduce GPU memory used by other processes.",
            "ValueError: Free memory on device (10.02/23.65 GiB) on startup is less than desired "
            "GPU memory utilization (0.92, 21.76 GiB). Decrease GPU memory utilization or reduce "
            "GPU memory used by other processes.",
        ),
    ),
    Signature(
        id="vllm-extw",
        family="kv_cache",
        literals=("exceed the desired GPU memory utilization",),
        pattern=(
            r"Externally held weights on device \S+ \((?P<in_use_mib>[\d.]+)/(?P<total_mib>[\d.]+)"
            r" GiB\) exceed the desired GPU memory utilization"
        ),
        cause="external_weights",
        remedies=("raise_utilisation",),
        bare_unit="GiB",
        source="vllm v1/worker/utils.py",
        examples=(
            "ValueError: Externally held weights on device cuda:0 (60.10/79.10 GiB) exceed the "
            "desired GPU memory utilization (0.7, 55.37 GiB).",
        ),
    ),
    Signature(
        id="vllm-profile",
        family="kv_cache",
        literals=("Error in memory profiling",),
        pattern=(
            r"Error in memory profiling\. (?:This happens when|Initial (?:free|used) memory"
            r" (?P<_initial>[\d.]+)(?: GiB)?, ?(?:current free|currently used) memory"
            r" (?P<_current>[\d.]+)(?: GiB)?)"
        ),
        cause="memory_changed_while_profiling",
        remedies=("wait_until_quiet", "start_one_by_one"),
        bare_unit="B",
        source="vllm worker.py / v1/worker/gpu_worker.py",
        examples=(
            "AssertionError: Error in memory profiling. Initial free memory 20.11 GiB, current "
            "free memory 33.48 GiB. This happens when other processes sharing the same container "
            "release GPU memory while vLLM is profiling during initialization.",
            "AssertionError: Error in memory profiling. Initial free memory 21593915392, current "
            "free memory 35953704960. This happens when the GPU memory was not properly cleaned "
            "up before initializing the vLLM instance.",
        ),
    ),
    Signature(
        id="vllm-kvshort-v0",
        family="kv_cache",
        literals=("is larger than the maximum number of tokens",),
        pattern=(
            r"The model's max seq len \((?P<max_model_len>\d+)\) is larger than the maximum number of"
            r" tokens that can be stored in KV cache \((?P<tokens>\d+)\)"
        ),
        cause="kv_one_request",
        remedies=("max_model_len_that_fits", "kv_fp8", "raise_utilisation"),
        source="vllm worker/worker.py",
        examples=(
            "ValueError: The model's max seq len (131072) is larger than the maximum number of "
            "tokens that can be stored in KV cache (54832). Try increasing "
            "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        ),
    ),
    Signature(
        id="vllm-kvshort",
        family="kv_cache",
        literals=("To serve at least one request",),
        pattern=(
            r"To serve at least one request with the model(?:s)?'s max seq len"
            r" \((?P<max_model_len>\d+)\), \((?P<needed_mib>[\d.]+) GiB KV cache is needed, which is"
            r" larger than the available KV cache memory \((?P<available_mib>[\d.]+) GiB\)\.(?: ?Based"
            r" on the available memory,? ?the estimated maximum model length is (?P<tokens>\d+))?"
        ),
        cause="kv_one_request",
        remedies=("max_model_len_that_fits", "kv_fp8", "raise_utilisation", "tensor_parallel"),
        bare_unit="GiB",
        source="vllm v1/core/kv_cache_utils.py -> kv_cache_planning.py",
        examples=(
            "ValueError: To serve at least one request with the models's max seq len (131072), "
            "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(9.33 GiB). Based on the available memory, the estimated maximum model length is "
            "76432. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when "
            "initializing the engine.",
        ),
    ),
    Signature(
        id="vllm-noblocks",
        family="kv_cache",
        literals=("No available memory for the cache blocks",),
        pattern=(r"No available memory for the cache blocks"),
        cause="no_room_for_kv",
        remedies=("raise_utilisation", "fewer_batched_tokens", "enforce_eager", "quantise_or_tp"),
        source="vllm worker.py / v1/core/kv_cache_utils.py -> kv_cache_planning.py",
        examples=(
            "ValueError: No available memory for the cache blocks. Try increasing "
            "`gpu_memory_utilization` when initializing the engine.",
        ),
    ),
    Signature(
        id="vllm-autofit",
        family="kv_cache",
        literals=("Cannot auto-fit max_model_len",),
        pattern=(r"Cannot auto-fit max_model_len: not enough GPU memory"),
        cause="no_room_for_kv",
        remedies=("raise_utilisation", "fewer_batched_tokens", "enforce_eager", "quantise_or_tp"),
        source="vllm v1/core/kv_cache_planning.py",
        examples=(
            "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve "
            "even a single token.",
        ),
    ),
    Signature(
        id="vllm-sampler",
        family="gpu_oom",
        literals=("CUDA out of memory occurred when warming up sampler with", "warming up pooler"),
        pattern=(
            r"CUDA out of memory occurred when warming up (?P<_what>sampler with|pooler \(task=\S+"
            r" with) (?P<_n>\d+) dummy requests"
        ),
        cause="sampler_warmup",
        remedies=("max_num_seqs_down", "lower_utilisation"),
        source="vllm v1/worker/gpu_model_runner.py",
        examples=(
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy "
            "requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when "
            "initializing the engine.",
        ),
    ),
    Signature(
        id="vllm-load",
        family="gpu_oom",
        literals=("Failed to load model - not enough GPU memory",),
        pattern=(r"Failed to load model - not enough GPU memory"),
        cause="weights_do_not_fit",
        remedies=("quantise_or_tp", "cpu_offload"),
        source="vllm v1/worker/gpu_model_runner.py",
        examples=(
            "ERROR 05-02 10:01:44 [gpu_model_runner.py:4874] Failed to load model - not enough "
            "GPU memory. Try lowering --gpu-memory-utilization to free memory for weights, "
            "increasing --tensor-parallel-size, or using --quantization.",
        ),
    ),
    Signature(
        id="vllm-preempt-v0",
        family="kv_cache",
        severity="notice",
        literals=("not enough KV cache space",),
        pattern=(
            r"Sequence group (?P<_req>\S+) is preempted by (?:PreemptionMode\.)?(?P<_mode>\w+) mode"
            r" because there is not enough KV cache"
            r" space.*?total_num_cumulative_preemption=(?P<_n>\d+)"
        ),
        cause="kv_pressure",
        remedies=("max_num_seqs_down", "raise_utilisation", "kv_fp8"),
        source="vllm core/scheduler.py",
        examples=(
            "WARNING 02-02 10:00:01 scheduler.py:1555] Sequence group cmpl-77 is preempted by "
            "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can "
            "affect the end-to-end performance. Increase gpu_memory_utilization or "
            "tensor_parallel_size to provide more KV cache memory. "
            "total_num_cumulative_preemption=151",
        ),
    ),
    Signature(
        id="vllm-stats-v0",
        family="kv_cache",
        severity="notice",
        role="metric",
        literals=("Avg prompt throughput:",),
        pattern=(
            r"Avg prompt throughput: (?P<_pt>[\d.]+) tokens/s, Avg generation throughput:"
            r" (?P<_gt>[\d.]+) tokens/s, Running: (?P<_run>\d+) reqs, Swapped: (?P<_swap>\d+) reqs,"
            r" Pending: (?P<_wait>\d+) reqs, GPU KV cache usage: (?P<_kv>[\d.]+)%, CPU KV cache usage:"
            r" (?P<_ckv>[\d.]+)%"
        ),
        cause="kv_pressure",
        remedies=("max_num_seqs_down", "kv_fp8"),
        source="vllm engine/metrics.py",
        examples=(
            "INFO 02-02 10:00:06 metrics.py:467] Avg prompt throughput: 812.4 tokens/s, Avg "
            "generation throughput: 1204.7 tokens/s, Running: 61 reqs, Swapped: 0 reqs, Pending: "
            "14 reqs, GPU KV cache usage: 97.3%, CPU KV cache usage: 0.0%.",
        ),
    ),
    Signature(
        id="vllm-stats",
        family="kv_cache",
        severity="notice",
        role="metric",
        literals=("Avg prompt throughput:",),
        pattern=(
            r"Engine (?P<_eng>\d+): Avg prompt throughput: (?P<_pt>[\d.]+) tokens/s, Avg generation"
            r" throughput: (?P<_gt>[\d.]+) tokens/s, Running: (?P<_run>\d+) reqs, Waiting:"
            r" (?P<_wait>\d+) reqs(?:, Deferred: (?P<_defer>\d+) reqs)?(?:, Preemptions:"
            r" (?P<_pre>\d+))?, (?P<_dev>\w+) KV cache usage: (?P<_kv>[\d.]+)%(?:, Prefix cache hit"
            r" rate: (?P<_hit>[\d.]+)%)?"
        ),
        cause="kv_pressure",
        remedies=("max_num_seqs_down", "kv_fp8"),
        source="vllm v1/metrics/loggers.py",
        examples=(
            "(APIServer pid=1) INFO 06-01 09:00:10 [loggers.py:257] Engine 000: Avg prompt "
            "throughput: 0.0 tokens/s, Avg generation throughput: 412.9 tokens/s, Running: 37 "
            "reqs, Waiting: 120 reqs, Preemptions: 9, GPU KV cache usage: 99.6%, Prefix cache "
            "hit rate: 12.4%",
        ),
    ),
    Signature(
        id="vllm-kvinfo",
        family="kv_cache",
        severity="notice",
        role="metric",
        literals=("Available KV cache memory:", "GPU KV cache size:", "Maximum concurrency for"),
        pattern=(
            r"(?:Available KV cache memory: (?P<_gib>[\d.]+) GiB|KV cache size: (?P<_tok>[\d,]+)"
            r" tokens(?:, Maximum concurrency for (?P<_len>[\d,]+) tokens per request:"
            r" (?P<_conc>[\d.]+)x)?|Maximum concurrency for (?P<_len2>[\d,]+) tokens per request:"
            r" (?P<_conc2>[\d.]+)x)"
        ),
        cause="kv_capacity",
        source="vllm v1/core/kv_cache_utils.py, v1/worker/gpu_worker.py",
        examples=(
            "INFO 06-01 08:00:40 [kv_cache_utils.py:1149] GPU KV cache size: 412,368 tokens, "
            "Maximum concurrency for 32,768 tokens per request: 12.58x",
        ),
    ),
)
