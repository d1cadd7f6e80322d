"""A server's metrics page as numbers. The page is a host's: bounded, and what is no number of ours is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias

from cockpit.domain.server_names import (
    COUNTERS,
    FINISHED_ABORT,
    GAUGES,
    HISTOGRAMS,
    WHERE,
)

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

MOST_BYTES: Final = 4 * 1024 * 1024
MOST_SAMPLES: Final = 6_000
MOST_PARSED_BYTES: Final = 512 * 1024
_ROW_BYTES: Final = 1024
_ESCAPES: Final = 16
"""The parser takes a time that grows with the square of them."""
MOST_BUCKETS: Final = 128
_LARGEST: Final = 1e18
_NAME_BYTES: Final = 128

Buckets: TypeAlias = tuple[tuple[float, float], ...]
"""(upper bound, cumulative count) by rising bound."""
_Named: TypeAlias = "dict[str, list[Sample]]"


@dataclass(frozen=True, slots=True)
class ServerReading:
    """One look at a server's metrics. A concept that it does not tell is not there."""

    at_s: float
    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, Buckets] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """By concept, what this server calls it."""

    @property
    def is_empty(self) -> bool:
        return not (self.gauges or self.counters or self.histograms)


def read_metrics(page: bytes, at_s: float) -> ServerReading:
    """What a page says, by concept. What cannot be read is as if it were not there."""
    by_name: _Named = {}
    for sample in _samples(page):
        name = sample.name.replace(":", "_")
        if _counts(name, sample):
            by_name.setdefault(name, []).append(sample)
    names: dict[str, str] = {}
    gauges, counters = _gauges(by_name, names), _counters(by_name, names)
    return ServerReading(at_s, gauges, counters, _histograms(by_name, names), names)


def _counts(name: str, sample: Sample) -> bool:
    label, values = WHERE.get(name, ("", frozenset()))
    return not label or sample.labels.get(label) in values


def _samples(page: bytes) -> Iterator[Sample]:
    """Line by line, so that one bad line costs itself alone; lines of no use are not parsed at all."""
    from prometheus_client.parser import text_string_to_metric_families

    left, left_bytes = MOST_SAMPLES, MOST_PARSED_BYTES
    for row in page[:MOST_BYTES].split(b"\n"):
        name = row[:_NAME_BYTES].partition(b"{")[0].partition(b" ")[0].replace(b":", b"_")
        if name not in _WANTED or len(row) > _ROW_BYTES or row.count(b"\\") > _ESCAPES:
            continue
        if left <= 0 or left_bytes <= 0:
            break
        left -= 1
        left_bytes -= len(row)
        try:
            text = row.decode("utf-8")
            families = list(text_string_to_metric_families(text + "\n"))
        except (ValueError, IndexError, KeyError, OverflowError):
            continue
        for family in families:
            yield from family.samples


def _wanted() -> Iterator[str]:
    for _, names in GAUGES.values():
        yield from names
    for names in COUNTERS.values():
        for name in names:
            yield from (name, f"{name}_total")
    for names in HISTOGRAMS.values():
        yield from (f"{name}_bucket" for name in names)


_WANTED: Final = frozenset(name.encode() for name in _wanted())


def _gauges(by_name: _Named, names: dict[str, str]) -> dict[str, float]:
    found = {}
    for concept, (how, candidates) in GAUGES.items():
        name, values = _first(by_name, candidates)
        if values:
            found[concept] = sum(values) if how == "sum" else max(values)
            names[concept] = name
    return found


def _counters(by_name: _Named, names: dict[str, str]) -> dict[str, float]:
    found = {}
    for concept, bare in COUNTERS.items():
        name, values = _first(by_name, [name for one in bare for name in (f"{one}_total", one)])
        if values:
            found[concept] = sum(values)
            names[concept] = name
    ended = by_name.get(f"{FINISHED_ABORT}_total") or by_name.get(FINISHED_ABORT) or ()
    aborts = [one.value for one in ended if one.labels.get("finished_reason") == "abort"]
    if "aborted" not in found and ended:
        found["aborted"] = sum(_sound(aborts))
    return found


def _histograms(by_name: _Named, names: dict[str, str]) -> dict[str, Buckets]:
    found = {}
    for concept, candidates in HISTOGRAMS.items():
        for name in candidates:
            samples = by_name.get(f"{name}_bucket", [])
            buckets = _buckets(samples)
            if buckets:
                found[concept] = buckets
                names[concept] = samples[0].name.removesuffix("_bucket")
                break
    return found


def _buckets(samples: Iterable[Sample]) -> Buckets:
    """Of several engines, ranks or models the sum of their counts."""
    counts: dict[float, float] = {}
    for sample in samples:
        try:
            bound = float(sample.labels.get("le", ""))
        except ValueError:
            continue
        known = bound in counts or len(counts) < MOST_BUCKETS
        if bound == bound and known and 0 <= sample.value <= _LARGEST:
            counts[bound] = counts.get(bound, 0.0) + sample.value
    rising = tuple(sorted(counts.items()))
    return rising if rising and rising[-1][0] == inf else ()


def _first(by_name: _Named, candidates: Iterable[str]) -> tuple[str, list[float]]:
    """The first name that has values, as its server writes it, and they."""
    for name in candidates:
        samples = by_name.get(name, [])
        values = _sound(sample.value for sample in samples)
        if values:
            return samples[0].name, values
    return "", []


def _sound(values: Iterable[float]) -> list[float]:
    return [value for value in values if 0 <= value <= _LARGEST]  # a NaN is neither
