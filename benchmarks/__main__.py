"""Run benches by name, or all of them, one after the other: `python -m benchmarks [NAME …]`."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    "first_paint",
    "first_sample",
    "telemetry",
    "host_cost",
    "hundred_hosts",
    "log_tail",
    "log_view",
    "scan",
    "incident_latency",
)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no such bench: {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 64
    for name in names or NAMES:
        print(f"\n== {name} ==", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
