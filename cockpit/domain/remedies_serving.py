"""Remedies of a server, by its own options: what it takes of the card, how long, how many, over how many cards."""

from __future__ import annotations

import math
from typing import Final

from cockpit.domain.incidents import FactValue
from cockpit.domain.profile_options import Option, ProfileOptions
from cockpit.domain.remedy_case import SERVERS, Case, Fit, Fitted, told, whole_of

FRACTION: Final = {
    "vllm": "gpu_memory_utilization", "sglang": "mem_fraction_static",
    "tgi": "cuda_memory_fraction", "trtllm": "free_gpu_memory_fraction",
}  # fmt: skip
REQUESTS: Final = {
    "vllm": "max_num_seqs", "sglang": "max_running_requests", "tgi": "max_concurrent_requests",
    "trtllm": "max_batch_size", "ollama": "num_parallel",
}  # fmt: skip
LENGTH: Final = {
    "vllm": "max_model_len", "sglang": "context_length", "tgi": "max_total_tokens",
    "trtllm": "max_seq_len", "ollama": "context_length",
}  # fmt: skip
STEP_TOKENS: Final = {
    "vllm": "max_num_batched_tokens", "sglang": "chunked_prefill_size",
    "tgi": "max_batch_prefill_tokens", "trtllm": "max_num_tokens",
}  # fmt: skip
PARALLEL: Final = {
    "vllm": "tensor_parallel_size", "sglang": "tp_size", "tgi": "num_shard", "trtllm": "tp_size",
}  # fmt: skip
CACHE_TYPE: Final = {
    "vllm": ("kv_cache_dtype", "fp8"), "sglang": ("kv_cache_dtype", "fp8_e5m2"),
    "ollama": ("kv_cache_type", "q8_0"),
}  # fmt: skip

VLLM_FRACTION: Final = 0.9
"""Its default for long; versions of 2026 have 0.92."""
FRACTION_MOST: Final = 0.95
FRACTION_MARGIN: Final = 0.02
FRACTION_STEP: Final = 0.05
FRACTION_LEAST: Final = 0.1
LEAST_REQUESTS: Final = 128
"""Half of what vLLM takes on most cards when nothing is said."""
BLOCK_TOKENS: Final = 16
LEAST_TOKENS: Final = 512
FEW_STEP_TOKENS: Final = 2048
CACHE_SAVES: Final = 2.0
"""So many times as many tokens fit in 8 bits."""


def lower_to_free(code: str, case: Case) -> Fitted:
    """No more than the card has free; a leftover on it, as seen a moment ago, counts as it is."""
    total, free = case.total_mib, case.number("free_mib")
    if free is None and total is not None and case.room.others_mib is not None:
        free = total - case.room.others_mib
    if not total or free is None:
        return told(code)
    value = math.floor((free / total - FRACTION_MARGIN) * 100) / 100
    before = _fraction(case)
    if value < FRACTION_LEAST or value >= before:
        return told(code)
    return _with(code, case, FRACTION, value)


def raise_fraction(code: str, case: Case) -> Fitted | None:
    """As much as this incident lacks, where the card really has it free."""
    before, total = _fraction(case), case.total_mib
    most = FRACTION_MOST
    if total is not None and case.room.others_mib is not None:
        free_share = (total - case.room.others_mib) / total - FRACTION_MARGIN
        most = min(most, math.floor(free_share * 100) / 100)
    if before >= most:
        return None
    needed = _lacking_mib(case)
    if needed is None or total is None:
        return _with(code, case, FRACTION, most)
    least = math.ceil((before + needed / total + 0.01) * 100) / 100
    if least > most:
        return Fitted(told(code).remedy, is_enough=False)
    made = _with(code, case, FRACTION, min(most, max(least, VLLM_FRACTION)))
    return Fitted(made.remedy, is_enough=True)


def lower_fraction(code: str, case: Case) -> Fitted:
    before = _fraction(case)
    if case.server not in FRACTION or before <= 2 * FRACTION_STEP:
        return told(code)
    return _with(code, case, FRACTION, round(before - FRACTION_STEP, 2))


