"""What to do, in the order in which an expert would try it, with the profile change where it is one.

A patch holds only keys of the profile's schema and values that are computed here from parsed
numbers; no text of a host ever becomes part of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from cockpit.domain.incidents import FactValue, Remedy

Facts: TypeAlias = Mapping[str, FactValue]

UTILISATION_MARGIN: Final = 0.02
"""Left between what is free and what a server is told to take."""
UTILISATION_HIGH: Final = 0.95
UTILISATION_STEP: Final = 0.05
TOKENS_STEP: Final = 16
"""Context lengths are cut to whole KV-cache blocks."""

TRAINING: Final = (
    "smaller_batch", "gradient_checkpointing", "shorter_sequences", "lean_optimizer", "shard",
)  # fmt: skip
BY_SUB_CAUSE: Final[dict[str, tuple[str, ...]]] = {
    "own_cap": ("raise_memory_fraction", *TRAINING[:2]),
    "huge_tensor": ("fused_attention", "chunked_loss", "print_shapes", "shorter_sequences"),
    "other_tenant": ("kill_orphan", "pick_empty_card", "smaller_batch"),
    "fragmentation": ("expandable_segments", "smaller_batch", "empty_cache"),
    "outside_torch": ("fewer_communicators", "headroom", "smaller_batch"),
    "driver_fragmentation": ("expandable_segments", "compare_smi"),
    "too_big": TRAINING,
}
BY_PHASE: Final[dict[str, tuple[str, ...]]] = {
    "weights": ("quantise_weights", "shard", "offload", "bigger_card"),
    "optimizer": ("lean_optimizer", "shard", "offload"),
    "evaluation": ("smaller_eval_batch", "predictions_to_cpu"),
    "saving": ("save_sharded", "headroom"),
    "logits": ("chunked_loss", "shorter_sequences", "smaller_batch"),
    "attention": ("fused_attention", "shorter_sequences", "smaller_batch"),
    "backward": TRAINING,
}
BY_SERVING_PHASE: Final[dict[str, tuple[str, ...]]] = {
    "weights": ("quantise_or_tp", "cpu_offload"),
    "profiling": ("fewer_batched_tokens", "max_num_seqs_down", "quantise_or_tp"),
    "graphs": ("enforce_eager", "lower_utilisation"),
    "sampler": ("max_num_seqs_down", "lower_utilisation"),
}
SERVING: Final = ("lower_utilisation", "max_num_seqs_down", "chunked_prefill")
SGLANG: Final = ("sgl_fraction_down", "fewer_requests", "sgl_chunked")


def ladder(sub_cause: str, phase: str, kind: str) -> tuple[str, ...]:
    """Remedy codes for a PyTorch OOM, best first."""
    if sub_cause != "too_big":
        return BY_SUB_CAUSE[sub_cause]
    if kind == "vllm":
        return BY_SERVING_PHASE.get(phase, SERVING)
    if kind == "sglang":
        return SGLANG
    return BY_PHASE.get(phase, TRAINING)


def make(code: str, facts: Facts) -> Remedy:
    """The remedy with its numbers, and its patch when the facts are enough for one."""
    maker = _MAKERS.get(code)
    return maker(code, facts) if maker else Remedy(code)


def make_all(codes: tuple[str, ...], facts: Facts) -> tuple[Remedy, ...]:
    return tuple(make(code, facts) for code in dict.fromkeys(codes))


def _patched(code: str, key: str, new: object, **facts: FactValue) -> Remedy:
    return Remedy(code, facts, {key: new})


def _expandable(code: str, facts: Facts) -> Remedy:
    return _patched(code, "env.set.PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")


def _empty_card(code: str, facts: Facts) -> Remedy:
    """Ask for a card with room for what this process held and what it wanted."""
    wanted = sum(_number(facts, name) or 0.0 for name in ("in_use_mib", "tried_mib"))
    total = _number(facts, "total_mib")
    if not wanted or total is None:
        return Remedy(code)
    gib = min(math.ceil(wanted / 1024), math.floor(total / 1024))
    return Remedy(code, {"gib": gib}, {"gpus.min_free": f"{gib} GiB", "gpus.share": False})


def _kill_orphan(code: str, facts: Facts) -> Remedy:
    pid = facts.get("holder_pid")
    return Remedy(code, {"pid": pid} if isinstance(pid, int) else {})


def _main_pid(code: str, facts: Facts) -> Remedy:
    """The process to look at first."""
    pid = facts.get("main_pid")
    return Remedy(code, {"pid": pid} if isinstance(pid, int) else {})


def _to_what_is_free(code: str, facts: Facts) -> Remedy:
    free, total = _number(facts, "free_mib"), _number(facts, "total_mib")
    if not free or not total:
        return Remedy(code)
    value = math.floor((free / total - UTILISATION_MARGIN) * 100) / 100
    before = _number(facts, "gpu_memory_utilization")
    if value < 0.1 or (before is not None and value >= before):
        return Remedy(code)
    return _patched(code, "vllm.gpu_memory_utilization", value, value=value)


def _raise_utilisation(code: str, facts: Facts) -> Remedy:
    before = _number(facts, "gpu_memory_utilization")
    if before is not None and before >= UTILISATION_HIGH:
        return Remedy(code)
    value = UTILISATION_HIGH
    return _patched(code, "vllm.gpu_memory_utilization", value, value=value)


def _lower_utilisation(code: str, facts: Facts) -> Remedy:
    before = _number(facts, "gpu_memory_utilization")
    if before is None or before <= 2 * UTILISATION_STEP:
        return Remedy(code)
    value = round(before - UTILISATION_STEP, 2)
    return _patched(code, "vllm.gpu_memory_utilization", value, value=value)


def _length_that_fits(code: str, facts: Facts) -> Remedy:
    tokens = _number(facts, "tokens")
    fits = 0 if tokens is None else int(tokens) // TOKENS_STEP * TOKENS_STEP
    if fits <= 0:
        return Remedy(code)
    return _patched(code, "vllm.max_model_len", fits, value=fits)


def _fewer_seqs(code: str, facts: Facts) -> Remedy:
    before = _number(facts, "max_num_seqs")
    if before is None or before < 2:
        return Remedy(code)
    return _patched(code, "vllm.max_num_seqs", int(before) // 2, value=int(before) // 2)


def _constant(key: str, value: object) -> Callable[[str, Facts], Remedy]:
    def maker(code: str, facts: Facts) -> Remedy:
        return Remedy(code, {}, {key: value})

    return maker


def _number(facts: Facts, name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else None


_MAKERS: Final[dict[str, Callable[[str, Facts], Remedy]]] = {
    "expandable_segments": _expandable,
    "pick_empty_card": _empty_card,
    "kill_orphan": _kill_orphan,
    "py_spy": _main_pid,
    "py_spy_top": _main_pid,
    "lower_utilisation_to_free": _to_what_is_free,
    "raise_utilisation": _raise_utilisation,
    "lower_utilisation": _lower_utilisation,
    "max_model_len_that_fits": _length_that_fits,
    "max_num_seqs_down": _fewer_seqs,
    "kv_fp8": _constant("vllm.kv_cache_dtype", "fp8"),
    "enforce_eager": _constant("vllm.enforce_eager", True),
    "fewer_threads": _constant("env.set.OMP_NUM_THREADS", "1"),
    "fewer_batched_tokens": _constant("vllm.max_num_batched_tokens", 2048),
}
