"""Labelled memory traces for the trend detector: what leaks, what only looks like it, and harder kinds of both.

A trace is 3 to 9 hours of readings in steps of 2 MiB, with a load phase, noise and gaps. `curve` functions give
the growth in MiB at a time after the load; every kind draws its numbers from the trace's own seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

GRANULE_MIB = 2.0
CARDS_MIB = (24564.0, 40960.0, 81920.0)

Curve = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Growth:
    """What a kind adds to the load. `rate` is its true MiB/h where it has one; `onset_s` when it begins."""

    curve: Curve
    rate: float | None = None
    onset_s: float = 0.0


Kind = Callable[[random.Random, float], Growth]


@dataclass(frozen=True, slots=True)
class Trace:
    kind: str
    leaks: bool
    capacity_mib: float
    samples: list[tuple[float, float]] = field(repr=False)
    rate: float | None
    onset_s: float
    full_at_s: float | None
    """When it ran out of memory; None when it did not."""


def _between(dice: random.Random, low: float, high: float) -> float:
    """Evenly on a logarithmic scale: rates differ by orders of magnitude."""
    return math.exp(dice.uniform(math.log(low), math.log(high)))


class _Steps:
    """The sum of what came at given moments; asked in order of time."""

    def __init__(self, times: Sequence[float], sizes: Sequence[float]) -> None:
        self._left = list(zip(times, sizes, strict=True))[::-1]
        self._sum = 0.0

    def __call__(self, t: float) -> float:
        while self._left and self._left[-1][0] <= t:
            self._sum += self._left.pop()[1]
        return self._sum


class _Sum:
    """The integral of a rate, asked in order of time."""

    def __init__(self, rate: Curve) -> None:
        self._rate, self._last_s, self._sum = rate, 0.0, 0.0

    def __call__(self, t: float) -> float:
        self._sum += self._rate(t) * (t - self._last_s)
        self._last_s = t
        return self._sum


def _every(dice: random.Random, span_s: float, mean_s: float, spread: float) -> list[float]:
    times, t = [], 0.0
    while t < span_s:
        t += mean_s * (dice.uniform(1 - spread, 1 + spread) if spread < 1 else dice.expovariate(1))
        times.append(t)
    return times


# -- leaks ----------------------------------------------------------------------------------------


def linear(dice: random.Random, span_s: float) -> Growth:
    rate = _between(dice, 60, 6000)
    return Growth(lambda t: rate * t / 3600, rate)


def late_onset(dice: random.Random, span_s: float) -> Growth:
    rate, onset = _between(dice, 100, 3000), dice.uniform(0.15, 0.45) * span_s
    return Growth(lambda t: rate * max(0.0, t - onset) / 3600, rate, onset)


def host_process(dice: random.Random, span_s: float) -> Growth:
    rate, wobble, period = _between(dice, 50, 4000), dice.uniform(0, 10), dice.uniform(20, 200)
    return Growth(lambda t: rate * t / 3600 + wobble * math.sin(t / period), rate)


def fragmentation(dice: random.Random, span_s: float) -> Growth:
    period, size = dice.uniform(40, 300), dice.uniform(20, 140)
    times = _every(dice, span_s, period, 0.3)
    steps = _Steps(times, [size * dice.uniform(0.2, 1.8) for _ in times])
    back = dice.uniform(0, 0.3) * size
    return Growth(
        lambda t: steps(t) + (back if int(2 * t / period) % 2 else 0.0), size / period * 3600
    )


def sawtooth_on_a_rising_floor(dice: random.Random, span_s: float) -> Growth:
    period, height, rate = dice.uniform(60, 400), dice.uniform(200, 3000), _between(dice, 150, 2500)
    return Growth(lambda t: height * (t % period) / period + rate * t / 3600, rate)


def per_request(dice: random.Random, span_s: float) -> Growth:
    rate, day_s = _between(dice, 100, 2500), dice.uniform(2, 12) * 3600
    phase, depth = dice.uniform(0, math.tau), dice.uniform(0.1, 0.5)
    traffic = _Sum(lambda t: rate / 3600 * (1 + depth * math.sin(math.tau * t / day_s + phase)))
    return Growth(traffic, rate)


def residue_of_evaluations(dice: random.Random, span_s: float) -> Growth:
    period, left = dice.uniform(240, 900), dice.uniform(15, 120)
    height, length = dice.uniform(500, 4000), dice.uniform(15, 60)
    return Growth(
        lambda t: left * int(t / period) + (height if period < t and t % period < length else 0.0),
        left / period * 3600,
    )


def unbounded_shapes(dice: random.Random, span_s: float) -> Growth:
    mean_s = dice.uniform(60, 300)
    times = _every(dice, span_s, mean_s, 1.0)
    return Growth(_Steps(times, [dice.uniform(4, 80) for _ in times]), 42 / mean_s * 3600)


def stairs_of_epochs(dice: random.Random, span_s: float) -> Growth:
    period, size = dice.uniform(360, 1200), dice.uniform(30, 400)
    return Growth(lambda t: size * int(t / period), size / period * 3600)


def model_reloads(dice: random.Random, span_s: float) -> Growth:
    period, model = dice.uniform(600, 1500), dice.uniform(2000, 8000)
    left, pause = dice.uniform(50, 400), dice.uniform(10, 40)
    return Growth(
        lambda t: left * int(t / period) - (model if period < t and t % period < pause else 0.0),
        left / period * 3600,
    )


# -- what is none ---------------------------------------------------------------------------------


def flat(dice: random.Random, span_s: float) -> Growth:
    return Growth(lambda t: 0.0)


def warm_up(dice: random.Random, span_s: float) -> Growth:
    size, tau = dice.uniform(200, 6000), dice.uniform(120, 1800)
    return Growth(lambda t: size * (1 - math.exp(-t / tau)))


def record_batches(dice: random.Random, span_s: float) -> Growth:
    """Memory follows the largest batch so far."""
    size, spread = dice.uniform(60, 900), dice.uniform(0.3, 0.8)
    times = _every(dice, span_s, dice.uniform(2, 20), 0.0)
    sizes, best = [], 0.0
    for _ in times:
        batch = math.exp(dice.gauss(0, spread))
        sizes.append(size * max(0.0, batch - best))
        best = max(best, batch)
    return Growth(_Steps(times, sizes))


def evaluation_spikes(dice: random.Random, span_s: float) -> Growth:
    period, height, length = dice.uniform(300, 1800), dice.uniform(500, 6000), dice.uniform(20, 120)
    return Growth(lambda t: height if period < t and t % period < length else 0.0)


def checkpoint_spikes(dice: random.Random, span_s: float) -> Growth:
    period, height, length = dice.uniform(600, 3000), dice.uniform(300, 8000), dice.uniform(10, 90)
    return Growth(lambda t: height * dice.uniform(0.8, 1) if t % period > period - length else 0.0)


def sawtooth(dice: random.Random, span_s: float) -> Growth:
    period, height = dice.uniform(30, 420), dice.uniform(200, 4000)
    return Growth(lambda t: height * (t % period) / period)


def load_following(dice: random.Random, span_s: float) -> Growth:
    period, size, phase = (
        dice.uniform(600, 5400),
        dice.uniform(200, 3000),
        dice.uniform(0, math.tau),
    )
    level = size / 2

    def curve(t: float) -> float:
        nonlocal level
        wanted = size * (0.5 + 0.5 * math.sin(math.tau * t / period + phase))
        level = max(0.0, level + (wanted - level) * 0.02 + dice.gauss(0, size * 0.004))
        return level

    return Growth(curve)


def preallocated_pool(dice: random.Random, span_s: float) -> Growth:
    return Growth(lambda t: GRANULE_MIB * (dice.random() < 0.05))


def first_evaluation(dice: random.Random, span_s: float) -> Growth:
    first, size = dice.uniform(0.1, 0.6) * span_s, dice.uniform(100, 6000)
    second, more = first + dice.uniform(600, 3000), dice.choice([0.0, dice.uniform(50, 1000)])
    return Growth(lambda t: (size if t > first else 0.0) + (more if t > second else 0.0))


def workers_copying_on_write(dice: random.Random, span_s: float) -> Growth:
    size, length = dice.uniform(1000, 20000), dice.uniform(300, 2400)
    return Growth(lambda t: size * (1 - math.exp(-2.5 * min(t, 3 * length) / length)))


def finite_shapes(dice: random.Random, span_s: float) -> Growth:
    """Each shape costs once, and rare ones come late."""
    count = dice.randrange(20, 120)
    sizes = [dice.uniform(10, 80) for _ in range(count)]
    weights = [1 / (rank + 1) ** dice.uniform(0.6, 1.1) for rank in range(count)]
    times = _every(dice, span_s, dice.uniform(3, 30), 0.0)
    seen: set[int] = set()
    costs = []
    for shape in dice.choices(range(count), weights, k=len(times)):
        costs.append(0.0 if shape in seen else sizes[shape])
        seen.add(shape)
    return Growth(_Steps(times, costs))


def filling_cache(dice: random.Random, span_s: float) -> Growth:
    size, tau = dice.uniform(100, 1200), dice.uniform(30, 300)
    most = size * dice.uniform(2, 5)
    return Growth(lambda t: min(most, size * math.log1p(t / tau)))


# -- harder: kinds that no threshold was chosen for ---------------------------------------------------


def accelerating(dice: random.Random, span_s: float) -> Growth:
    rate = _between(dice, 60, 800)
    return Growth(lambda t: rate * t / 3600 * (1 + 1.5 * t / span_s))


def on_and_off(dice: random.Random, span_s: float) -> Growth:
    rate, period = _between(dice, 300, 3000) / 3600, dice.uniform(600, 3600)
    return Growth(_Sum(lambda t: rate if int(t / period) % 2 == 0 else 0.0))


def warm_up_then_leak(dice: random.Random, span_s: float) -> Growth:
    size, tau = dice.uniform(500, 4000), dice.uniform(300, 1800)
    rate = _between(dice, 150, 2000)
    return Growth(lambda t: size * (1 - math.exp(-t / tau)) + rate * t / 3600)


def leak_in_noise(dice: random.Random, span_s: float) -> Growth:
    rate = _between(dice, 150, 1500)
    return Growth(lambda t: rate * t / 3600 + dice.gauss(0, 60), rate)


def slightly_bent(dice: random.Random, span_s: float) -> Growth:
    rate, power = _between(dice, 200, 2000), dice.uniform(0.9, 1.0)
    return Growth(lambda t: rate * span_s / 3600 * (t / span_s) ** power)


def traffic_ramp(dice: random.Random, span_s: float) -> Growth:
    size, length = dice.uniform(300, 4000), dice.uniform(1800, 5400)
    start = dice.uniform(0.05, 0.25) * span_s
    return Growth(lambda t: size * min(1.0, max(0.0, (t - start) / length)))


def long_swings(dice: random.Random, span_s: float) -> Growth:
    period, size = dice.uniform(3, 8) * 3600, dice.uniform(300, 4000)
    phase = dice.uniform(0, math.tau)
    return Growth(lambda t: size * (0.5 + 0.5 * math.sin(math.tau * t / period + phase)))


def long_collections(dice: random.Random, span_s: float) -> Growth:
    period, height = dice.uniform(900, 2700), dice.uniform(200, 3000)
    return Growth(lambda t: height * (t % period) / period)


def slow_warm_up(dice: random.Random, span_s: float) -> Growth:
    size, tau = dice.uniform(500, 6000), dice.uniform(2400, 7200)
    return Growth(lambda t: size * (1 - math.exp(-t / tau)))


def logarithmic(dice: random.Random, span_s: float) -> Growth:
    size, tau = dice.uniform(100, 1500), dice.uniform(60, 900)
    return Growth(lambda t: size * math.log1p(t / tau))


LEAKS: tuple[Kind, ...] = (
    linear, late_onset, host_process, fragmentation, sawtooth_on_a_rising_floor, per_request,
    residue_of_evaluations, unbounded_shapes, stairs_of_epochs, model_reloads,
)  # fmt: skip
OTHERS: tuple[Kind, ...] = (
    flat, warm_up, record_batches, evaluation_spikes, checkpoint_spikes, sawtooth, load_following,
    preallocated_pool, first_evaluation, workers_copying_on_write, finite_shapes, filling_cache,
)  # fmt: skip
HARD_LEAKS: tuple[Kind, ...] = (
    accelerating, on_and_off, warm_up_then_leak, leak_in_noise, slightly_bent,
)  # fmt: skip
HARD_OTHERS: tuple[Kind, ...] = (
    traffic_ramp, long_swings, long_collections, slow_warm_up, logarithmic,
)  # fmt: skip
_FROM_THE_START = (warm_up, slow_warm_up, warm_up_then_leak, logarithmic, filling_cache)
_BY_THE_EVENT = (stairs_of_epochs, model_reloads, residue_of_evaluations)


def kinds(*, hard: bool) -> list[tuple[Kind, bool]]:
    """Every kind with whether it leaks."""
    leaks, others = (HARD_LEAKS, HARD_OTHERS) if hard else (LEAKS, OTHERS)
    return [(kind, True) for kind in leaks] + [(kind, False) for kind in others]


def trace(kind: Kind, leaks: bool, seed: int, step_s: float = 1.0) -> Trace:
    """The trace of that kind and seed, with a reading every `step_s`."""
    dice = random.Random(f"{kind.__name__}/{seed}")
    hours = dice.uniform(5 if kind in _BY_THE_EVENT else 3, 9)
    growth = kind(dice, hours * 3600)
    capacity = dice.choice(CARDS_MIB)
    start_s = 60.0 if kind in _FROM_THE_START else dice.uniform(60, 400)
    samples: list[tuple[float, float]] = []
    full_at_s = None
    for at_s, used_mib in _readings(dice, growth.curve, capacity, start_s, hours * 3600, step_s):
        if used_mib >= capacity:
            full_at_s = at_s
            break
        samples.append((at_s, used_mib))
    onset_s = start_s + growth.onset_s
    return Trace(kind.__name__, leaks, capacity, samples, growth.rate, onset_s, full_at_s)


def _readings(
    dice: random.Random, curve: Curve, capacity: float, start_s: float, span_s: float, step_s: float
) -> Iterator[tuple[float, float]]:
    base, load_s = capacity * dice.uniform(0.25, 0.6), dice.uniform(15, 240)
    noise = dice.choice([0.0, 0.0, 1.0, 4.0, 12.0])
    gaps = [
        (begin, begin + dice.uniform(20, 300))
        for begin in (dice.uniform(0, span_s) for _ in range(dice.randrange(0, 3)))
    ]
    t = 0.0
    while t < span_s:
        grown = curve(t - start_s) if t > start_s else 0.0
        used = base * min(1.0, t / load_s) + grown + abs(dice.gauss(0, noise) if noise else 0.0)
        if not any(begin <= t < end for begin, end in gaps):
            yield t, max(0.0, math.floor(used / GRANULE_MIB) * GRANULE_MIB)
        t += step_s
