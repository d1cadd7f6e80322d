"""Why a card was full: the sub-cause from PyTorch's own numbers, the phase from the traceback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cockpit.domain.incidents import FactValue
from cockpit.domain.signatures.values import size_mib

HUGE_TENSOR_SHARE: Final = 0.5
"""Of the card, in one allocation: a shape or an attention matrix, not a batch that is a bit large."""
TENANT_MIB: Final = 1024.0
FRAGMENTED_MIB: Final = 512.0
FRAGMENTED_SHARE: Final = 0.12
"""Reserved but unallocated, of all that PyTorch holds."""
OUTSIDE_TORCH_MIB: Final = 2048.0

_PROCESS: Final = re.compile(r"Process ?(\d+) ?has ?([\d.]+ ?[A-Za-z]+?) ?memory ?in ?use")
_NEARLY_MIB: Final = 3072.0
"""A process holds this much more than its tensors: the context, libraries, NCCL."""

_PHASES: Final = (
    ("weights", re.compile(r"load_state_dict|from_pretrained|load_model|\bin _?to\b|\.to\(|\.cuda\(")),
    ("profiling", re.compile(r"profile_run|determine_available_memory|determine_num_available_blocks")),
    ("graphs", re.compile(r"capture_model|cuda_graph_runner|_capture_cudagraphs|\bcapture\b.{0,20}graph")),
    ("sampler", re.compile(r"in _?(?:dummy_)?sampler_run|/sampler\.py")),
    ("logits", re.compile(r"cross_entropy|\blm_head\b|logits\.float\(\)|compute_logits")),
    ("optimizer", re.compile(r"/optim/\w+\.py|optimizer\.step|\bin _init_group\b|exp_avg")),
    ("backward", re.compile(r"loss\.backward|_engine_run_backward|in backward\b|autograd/__init__\.py")),
    ("evaluation", re.compile(r"in (?:evaluate|evaluation_loop|prediction_step|generate|predict)\b")),
    ("saving", re.compile(r"in (?:state_dict|save_checkpoint|save_model|_save|save_pretrained)\b")),
    ("attention", re.compile(r"scaled_dot_product|\battn\b|attention\.py|eager_attention_forward")),
)  # fmt: skip
_TRACEBACK: Final = "Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class Holder:
    """Another process that held memory on the card, as the message says."""

    pid: int
    mib: float


def holders(text: str) -> tuple[Holder, ...]:
    """Every "Process N has X memory in use" of a message."""
    found = ((int(pid), size_mib(size)) for pid, size in _PROCESS.findall(text)[:64])
    return tuple(Holder(pid, float(mib)) for pid, mib in found if mib is not None)


def others_of(facts: Mapping[str, FactValue], named: tuple[Holder, ...]) -> tuple[Holder, ...]:
    """The named processes without this one: some versions list it among them."""
    own = _number(facts, "in_use_mib")
    held = (_number(facts, "allocated_mib") or 0.0) + (_unallocated(facts) or 0.0)
    if own is None and named and 0 <= named[-1].mib - held <= _NEARLY_MIB:
        return named[:-1]
    return named


def sub_cause(facts: Mapping[str, FactValue], named: tuple[Holder, ...] = ()) -> str:
    """Which of the ways to run out of memory this was; `too_big` when nothing stranger fits."""
    if "allowed_mib" in facts:
        return "own_cap"
    tried, total, free = (_number(facts, name) for name in ("tried_mib", "total_mib", "free_mib"))
    if tried is None or total is None:
        return "too_big"
    others = _others_mib(facts, named, total, free)
    if tried >= HUGE_TENSOR_SHARE * total or tried > total - others:
        return "huge_tensor"
    if others >= max(TENANT_MIB, tried):
        return "other_tenant"
    return _own_cause(facts, tried, free)


def _own_cause(facts: Mapping[str, FactValue], tried: float, free: float | None) -> str:
    allocated = _number(facts, "allocated_mib") or 0.0
    idle = _unallocated(facts) or 0.0
    if idle >= max(tried, FRAGMENTED_MIB) or idle > FRAGMENTED_SHARE * (allocated + idle):
        return "fragmentation"
    in_use = _number(facts, "in_use_mib")
    if in_use is not None and in_use - allocated - idle > OUTSIDE_TORCH_MIB:
        return "outside_torch"
    return "driver_fragmentation" if free is not None and free >= tried else "too_big"


def _others_mib(
    facts: Mapping[str, FactValue], named: tuple[Holder, ...], total: float, free: float | None
) -> float:
    in_use = _number(facts, "in_use_mib")
    if in_use is not None and free is not None:
        return max(0.0, total - free - in_use)
    return sum(holder.mib for holder in others_of(facts, named))


def _unallocated(facts: Mapping[str, FactValue]) -> float | None:
    stated = _number(facts, "unallocated_mib")
    if stated is not None:
        return stated
    reserved, allocated = _number(facts, "reserved_mib"), _number(facts, "allocated_mib")
    return None if reserved is None or allocated is None else max(0.0, reserved - allocated)


def phase_of(context: str) -> str:
    """What the program was doing, by the innermost known frame of the last traceback; "" if unknown."""
    frames = context[max(0, context.rfind(_TRACEBACK)) :]
    best, best_at = "", -1
    for name, pattern in _PHASES:
        for match in pattern.finditer(frames):
            if match.start() > best_at:
                best, best_at = name, match.start()
    return best


def serving_kind(process: str, context: str) -> str:
    """Which server printed it: vllm, sglang, or "" for a training run."""
    if process.startswith(("Engine", "Worker_", "VllmWorker", "APIServer")) or "/vllm/" in context:
        return "vllm"
    return "sglang" if "/sglang/" in context else ""


def _number(facts: Mapping[str, FactValue], name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else None
