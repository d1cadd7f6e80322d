"""SGLang: memory at start-up, KV cache, schedulers that die."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

SGLANG: Final = (
    Signature(
        id="sgl-nomem",
        family="kv_cache",
        literals=("Not enough memory. Please try to increase --mem-fraction-static.",),
        pattern=(
            r"Not enough memory\. Please try to increase --mem-fraction-static\.(?: Current value:"
            r" \S*mem_fraction_static=(?P<_fraction>[\d.]+))?"
        ),
        cause="no_room_for_kv",
        remedies=("sgl_fraction_up", "quantise_or_tp", "shorter_model_len"),
        source="sglang srt/model_executor/model_runner.py -> pool_configurator.py",
        examples=(
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
            "Current value: mem_fraction_static=0.72",
        ),
    ),
    Signature(
        id="sgl-retract",
        family="kv_cache",
        severity="notice",
        role="count",
        literals=("KV cache pool is full. Retract requests.", "Decode out of memory happened."),
        pattern=(
            r"(?:KV cache pool is full\. (?:Retract requests|Testing retraction)\.|Decode out of"
            r" memory happened\.) ?#retracted_reqs: (?P<_n>\d+)(?:, #new_tokens?_(?:gained:"
            r" (?P<_gained>\d+)|ratio: (?P<_r0>[\d.]+) -> (?P<_r1>[\d.]+)))?"
        ),
        cause="kv_pressure",
        remedies=("fewer_requests", "sgl_conservative", "sgl_fraction_up", "kv_fp8"),
        at_least=5,
        source="sglang srt/managers/scheduler.py",
        examples=(
            "[2026-05-01 10:00:00 TP0] KV cache pool is full. Retract requests. #retracted_reqs: "
            "3, #new_token_ratio: 0.3120 -> 0.7000",
            "[2025-01-05 10:00:00 TP0] Decode out of memory happened. #retracted_reqs: 1, "
            "#new_token_ratio: 0.1900 -> 0.8531",
        ),
    ),
    Signature(
        id="sgl-slots",
        family="kv_cache",
        literals=("alloc_req_slots runs out of memory.",),
        pattern=(
            r"alloc_req_slots runs out of memory\. Please set a smaller number for"
            r" `--max-running-requests`"
        ),
        cause="request_slots",
        remedies=("fewer_requests", "upgrade_server"),
        source="sglang srt/mem_cache/common.py -> allocation.py",
        examples=(
            "RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for "
            "`--max-running-requests`. req_to_token_pool.available_size()=1, num_reqs=4,",
        ),
    ),
    Signature(
        id="sgl-batch-oom",
        family="kv_cache",
        literals=("Try to lower your batch size",),
        pattern=(r"(?P<_phase>Prefill|Decode)? ?[Oo]ut of memory\. Try to lower your batch size\."),
        cause="token_pool_empty",
        remedies=("sgl_chunked", "fewer_requests", "sgl_fraction_up"),
        source="sglang srt/mem_cache/common.py",
        examples=("RuntimeError: Prefill out of memory. Try to lower your batch size.",),
    ),
    Signature(
        id="sgl-retract-fail",
        family="kv_cache",
        literals=("Failed to retract any request. No space left for only one request.",),
        pattern=(r"Failed to retract any request\. No space left for only one request\."),
        cause="kv_one_request",
        remedies=("shorter_model_len", "sgl_fraction_up"),
        source="sglang srt/managers/schedule_batch.py",
        examples=(
            "ValueError: Failed to retract any request. No space left for only one request.",
        ),
    ),
    Signature(
        id="sgl-poolleak",
        family="leak",
        severity="warning",
        literals=("emory leak detected!", "Mem Leak Detected!"),
        pattern=(
            r"(?P<_pool>token_to_kv_pool_allocator|req_to_token_pool|\w[\w ]*?) ?(?:memory leak"
            r" detected!|Pool Mem Leak Detected!|Mem Leak Detected!)"
        ),
        cause="slot_leak",
        remedies=("restart_server", "upgrade_server"),
        source="sglang srt/managers/scheduler*.py (idle self-check)",
        examples=(
            "ValueError: token_to_kv_pool_allocator memory leak detected! "
            "self.max_total_num_tokens=412368, available_size=410112, evictable_size=0, "
            "protected_size=0",
        ),
    ),
    Signature(
        id="sgl-capture",
        family="gpu_oom",
        literals=("Capture cuda graph failed:",),
        pattern=(r"Capture cuda graph failed: (?P<_why>.+)"),
        cause="graphs_do_not_fit",
        remedies=("sgl_fraction_down", "sgl_graph_bs"),
        source="sglang srt/model_executor/cuda_graph_runner.py",
        examples=(
            "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 512.00 "
            "MiB.",
        ),
    ),
    Signature(
        id="sgl-dead",
        family="crash",
        role="wrapper",
        literals=(
            "scheduler is dead. Please check if there are relevant logs.",
            "Received sigquit from a child process",
        ),
        pattern=(
            r"(?:Rank (?P<rank>\d+) scheduler is dead\. Please check if there are relevant logs|"
            r"Received sigquit from a child process)"
        ),
        cause="engine_died",
        remedies=("read_first_error",),
        source="sglang srt/entrypoints/engine.py",
        examples=(
            "[2026-05-01 10:00:03] Rank 0 scheduler is dead. Please check if there are relevant "
            "logs.",
        ),
    ),
    Signature(
        id="sgl-exc",
        family="crash",
        role="wrapper",
        literals=("Scheduler hit an exception:",),
        pattern=(r"Scheduler hit an exception: "),
        cause="worker_exception",
        remedies=("read_first_error",),
        source="sglang srt/managers/scheduler.py",
        examples=(
            "[2026-05-01 10:00:03 TP0] Scheduler hit an exception: Traceback (most recent call "
            "last):",
        ),
    ),
    Signature(
        id="sgl-watchdog",
        family="hang",
        role="symptom",
        literals=("Watchdog timeout", "watchdog timeout"),
        pattern=(
            r"(?:(?P<_who>\w+) )?[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<_s>[\d.]+)(?:,"
            r" self\.soft=(?P<_soft>True|False))?\)"
        ),
        cause="worker_stuck",
        remedies=("check_xid", "py_spy"),
        source="sglang srt/managers/scheduler.py -> utils/watchdog.py",
        examples=(
            "[2026-05-01 10:05:00 TP0] Watchdog timeout (self.watchdog_timeout=300)",
            "[2026-05-01 10:05:00] Scheduler watchdog timeout (self.watchdog_timeout=300, "
            "self.soft=False)",
        ),
    ),
    Signature(
        id="sgl-rank-load",
        family="hang",
        role="symptom",
        literals=("there are other ranks that didn't finish loading",),
        pattern=(
            r"TP rank (?P<rank>\d+) could finish the model loading, but there are other ranks that"
            r" didn't finish loading"
        ),
        cause="other_rank_died",
        remedies=("look_at_other_ranks",),
        source="sglang srt/model_executor",
        examples=(
            "ValueError: TP rank 0 could finish the model loading, but there are other ranks "
            "that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or "
            "a slow node.",
        ),
    ),
    Signature(
        id="sgl-nan",
        family="nan",
        literals=("Detected errors during sampling! NaN in the logits.",),
        pattern=(r"Detected errors during sampling! NaN in the logits\."),
        cause="nan_logits",
        remedies=("use_bf16", "other_attention", "check_checkpoint"),
        source="sglang srt/layers/sampler.py",
        examples=("[2026-05-01 10:00:03 TP0] Detected errors during sampling! NaN in the logits.",),
    ),
    Signature(
        id="sgl-decode",
        family="kv_cache",
        severity="notice",
        role="metric",
        literals=("Decode batch",),
        pattern=(
            r"Decode batch(?:\.| \[\d+\],|,) #running-req: (?P<_run>\d+), .*?(?:full )?token usage:"
            r" (?P<_kv>[\d.]+)"
        ),
        cause="kv_pressure",
        source="sglang srt/managers/scheduler*.py -> observability",
        examples=(
            "[2026-05-01 10:00:00 TP0] Decode batch, #running-req: 64, #token: 310022, token "
            "usage: 0.75, cuda graph: True, gen throughput (token/s): 3120.44, #queue-req: 12",
            "[2025-01-05 10:00:00 TP0] Decode batch. #running-req: 12, #token: 9071, token "
            "usage: 0.01, gen throughput (token/s): 88.20, #queue-req: 0",
        ),
    ),
)
