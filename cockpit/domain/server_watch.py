"""What a server's numbers say is wrong: a full KV cache, a queue, a stall, an engine that is dead behind its port."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import log
from typing import Final, Literal

from cockpit.domain.detectors import Signal, finding_with
from cockpit.domain.incidents import Evidence, FactValue, Family, Finding, Severity
from cockpit.domain.lasting import Lasting
from cockpit.domain.server_levels import (
    DEAD_S,
    EARLY_S,
    HOLD_S,
    KV_FULL,
    KV_ROOMY,
    PREFIX_BEFORE,
    PREFIX_FALL,
    PREFIX_HOLD_S,
    QUEUE_HOLD_S,
    QUEUE_SHARE,
    QUEUE_SLOW_S,
    RELOADS,
    RELOADS_S,
    STALL_EARLY_S,
    STALL_S,
    THRASH_PER_S,
)
from cockpit.domain.server_sample import ServerSample

LARGEST_STEP_S: Final = 15.0
"""A gap between two looks that is longer counts as this much."""
TO_OPEN: Final = -log(1.0 - 0.6)
"""What lasts without a break opens after so many time constants."""
HOLD_TAU_S: Final = HOLD_S / TO_OPEN
RESTART_TOLD_S: Final = 600.0
MOST_NAMES: Final = 64

_Kind = tuple[Family, Severity, str, tuple[str, ...]]
_KINDS: Final[Mapping[str, _Kind]] = {
    "kv-bound": (
        "kv_cache",
        "warning",
        "kv_bound",
        (
            "raise_utilisation",
            "kv_fp8",
            "max_num_seqs_down",
            "shorter_model_len",
            "tensor_parallel",
        ),
    ),
    "kv-thrash": (
        "kv_cache",
        "warning",
        "kv_thrash",
        (
            "max_num_seqs_down",
            "raise_utilisation",
            "kv_fp8",
            "shorter_model_len",
            "tensor_parallel",
        ),
    ),
    "queue-timeouts": (
        "starved",
        "warning",
        "queue_timeouts",
        ("max_num_seqs_up", "more_replicas", "limit_clients", "tensor_parallel"),
    ),
    "queue-bound": (
        "starved",
        "notice",
        "queue_bound",
        ("max_num_seqs_up", "more_batched_tokens", "more_replicas"),
    ),
    "server-stalled": ("hang", "fatal", "server_stuck", ("py_spy", "check_xid", "restart_run")),
    "engine-dead": ("crash", "fatal", "engine_dead", ("read_first_error", "restart_run")),
    "server-restarted": ("crash", "notice", "server_restarted", ("read_first_error",)),
    "prefix-cold": ("kv_cache", "notice", "prefix_cold", ("look_at_prompts", "kv_fp8")),
    "model-reloads": ("starved", "warning", "model_reloads", ("keep_model", "more_loaded_models")),
}


@dataclass(slots=True)
class ServerWatch:
    """The rules over one server; they remember only what they need."""

    settings: Mapping[str, FactValue] = field(default_factory=dict)
    """What its profile says, by the names of facts: max_num_seqs, gpu_memory_utilization, …"""
    _begun_s: float | None = None
    _last: ServerSample | None = None
    _kv: Lasting = field(default_factory=lambda: Lasting(HOLD_TAU_S))
    _thrash: Lasting = field(default_factory=lambda: Lasting(HOLD_TAU_S))
    _late: Lasting = field(default_factory=lambda: Lasting(HOLD_TAU_S))
    _queue: Lasting = field(default_factory=lambda: Lasting(QUEUE_HOLD_S / TO_OPEN))
    _cold: Lasting = field(default_factory=lambda: Lasting(PREFIX_HOLD_S / TO_OPEN))
    _moved_s: float = 0.0
    _failing_s: float | None = None
    _restarted_s: float | None = None
    _usual_hit: float | None = None
    _loaded: frozenset[str] | None = None
    _loads: dict[str, deque[float]] = field(default_factory=dict)
    _opened: dict[str, Finding] = field(default_factory=dict)

    def feed(self, sample: ServerSample) -> list[Signal]:
        """What changed with this look at its metrics."""
        last, self._last = self._last, sample
        if self._begun_s is None or sample.restarted:
            self._begun_s = self._moved_s = sample.at_s
        if last is not None and sample.at_s - last.at_s > LARGEST_STEP_S:
            self._moved_s = sample.at_s  # nobody looked: what happened meanwhile is not known
        step_s = 0.0 if last is None else min(max(0.0, sample.at_s - last.at_s), LARGEST_STEP_S)
        self._failing_s = None
        signals = list(self._stands("engine-dead", False, {}))
        signals += self._again(sample)
        signals += self._pressure(sample, step_s)
        signals += self._stalled(sample, last)
        return signals + list(self._prefix(sample, step_s))

    def _again(self, sample: ServerSample) -> Iterator[Signal]:
        """A counter fell: the server began anew inside its run. Told for a while."""
        if sample.restarted:
            self._restarted_s = sample.at_s
            yield from self._stands("server-restarted", True, _facts(sample))
        elif self._restarted_s is not None and sample.at_s - self._restarted_s > RESTART_TOLD_S:
            self._restarted_s = None
            yield from self._stands("server-restarted", False, {})

    def failed(self, at_s: float, why: Literal["errors", "silent"]) -> list[Signal]:
        """A server that was ready answers with errors, or takes the connection and says nothing."""
        if self._failing_s is None:
            self._failing_s = at_s
        is_dead = at_s - self._failing_s >= DEAD_S
        facts: dict[str, FactValue] = {"for_s": round(at_s - self._failing_s), "answers": why}
        return list(self._stands("engine-dead", True, facts)) if is_dead else []

    def lives(self) -> list[Signal]:
        """It answers, and has no numbers for us."""
        self._failing_s = None
        return list(self._stands("engine-dead", False, {}))

    def models(self, at_s: float, loaded: frozenset[str]) -> list[Signal]:
        """The models that are in memory now, where the server loads them by itself."""
        known, self._loaded = self._loaded, loaded
        for name in loaded - known if known is not None else ():
            if name not in self._loads and len(self._loads) >= MOST_NAMES:
                continue
            times = self._loads.setdefault(name, deque(maxlen=RELOADS))
            times.append(at_s)
            if len(times) == RELOADS and at_s - times[0] <= RELOADS_S:
                facts: dict[str, FactValue] = {
                    "times": RELOADS,
                    "for_s": round(at_s - times[0]),
                    "models": len(self._loads),
                }
                return list(self._stands("model-reloads", True, facts))
        last_s = max((times[-1] for times in self._loads.values()), default=at_s)
        if at_s - last_s > RELOADS_S:
            return list(self._stands("model-reloads", False, {}))
        return []

    def end(self) -> list[Signal]:
        """The server is over, and with it whatever was wrong with how it served."""
        return [signal for name in tuple(self._opened) for signal in self._stands(name, False, {})]

    # -- rules ------------------------------------------------------------------------------

    def _pressure(self, now: ServerSample, step_s: float) -> Iterator[Signal]:
        """A full cache explains a queue: of the two, the cache is told."""
        waiting, usage = now.waiting or 0, now.kv_usage
        put_back = now.preemptions_per_s or 0.0
        is_full = usage is not None and usage > KV_FULL and (waiting > 0 or put_back > 0)
        facts = _facts(now)
        thrash = self._thrash.feed(put_back > THRASH_PER_S, step_s)
        bound = self._kv.feed(is_full, step_s)
        if thrash == "open":
            yield from self._stands("kv-bound", False, {})
        yield from self._changed("kv-thrash", thrash, facts)
        if bound == "close" or (self._kv.is_open and not self._thrash.is_open):
            yield from self._stands("kv-bound", self._kv.is_open, facts)
        is_cache = is_full or self._kv.is_open or self._thrash.is_open
        self._late.feed(_is_late(now) and not is_cache, step_s)
        waits = waiting > 0 and (now.running or 0) > 0
        is_roomy = waits and usage is not None and usage < KV_ROOMY
        self._queue.feed(is_roomy, step_s)
        is_late = self._late.is_open and not is_cache
        yield from self._stands("queue-timeouts", is_late, facts)
        yield from self._stands("queue-bound", self._queue.is_open and not is_late, facts)

    def _stalled(self, now: ServerSample, last: ServerSample | None) -> Iterator[Signal]:
        """Requests are in work and no token comes out, or goes in."""
        if now.tokens_total is None or now.running is None:
            return
        still = last is not None and now.tokens_total == last.tokens_total and now.running > 0
        if not still:
            self._moved_s = now.at_s
        is_early = self._begun_s is None or now.at_s - self._begun_s < EARLY_S
        for_s = now.at_s - self._moved_s
        facts: dict[str, FactValue] = {"for_s": round(for_s), "running": now.running}
        is_stalled = for_s >= (STALL_EARLY_S if is_early else STALL_S)
        yield from self._stands("server-stalled", is_stalled, facts)

    def _prefix(self, now: ServerSample, step_s: float) -> Iterator[Signal]:
        hit = now.prefix_hit
        if hit is None:
            return
        usual = self._usual_hit
        is_cold = usual is not None and usual >= PREFIX_BEFORE and hit < PREFIX_FALL * usual
        if not is_cold:
            kept = 0.0 if usual is None else max(0.0, 1.0 - step_s / 3600.0)
            self._usual_hit = hit if usual is None else kept * usual + (1.0 - kept) * hit
        facts: dict[str, FactValue] = {"hit_pct": round(100 * hit)}
        if usual is not None:
            facts["usual_pct"] = round(100 * usual)
        yield from self._changed("prefix-cold", self._cold.feed(is_cold, step_s), facts)

    # -- what is told -----------------------------------------------------------------------

    def _changed(
        self, name: str, change: Literal["open", "close"] | None, facts: Mapping[str, FactValue]
    ) -> Iterator[Signal]:
        if change is not None:
            yield from self._stands(name, change == "open", facts)

    def _stands(self, name: str, holds: bool, facts: Mapping[str, FactValue]) -> Iterator[Signal]:
        known = self._opened.get(name)
        if holds and known is None:
            self._opened[name] = finding = _finding(name, {**self.settings, **facts})
            yield Signal("open", finding, evidence=_evidence(self._last))
        elif not holds and known is not None:
            del self._opened[name]
            yield Signal("close", known)


def _is_late(now: ServerSample) -> bool:
    """Clients wait long or give up, and most of a request's time is the queue."""
    queue, whole = now.queue_p95_s, now.e2e_p95_s
    if queue is None or whole is None or queue < QUEUE_SHARE * whole:
        return False
    return queue >= QUEUE_SLOW_S or (now.aborted_per_s or 0.0) > 0 < queue


