"""The numbers of an incident as a person reads them: "tried 1.75 GiB, of the limit 24.0 GiB"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cockpit.i18n import _ as translate
from cockpit.i18n.describe import size_text, span_text
from cockpit.i18n.sentences import N_ as _
from cockpit.i18n.sentences import listed

LABELS: Final[dict[str, str]] = {
    "tried_mib": _("tried"),
    "free_mib": _("free"),
    "total_mib": _("of"),
    "allocated_mib": _("allocated"),
    "reserved_mib": _("reserved"),
    "unallocated_mib": _("reserved and unused"),
    "private_pools_mib": _("private pools"),
    "in_use_mib": _("in use"),
    "allowed_mib": _("allowed"),
    "limit_mib": _("limit"),
    "needed_mib": _("needed"),
    "available_mib": _("available"),
    "kv_cache_mib": _("KV cache"),
    "anon_rss_mib": _("its memory"),
    "host_used_mib": _("host in use"),
    "host_total_mib": _("host memory"),
    "slope_mib_per_h": _("growth per hour"),
    "eta_s": _("full in"),
    "eta_low_s": _("at the earliest in"),
    "eta_high_s": _("at the latest in"),
    "gpu_index": _("GPU"),
    "rank": _("rank"),
    "pid": _("pid"),
    "exitcode": _("exit code"),
    "signal": _("signal"),
    "errno": _("errno"),
    "xid": _("Xid"),
    "bus_id": _("bus"),
    "step": _("step"),
    "total_steps": _("steps in all"),
    "epoch": _("epoch"),
    "port": _("port"),
    "path": _("path"),
    "max_model_len": _("context length"),
    "gpu_memory_utilization": _("share of memory"),
    "tokens": _("tokens"),
    "reason": _("reason"),
    "running": _("in work"),
    "waiting": _("waiting"),
    "kv_pct": _("KV cache, %"),
    "preemptions_per_min": _("put back a minute"),
    "aborted_per_min": _("given up a minute"),
    "queue_p95_s": _("in the queue, s (p95)"),
    "e2e_p95_s": _("in all, s (p95)"),
    "hit_pct": _("found in the cache, %"),
    "usual_pct": _("usually, %"),
    "times": _("times"),
    "per_1000_requests_mib": _("growth per 1000 requests"),
    "hours": _("hours"),
    "used_pct": _("used, %"),
    "cost": _("cost"),
    "currency": _("in"),
    "max_cost": _("max. cost"),
    "max_hours": _("max. hours"),
}


def facts_text(facts: Mapping[str, object]) -> str:
    """Every fact with its label, sizes with their unit."""
    return listed(f"{label} {value}" for label, value in fact_words(facts))


def fact_words(facts: Mapping[str, object]) -> list[tuple[str, str]]:
    """(label, value) of every fact."""
    return [(_label(name), _value(name, value)) for name, value in facts.items()]


def _label(name: str) -> str:
    if name in LABELS:
        return translate(LABELS[name])
    for unit in ("_mib", "_s", "_pct"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def _value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return translate("yes") if value else translate("no")
    if isinstance(value, int | float) and (name.endswith("_mib") or name.endswith("_mib_per_h")):
        return size_text(value)
    if isinstance(value, float):
        return span_text(value) if name.endswith("_s") else f"{value:.6g}"
    return span_text(value) if name.endswith("_s") and isinstance(value, int) else str(value)
