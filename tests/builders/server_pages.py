"""Metric pages as inference servers of several versions write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BOUNDS = (0.1, 0.5, 1.0, 5.0)


def histogram(name: str, counts: Sequence[float], labels: str = "") -> str:
    """`counts` are those of each bucket alone, the last one above every bound."""
    rows, total = [f"# TYPE {name} histogram"], 0.0
    for bound, count in zip([*map(str, BOUNDS), "+Inf"], counts, strict=True):
        total += count
        rows.append(f'{name}_bucket{{le="{bound}"{"," + labels if labels else ""}}} {total}')
    return "\n".join(
        [*rows, f"{name}_count{{{labels}}} {total}", f"{name}_sum{{{labels}}} {total}"]
    )


def page(numbers: Mapping[str, float], *more: str, labels: str = 'model_name="qwen"') -> bytes:
    """A page of plain numbers by name, with other rows after them."""
    rows = [
        f"# HELP {name} Some words.\n{name}{{{labels}}} {value}" for name, value in numbers.items()
    ]
    return "\n".join([*rows, *more, ""]).encode()


def vllm(
    running: float = 0,
    waiting: float = 0,
    kv: float = 0.0,
    generated: float = 0,
    preempted: float = 0,
    *more: str,
) -> bytes:
    """vLLM of 2026."""
    labels = 'engine="0",model_name="qwen"'
    return page(
        {
            "vllm:num_requests_running": running,
            "vllm:num_requests_waiting": waiting,
            "vllm:kv_cache_usage_perc": kv,
            "vllm:generation_tokens_total": generated,
            "vllm:prompt_tokens_total": 10 * generated,
            "vllm:num_preemptions_total": preempted,
        },
        *more,
        labels=labels,
    )
