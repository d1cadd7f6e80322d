"""How a server does, from what its counters moved by: rates, percentiles, and what stands now."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Final

from cockpit.domain.server_json import LoadedModel
from cockpit.domain.server_text import Buckets, ServerReading

WINDOW_S: Final = 30.0
"""Rates and percentiles are of the last half minute: long enough for a few requests, short enough to be now."""


@dataclass(frozen=True, slots=True)
class ServerSample:
    """A server at one moment; what it does not tell, or what had no request to be measured by, is None."""

    at_s: float
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    """0 to 1, of the KV cache."""
    preemptions_per_s: float | None = None
    gen_tokens_per_s: float | None = None
    prompt_tokens_per_s: float | None = None
    requests_per_s: float | None = None
    aborted_per_s: float | None = None
    prefix_hit: float | None = None
    """Share of prompt tokens that were in the cache."""
    ttft_p50_s: float | None = None
    ttft_p95_s: float | None = None
    tpot_p50_s: float | None = None
    tpot_p95_s: float | None = None
    itl_p50_s: float | None = None
    itl_p95_s: float | None = None
    e2e_p50_s: float | None = None
    e2e_p95_s: float | None = None
    queue_p50_s: float | None = None
    queue_p95_s: float | None = None
    finished_total: float | None = None
    tokens_total: float | None = None
    """Generated and read; it stands still when the server does."""
    restarted: bool = False
    """A counter fell since the look before: the server began anew."""
    deferred: int | None = None
    """Of those that wait: for something else than room, such as an adapter."""
    models: tuple[LoadedModel, ...] | None = None
    """What is in memory, where the server loads models by itself."""
    names: tuple[tuple[str, str], ...] = ()
    """(concept, what this server calls it)"""


@dataclass(slots=True)
class ServerMeter:
    """Feed it readings in order; each becomes a sample."""

    _readings: deque[ServerReading] = field(default_factory=deque)

    def feed(self, reading: ServerReading) -> ServerSample:
        restarted = bool(self._readings) and _fell(self._readings[-1], reading)
        if restarted:
            self._readings.clear()
        while self._readings and reading.at_s - self._readings[0].at_s > WINDOW_S:
            self._readings.popleft()
        self._readings.append(reading)
        return _sample(self._readings[0], reading, restarted)


def _fell(before: ServerReading, now: ServerReading) -> bool:
    return any(now.counters.get(name, value) < value for name, value in before.counters.items())


def _sample(first: ServerReading, now: ServerReading, restarted: bool) -> ServerSample:
    took_s = now.at_s - first.at_s
    counters = now.counters

    def rate(name: str) -> float | None:
        if took_s <= 0 or name not in counters or name not in first.counters:
            return None
        return (counters[name] - first.counters[name]) / took_s

    def share(concept: str, of: float) -> float | None:
        if concept not in now.histograms or concept not in first.histograms:
            return None
        return percentile(first.histograms[concept], now.histograms[concept], of)

    hits, queries = rate("prefix_hits"), rate("prefix_queries")
    hit = min(1.0, hits / queries) if hits is not None and queries else None
    generated = rate("generated")
    moved = [counters[name] for name in ("generated", "prompted") if name in counters]
    return ServerSample(
        at_s=now.at_s,
        running=_whole(now.gauges.get("running")),
        waiting=_whole(now.gauges.get("waiting")),
        kv_usage=_of_one(now.gauges.get("kv_usage")),
        preemptions_per_s=rate("preemptions"),
        gen_tokens_per_s=now.gauges.get("gen_tokens_per_s") if generated is None else generated,
        prompt_tokens_per_s=rate("prompted"),
        requests_per_s=rate("finished"),
        aborted_per_s=rate("aborted"),
        prefix_hit=_of_one(now.gauges.get("prefix_hit"))
        if hit is None and queries is None
        else hit,
        ttft_p50_s=share("ttft", 0.5),
        ttft_p95_s=share("ttft", 0.95),
        tpot_p50_s=share("tpot", 0.5),
        tpot_p95_s=share("tpot", 0.95),
        itl_p50_s=share("itl", 0.5),
        itl_p95_s=share("itl", 0.95),
        e2e_p50_s=share("e2e", 0.5),
        e2e_p95_s=share("e2e", 0.95),
        queue_p50_s=share("queue", 0.5),
        queue_p95_s=share("queue", 0.95),
        finished_total=counters.get("finished"),
        tokens_total=sum(moved) if moved else None,
        restarted=restarted,
        deferred=_whole(now.gauges.get("deferred")),
        names=tuple(sorted(now.names.items())),
    )


def percentile(before: Buckets, now: Buckets, share: float) -> float | None:
    """Of what came between two looks at a histogram; linear within a bucket, the last bound beyond all of them."""
    known = dict(before)
    counts = [(bound, max(0.0, count - known.get(bound, 0.0))) for bound, count in now]
    total = counts[-1][1] if counts else 0.0
    if total <= 0:
        return None
    wanted = share * total
    if counts[0][1] >= wanted:
        return counts[0][0] * wanted / counts[0][1] if counts[0][0] != inf else None
    for (low, below), (high, upto) in pairwise(counts):
        if upto >= wanted:
            if high == inf:
                return low
            return low + (high - low) * (wanted - below) / (upto - below) if upto > below else high
    return None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _of_one(value: float | None) -> float | None:
    """Despite its name `…_perc` is a share; an exporter that makes it percent is seen by its size."""
    if value is None:
        return None
    return min(1.0, value / 100.0 if value > 1.5 else value)
