"""What the lines around a hit add to it: the phase in the traceback, other processes, limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cockpit.domain.incidents import FactValue
from cockpit.domain.oom import holders, others_of, phase_of, serving_kind, sub_cause
from cockpit.domain.remedies import ladder
from cockpit.domain.signatures import BY_ID
from cockpit.domain.signatures.match import Hit
from cockpit.domain.signatures.prefixes import peel
from cockpit.domain.signatures.values import facts_of, size_mib, tidy

CONTEXT_BYTES: Final = 8192
"""Read before a hit: the traceback that ends in it."""
DETAIL_LINES: Final = 8
"""Read after a hit whose numbers come on lines of their own."""

_CGROUP_LIMIT: Final = re.compile(r"memory: usage \d+kB, limit (\d+kB)")
_ASYNC_DETAIL: Final = re.compile(
    r"^\s*(Currently allocated|Requested|Device limit|Free \(according to CUDA\)|PyTorch limit[^:]*?)"
    r"\s*:\s*([\d.]+ \w+)"
)
_ASYNC_FACTS: Final = {
    "Currently allocated": "allocated_mib", "Requested": "tried_mib", "Device limit": "total_mib",
    "Free (according to CUDA)": "free_mib",
}  # fmt: skip
WRAPPABLE: Final = frozenset({"torch-oom-plain", "torch-oom-bare"})
"""What is matched when the numbers stand on the lines below."""
_WHOLE_MESSAGES: Final = ("torch-oom-cap", "torch-oom-hip", "torch-oom-21", "torch-oom-1x")
_BLANKS: Final = re.compile(r"[\s│┃|]+")
_RAY_DETAIL: Final = re.compile(r"was running was ([\d.]+GB) ?/ ?([\d.]+GB)")
_TABLE_RANK: Final = re.compile(r"^\s*rank\s*: (\d{1,5}) \(local_rank")
_DEFAULT_MAX_SEQS: Final = "n"


def enrich(hit: Hit, context: str) -> Hit:
    """The hit with what stands before it."""
    rule = _RULES.get(hit.signature.id)
    if rule is not None:
        return rule(hit, context)
    return _torch(hit, context) if hit.signature.id.startswith("torch-oom-") else hit


def details_after(hit: Hit, text: str) -> dict[str, FactValue]:
    """Facts of the hit that the next lines hold."""
    if hit.signature.id == "torch-oom-async":
        return _async_detail(text)
    if hit.signature.id in ("ray-oom-error", "ray-oom"):
        return _ray_detail(text)
    if hit.signature.id == "elastic-root" and (rank := _TABLE_RANK.match(text)):
        return {"rank": int(rank[1])}
    return {}


def unwrap(hit: Hit, pieces: tuple[str, ...]) -> Hit | None:
    """The hit of a message that was cut over several lines, at words or in the middle of them."""
    text = "".join(pieces)
    for name in _WHOLE_MESSAGES:
        signature = BY_ID[name]
        match = signature.squeezed.search(text)
        if match is not None:
            groups = match.groupdict()
            facts = {**hit.facts, **facts_of(groups, signature.bare_unit)}
            details = {key[1:]: value for key, value in groups.items() if key[0] == "_" and value}
            return replace(hit, signature=signature, facts=facts, details=details)
    return None


def piece_of(text: str) -> str:
    """A line's message without blanks, and without the box that a printer drew around it."""
    return _BLANKS.sub("", peel(text).message)


def _torch(hit: Hit, context: str) -> Hit:
    facts = dict(hit.facts)
    named = holders(hit.details.get("procs", ""))
    others = others_of(facts, named)
    cause = hit.cause if hit.cause != "too_big" else sub_cause(facts, named)
    if others:
        largest = max(others, key=lambda holder: holder.mib)
        facts.update(holder_pid=largest.pid, holder_mib=tidy(largest.mib))
    phase, kind = phase_of(context), serving_kind(hit.process, context)
    if hit.cause not in ("too_big", "own_cap"):
        return replace(hit, facts=facts)
    codes = ladder(cause, phase, kind)
    if cause == "too_big" and (phase or kind):
        cause = f"too_big_{phase or 'serving'}"
    return replace(hit, facts=facts, cause=cause, remedies=codes)


def _kernel_kill(hit: Hit, context: str) -> Hit:
    limits = _CGROUP_LIMIT.findall(context)
    limit = size_mib(limits[-1]) if limits else None
    return hit if limit is None else replace(hit, facts={**hit.facts, "limit_mib": limit})


def _sampler(hit: Hit, context: str) -> Hit:
    count = hit.details.get(_DEFAULT_MAX_SEQS, "")
    return replace(hit, facts={**hit.facts, "max_num_seqs": int(count)}) if count else hit


def _async_detail(text: str) -> dict[str, FactValue]:
    match = _ASYNC_DETAIL.match(text)
    if match is None:
        return {}
    name = _ASYNC_FACTS.get(match[1], "allowed_mib")
    size = size_mib(match[2])
    return {} if size is None else {name: size}


def _ray_detail(text: str) -> dict[str, FactValue]:
    match = _RAY_DETAIL.search(text)
    if match is None:
        return {}
    used, total = (size_mib(part.replace("GB", "GiB")) for part in match.groups())
    if used is None or total is None:
        return {}
    return {"host_used_mib": used, "host_total_mib": total}


_RULES: Final[dict[str, Callable[[Hit, str], Hit]]] = {
    "k-oom-kill": _kernel_kill,
    "vllm-sampler": _sampler,
}