def length_that_fits(code: str, case: Case) -> Fitted:
    tokens = case.number("tokens")
    fits = 0 if tokens is None else int(tokens) // BLOCK_TOKENS * BLOCK_TOKENS
    if fits <= 0:
        return told(code)
    return Fitted(_with(code, case, LENGTH, fits).remedy, is_enough=True)


def shorter_length(code: str, case: Case) -> Fitted:
    before = whole_of(_option(case.options(), case, LENGTH)) or _whole(case, "max_model_len")
    if before is None or before < 2 * LEAST_TOKENS:
        return told(code)
    return _with(code, case, LENGTH, before // 2 // BLOCK_TOKENS * BLOCK_TOKENS)


def smaller_cache(code: str, case: Case) -> Fitted | None:
    """8 bits a value; None where they are used already."""
    options = case.options()
    if case.server not in CACHE_TYPE:
        return told(code)
    name, value = CACHE_TYPE[case.server]
    option = options.find((name,))
    if option is not None and str(option.value) not in ("auto", "f16", "bf16", "bfloat16"):
        return None
    _set(options, case, name, value)
    if case.server == "ollama":
        options.put("ollama.flash_attention", True)
    needed, has = case.number("needed_mib"), _available(case)
    is_enough = None if needed is None or has is None else needed / CACHE_SAVES <= has
    return Fitted(told(code, options).remedy, is_enough)


def fewer_requests(code: str, case: Case) -> Fitted | None:
    before = whole_of(_option(case.options(), case, REQUESTS)) or _whole(case, "max_num_seqs")
    if before is not None and before < 2:
        return None
    if before is None and case.server not in ("vllm", "sglang"):
        return told(code)
    return _with(code, case, REQUESTS, LEAST_REQUESTS if before is None else before // 2)


def more_requests(code: str, case: Case) -> Fitted | None:
    """Twice as many, or what most cards take when nothing is said, twice."""
    before = whole_of(_option(case.options(), case, REQUESTS))
    if before is None and case.server != "vllm":
        return told(code)
    return _with(code, case, REQUESTS, 2 * (2 * LEAST_REQUESTS if before is None else before))


def larger_steps(code: str, case: Case) -> Fitted:
    before = whole_of(_option(case.options(), case, STEP_TOKENS))
    if before is None and case.server != "vllm":
        return told(code)
    return _with(code, case, STEP_TOKENS, 2 * (FEW_STEP_TOKENS if before is None else before))


def smaller_steps(code: str, case: Case) -> Fitted | None:
    before = whole_of(_option(case.options(), case, STEP_TOKENS))
    value = FEW_STEP_TOKENS if before is None or before > FEW_STEP_TOKENS else before // 2
    if value < LEAST_TOKENS:
        return None
    return _with(code, case, STEP_TOKENS, value)


def more_cards(code: str, case: Case) -> Fitted:
    """Twice the cards, where the host has them and the profile counts them."""
    options = case.options()
    name = PARALLEL.get(case.server)
    count = options.value("gpus.count")
    if name is None or not isinstance(count, int) or options.value("gpus.index") is not None:
        return told(code)
    if case.room.cards is None or case.room.cards < 2 * count:
        return told(code)
    options.put("gpus.count", 2 * count)
    size = whole_of(options.find((name,)))
    if size is not None:
        _set(options, case, name, 2 * size)
    return told(code, options, cards=2 * count)


def chunked_prefill(code: str, case: Case) -> Fitted | None:
    if case.server != "vllm":
        return told(code)
    return _switched(code, case, "enable_chunked_prefill")


def eager(code: str, case: Case) -> Fitted | None:
    name = {"vllm": "enforce_eager", "sglang": "disable_cuda_graph"}.get(case.server)
    return told(code) if name is None else _switched(code, case, name)


def _switched(code: str, case: Case, name: str) -> Fitted | None:
    options = case.options()
    option = options.find((name,))
    if option is not None and option.is_on:
        return None
    _set(options, case, name, True)
    return told(code, options)


def fraction_up(code: str, case: Case) -> Fitted:
    return _moved(code, case, 0.04)


def fraction_down(code: str, case: Case) -> Fitted:
    return _moved(code, case, -0.07)


def _moved(code: str, case: Case, by: float) -> Fitted:
    option = _option(case.options(), case, FRACTION)
    before = option.number if option is not None else None
    if before is None or not FRACTION_LEAST < before + by <= FRACTION_MOST:
        return told(code)
    return _with(code, case, FRACTION, round(before + by, 2))


def other_port(code: str, case: Case) -> Fitted:
    """The next port, unless the profile leads others to this one."""
    options = case.options()
    key = f"{options.kind}.port"
    port = options.value(key) or case.number("port")
    if options.kind not in SERVERS or not isinstance(port, int | float) or port >= 65_535:
        return told(code)
    if options.value("forward") or options.value("ready.port") or options.value("metrics.port"):
        return told(code)
    options.put(key, int(port) + 1)
    return told(code, options, port=int(port) + 1)


def _with(code: str, case: Case, names: dict[str, str], value: float) -> Fitted:
    """The remedy that gives the server's option of this meaning a value."""
    options = case.options()
    name = names.get(case.server)
    if name is None:
        return told(code)
    facts: dict[str, FactValue] = {"value": value, "option": name}
    option = options.find((name,))
    before = option.number if option is not None else None
    if before is not None:
        facts["before"] = int(before) if before.is_integer() else before
    _set(options, case, name, value)
    return told(code, options, **facts)


def _set(options: ProfileOptions, case: Case, name: str, value: object) -> None:
    option = options.find((name,))
    if option is not None:
        if option.form != "flag":
            options.set(option, value)
    elif options.kind == case.server:
        options.put(f"{options.kind}.{name}", value)
    else:
        words = options.words("command.argv")
        added = [] if value is True else [f"{value:g}" if isinstance(value, float) else str(value)]
        options.put("command.argv", [*words, "--" + name.replace("_", "-"), *added])


def _option(options: ProfileOptions, case: Case, names: dict[str, str]) -> Option | None:
    name = names.get(case.server)
    return None if name is None else options.find((name,))


def _fraction(case: Case) -> float:
    option = _option(case.options(), case, FRACTION)
    said = option.number if option is not None else None
    return said or case.number("gpu_memory_utilization") or VLLM_FRACTION


def _lacking_mib(case: Case) -> float | None:
    needed, has = case.number("needed_mib"), _available(case)
    return None if needed is None or has is None else max(0.0, needed - has)


def _available(case: Case) -> float | None:
    has = case.number("available_mib")
    return case.number("kv_cache_mib") if has is None else has


def _whole(case: Case, name: str) -> int | None:
    number = case.number(name)
    return None if number is None or number <= 0 else int(number)


FITS: Final[dict[str, Fit]] = {
    "lower_utilisation_to_free": lower_to_free,
    "raise_utilisation": raise_fraction,
    "lower_utilisation": lower_fraction,
    "max_model_len_that_fits": length_that_fits,
    "shorter_model_len": shorter_length,
    "smaller_context": shorter_length,
    "kv_fp8": smaller_cache,
    "kv_quant": smaller_cache,
    "max_num_seqs_down": fewer_requests,
    "fewer_requests": fewer_requests,
    "fewer_slots": fewer_requests,
    "max_num_seqs_up": more_requests,
    "more_batched_tokens": larger_steps,
    "fewer_batched_tokens": smaller_steps,
    "sgl_chunked": smaller_steps,
    "tensor_parallel": more_cards,
    "quantise_or_tp": more_cards,
    "chunked_prefill": chunked_prefill,
    "enforce_eager": eager,
    "sgl_graph_bs": eager,
    "sgl_fraction_up": fraction_up,
    "sgl_fraction_down": fraction_down,
    "trt_fraction": fraction_down,
    "free_port": other_port,
}
