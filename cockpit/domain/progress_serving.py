"""The periodic lines of servers: throughput, requests that run and wait, the fill of the KV cache."""

from __future__ import annotations

import re
from typing import Final

from cockpit.domain.progress_said import Said, finite

_VLLM: Final = re.compile(
    r"(?:Avg prompt throughput: (?P<prompt>[\d.]+) tokens/s, )?Avg generation throughput: (?P<made>[\d.]+) tokens/s"
    r"(?:, Running: (?P<running>\d{1,9}) reqs)?(?:.{0,40}?, Waiting: (?P<waiting>\d{1,9}) reqs)?"
    r"(?:.{0,120}?KV cache usage: (?P<kv>[\d.]+)%)?"
)
_SGLANG_RUNNING: Final = re.compile(r"#running-req: (\d{1,9})")
_SGLANG_WAITING: Final = re.compile(r"#queue-req: (\d{1,9})")
_SGLANG_FILL: Final = re.compile(r"token usage: ([\d.]+)")
_SGLANG_MADE: Final = re.compile(r"gen throughput \(token/s\): ([\d.]+)")
_SGLANG_READ: Final = re.compile(r"input throughput \(token/s\): ([\d.]+)")
_LLAMACPP: Final = re.compile(
    r"(?<!prompt )eval time =\s{0,20}[\d.]+ ms /\s{0,20}\d+ (?:tokens|runs)\s{0,4}\(.{0,60}?, +([\d.]+) tokens per"
)


def vllm(text: str) -> Said | None:
    match = _VLLM.search(text)
    if match is None:
        return None
    return Said(
        tokens_s=finite(match["made"]),
        running=_whole(match["running"]),
        waiting=_whole(match["waiting"]),
        kv_pct=finite(match["kv"]),
        prompt_s=finite(match["prompt"]),
    )


def sglang(text: str) -> Said | None:
    """A decode or a prefill line; another rank than the first repeats it."""
    if "TP" in text[:80] and "TP0" not in text[:80]:
        return None
    made, read = _SGLANG_MADE.search(text), _SGLANG_READ.search(text)
    running, waiting = _SGLANG_RUNNING.search(text), _SGLANG_WAITING.search(text)
    if running is None and made is None:
        return None
    fill = _SGLANG_FILL.search(text)
    share = finite(fill[1]) if fill else None
    return Said(
        tokens_s=finite(made[1]) if made else None,
        running=_whole(running[1]) if running else None,
        waiting=_whole(waiting[1]) if waiting else None,
        kv_pct=None if share is None else round(share * 100, 1),
        prompt_s=finite(read[1]) if read else None,
    )


def llamacpp(text: str) -> Said | None:
    match = _LLAMACPP.search(text)
    return Said(tokens_s=finite(match[1])) if match else None


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
