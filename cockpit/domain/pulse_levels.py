"""Every number of the watch over a run's progress, in one table with where it comes from.

[pub]: public guides on slow training (input wait above a quarter of a step, utilisation below half,
MFU and all-reduce dips; Greyhound, ATC '25, on fail-slow jobs). [ours]: chosen on the traces of
`benchmarks/pulse`, so that each look-alike there stays silent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

STALL_S: Final = 900.0
IDLE_S: Final = 1200.0
"""What `[watch]` of a profile says when it says nothing."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Seconds, percent, shares; of cards, cores, steps."""

    stall_s: float | None = STALL_S
    """Silence, or a step that stands, for so long is a stall; None: nobody wants to know. `[watch] stall`."""
    idle_s: float | None = IDLE_S
    """`[watch] idle`."""
    window_s: float = 60.0
    """Readings become one median a minute."""
    hold_s: float = 180.0
    """[pub] What is slow or starved is so for three windows before it is told."""
    again_s: float = 100.0
    """A hang that is open is told anew so often: what ends it is joined with it within two minutes."""
    lasting_again_s: float = 300.0
    """And so often all else, with the numbers of now."""
    gap_s: float = 15.0
    """Without a sample for longer, what was in between was not seen and counts for nothing."""

    spin_util_pct: float = 95.0
    """[pub] A collective that spins counts as full use, and so does work: power tells them apart."""
    spin_power_share: float = 0.5
    """[ours] Of the power that its own steps took; a spinning NCCL kernel takes a third."""
    spin_power_of_limit: float = 0.35
    """[ours] Where no step of it was seen."""
    quiet_util_pct: float = 5.0
    quiet_cpu_pct: float = 10.0
    """[ours] Of a core for each of its processes: watchdog and pin-memory threads of a dead job take 1 to 3."""
    quiet_host_pct: float = 5.0
    """[ours] Of the whole host, for a run without a card."""
    frozen_steps: float = 5.0
    frozen_least_s: float = 120.0
    """[pub] A step that stands for five times its median, and at least two minutes."""
    frozen_gaps: float = 3.0
    """[ours] Where the log speaks seldom: so many of its usual pauses."""
    traffic_mib_s: float = 2.0
    patience: float = 3.0
    """[ours] A save, an evaluation, a compilation or traffic buy a quiet run so many times as long."""
    server_reports: int = 3
    """Lines of a server in a row with requests in work and no token made."""
    bad_losses: int = 3
    """[pub] One may be a bad batch; three in a row are a run that diverged."""

    starved_util_pct: float = 50.0
    starved_power_share: float = 0.6
    """[pub/ours] Of the limit, both for `hold_s`, while steps move."""
    fed_util_pct: float = 60.0
    """Where a starved run counts as fed again."""
    data_share: float = 0.25
    """[pub] Of a step spent on waiting for data, by the log itself."""
    busy_share: float = 0.5
    """[ours] Of the workers that do anything, those at a full core or in state D."""
    worker_awake_pct: float = 5.0
    main_cpu_pct: float = 85.0
    """[pub] The main process at about one core: Python is what it waits for."""
    main_cpu_most_pct: float = 140.0
    iowait_pct: float = 10.0
    io_full_pct: float = 10.0
    cpu_wait_pct: float = 20.0
    """[pub] PSI: the share of time in which somebody waited."""
    mem_full_pct: float = 10.0
    throttled_pct: float = 10.0
    """[ours] Of a CPU quota's periods, those that were cut short."""
    net_flat_ratio: float = 1.5
    net_least_mib_s: float = 5.0
    """[ours] A network at its ceiling: p90 over p10 of what it receives."""

    slow_notice: float = 1.2
    slow_warning: float = 1.5
    slow_over: float = 1.1
    """[ours] The median of 20 steps against the baseline."""
    baseline_skip: int = 20
    baseline_least: int = 50
    baseline_most: int = 200
    """[pub] The job's own first healthy steps; the very first compile and warm up."""
    outlier: float = 5.0
    """A step of more than so many medians is an evaluation or a save, unless three come in a row."""
    same_work: float = 0.97
    """[ours] Power and clock at so much of the baseline's while steps take longer: the steps became larger."""
    same_tokens: float = 0.9

    swing_points: float = 40.0
    swing_correlation: float = 0.4
    swing_least_step_s: float = 4.0
    """[pub/ours] Use that swings with the step's own period; shorter steps are faster than the samples."""

    def for_run(self, stall_s: float | None, idle_s: float | None) -> Levels:
        """As a profile's `[watch]` wants it: who is told of a stall sooner is told of the rest as soon."""
        hold_s = self.hold_s if stall_s is None else min(self.hold_s, max(3.0, stall_s))
        return replace(
            self,
            stall_s=stall_s,
            idle_s=idle_s,
            hold_s=hold_s,
            window_s=min(self.window_s, hold_s / 3, (idle_s or self.idle_s or IDLE_S) / 3),
            frozen_least_s=min(self.frozen_least_s, hold_s),
        )


LEVELS: Final = Levels()
