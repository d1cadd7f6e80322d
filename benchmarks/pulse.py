"""Which troubles of a run are named, which look-alikes are flagged, and how soon, on simulated runs.

Seeds of this bench are not those of the tests; the thresholds were chosen on seed 0 alone.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.pulse_traces import LOOK_ALIKES, SICK, Trace, beats, play
from cockpit.domain.pulse import RunPulse

SEEDS = range(100, 104)
RULES = (
    "hang-silence",
    "server-stuck",
    "starved-input",
    "slow-steps",
    "util-swings",
    "idle-cards",
    "nan-reported",
)


def begins_s(trace: Trace) -> float:
    """When the trouble of a sick trace begins: with its last act but the one that mends it."""
    acts = trace.acts[:-1] if trace.closes else trace.acts
    return sum(act.seconds for act in acts[:-1])


def row(rule: str) -> tuple[str, int, int, int, float]:
    """(rule, found, of, with another cause or finding beside it, median delay)."""
    traces = [trace for trace in SICK if trace.wanted == rule]
    found = beside = 0
    delays = []
    for trace in traces:
        for seed in SEEDS:
            opened = play(trace, seed).opened
            ours = [one for one in opened if one[1] == rule]
            found += bool(ours)
            beside += len({one[1] for one in opened}) > 1 or (
                bool(trace.cause and ours) and ours[0][2] != trace.cause
            )
            delays += [one[0] - 1000.0 - begins_s(trace) for one in ours[:1]]
    return rule, found, len(traces) * len(SEEDS), beside, statistics.median(delays or [0.0])


def cost_us() -> float:
    """Of one look at a run with two cards."""
    looks = list(beats(SICK[0]))
    pulse = RunPulse()
    begun_s = time.perf_counter()
    for look in looks:
        pulse.feed(look)
    return (time.perf_counter() - begun_s) / len(looks) * 1e6


def main() -> None:
    print(
        f"{len(SICK)} kinds of trouble, {len(LOOK_ALIKES)} look-alikes, {len(SEEDS)} seeds each\n"
    )
    print(f"{'finding':16} {'found':>9} {'wrong cause':>12} {'median delay':>13}")
    for rule in RULES:
        name, found, of, beside, delay_s = row(rule)
        print(f"{name:16} {found:4}/{of:<4} {beside:12} {delay_s:11.0f} s")
    false = [
        (trace.name, seed, play(trace, seed).opened)
        for trace in LOOK_ALIKES
        for seed in SEEDS
        if play(trace, seed).opened
    ]
    print(f"\nlook-alikes flagged: {len(false)} of {len(LOOK_ALIKES) * len(SEEDS)}")
    for name, seed, opened in false[:20]:
        print(f"  {name} (seed {seed}): {opened}")
    print(f"one look at a run: {cost_us():.0f} us")


if __name__ == "__main__":
    main()
