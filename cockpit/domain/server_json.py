"""Servers that speak JSON: which models Ollama or llama-swap hold in memory, and TensorRT-LLM's iterations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final

from cockpit.domain.server_text import ServerReading
from cockpit.domain.text import safe_line

MOST_MODELS: Final = 64
NAME_CHARS: Final = 120
_MIB: Final = 1024 * 1024
_LARGEST: Final = 1e18


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that a server has in memory now."""

    name: str
    size_mib: float | None = None
    vram_mib: float | None = None
    """What of it is on cards; less than its size when a part runs on the CPU."""
    expires: str = ""
    """When it will be dropped unless it is asked again, in the server's words."""


def read_models(page: bytes) -> tuple[LoadedModel, ...] | None:
    """Of Ollama's /api/ps or llama-swap's /running; None when the page is neither."""
    told = _json(page)
    if not isinstance(told, dict):
        return None
    rows = told.get("models", told.get("running"))
    if not isinstance(rows, list):
        return None
    found = (_model(row) for row in rows[:MOST_MODELS] if isinstance(row, dict))
    return tuple(one for one in found if one is not None)


def read_iterations(page: bytes, at_s: float) -> ServerReading | None:
    """Of trtllm-serve's /metrics, which is drained by reading: its newest iteration. None for anything else."""
    told = _json(page)
    if not isinstance(told, list):
        return None
    last = next((row for row in reversed(told[-MOST_MODELS:]) if isinstance(row, dict)), None)
    if last is None:
        return ServerReading(at_s)
    cache = last.get("kvCacheStats")
    cache = cache if isinstance(cache, dict) else {}
    used, most = _number(cache, "usedNumBlocks"), _number(cache, "maxNumBlocks")
    gauges = {
        "running": _number(last, "numActiveRequests"),
        "waiting": _number(last, "numQueuedRequests"),
        "kv_usage": used / most if used is not None and most else None,
        "prefix_hit": _number(cache, "cacheHitRate"),
    }
    return ServerReading(at_s, {name: one for name, one in gauges.items() if one is not None})


def _json(page: bytes) -> object:
    try:
        return json.loads(page)
    except (ValueError, RecursionError):
        return None


def _model(row: Mapping[str, object]) -> LoadedModel | None:
    name = row.get("name") or row.get("model")
    if not isinstance(name, str) or row.get("state") in ("stopped", "stopping", "shutdown"):
        return None
    size, vram, expires = _number(row, "size"), _number(row, "size_vram"), row.get("expires_at")
    return LoadedModel(
        safe_line(name)[:NAME_CHARS],
        None if size is None else size / _MIB,
        None if vram is None else vram / _MIB,
        safe_line(expires)[:40] if isinstance(expires, str) else "",
    )


def _number(row: Mapping[str, object], name: str) -> float | None:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _LARGEST and isfinite(value) else None