def _facts(now: ServerSample) -> dict[str, FactValue]:
    numbers: dict[str, FactValue | None] = {
        "running": now.running,
        "waiting": now.waiting,
        "kv_pct": None if now.kv_usage is None else round(100 * now.kv_usage),
        "preemptions_per_min": _per_min(now.preemptions_per_s),
        "aborted_per_min": _per_min(now.aborted_per_s),
        "queue_p95_s": None if now.queue_p95_s is None else round(now.queue_p95_s, 1),
        "e2e_p95_s": None if now.e2e_p95_s is None else round(now.e2e_p95_s, 1),
    }
    return {name: value for name, value in numbers.items() if value is not None}


def _evidence(now: ServerSample | None) -> tuple[Evidence, ...]:
    """The numbers in the server's own names."""
    if now is None:
        return ()
    told = dict(now.names)
    numbers = {"running": now.running, "waiting": now.waiting, "kv_usage": now.kv_usage}
    words = [
        f"{told.get(concept, concept)} {value:g}"
        for concept, value in numbers.items()
        if value is not None
    ]
    return (Evidence(None, "metrics", ", ".join(words)),) if words else ()


def _per_min(per_s: float | None) -> int | None:
    return None if per_s is None else round(60 * per_s)


def _finding(name: str, facts: Mapping[str, FactValue]) -> Finding:
    family, severity, cause, remedies = _KINDS[name]
    return finding_with(family, name, severity, cause, facts, remedies)
