"""Every number of the watch over servers, in one table with where it comes from.

[sem]: from what the metrics mean (a full batch with a full cache is the goal, so use alone is no trouble).
[pub]: public guides put the warning at 85 to 95 % of the KV cache with requests waiting. [ours]: chosen.
"""

from __future__ import annotations

from typing import Final

KV_FULL: Final = 0.95
"""[pub] Of the KV cache, and only together with requests that wait or are put back."""
KV_ROOMY: Final = 0.8
"""[sem] Below this, waiting requests do not wait for the cache."""
HOLD_S: Final = 60.0
THRASH_PER_S: Final = 1.0
"""[ours] Preemptions: each computes a whole prompt again."""
QUEUE_HOLD_S: Final = 120.0
QUEUE_SHARE: Final = 0.5
"""[ours] Of a request's whole time spent waiting, where its end comes too late for who asked."""
QUEUE_SLOW_S: Final = 5.0
STALL_S: Final = 30.0
STALL_EARLY_S: Final = 60.0
EARLY_S: Final = 600.0
"""[sem] Compilations and graph captures make the first minutes uneven."""
DEAD_S: Final = 20.0
"""[ours] Errors, or an open port that says nothing, for so long after it was ready."""
RELOADS: Final = 3
RELOADS_S: Final = 600.0
"""[ours] A model that is loaded so often within so long is loaded for almost every request."""
PREFIX_BEFORE: Final = 0.2
PREFIX_FALL: Final = 0.5
PREFIX_HOLD_S: Final = 300.0
"""[sem] The share of prompts found in the cache falls by half against its own usual: a restart, or evictions."""
