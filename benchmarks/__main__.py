"""Run benches by name, or all of them, one after the other: `python -m benchmarks [NAME …]`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LIMITS_S = {
    "first_paint": 120,
    "first_sample": 90,
    "telemetry": 240,
    "host_cost": 120,
    "hundred_hosts": 420,
    "log_tail": 150,
    "log_view": 90,
    "scan": 90,
    "leak": 400,
    "pulse": 300,
    "recorder": 300,
    "incident_latency": 150,
}
"""What a bench may take before it is ended, with all that it started."""
ROOT = Path(__file__).resolve().parent.parent


def run(name: str) -> bool:
    """One bench in a process of its own, so that none measures what another has loaded."""
    print(f"\n== {name} ==", flush=True)
    begun_s = time.monotonic()
    bench = subprocess.Popen([sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT)
    try:
        code = bench.wait(LIMITS_S[name])
    except subprocess.TimeoutExpired:
        print(f"ended: it took more than {LIMITS_S[name]} s", flush=True)
        code = None
    finally:
        _end(bench)
    print(f"({time.monotonic() - begun_s:.0f} s)", flush=True)
    return code == 0


def _end(bench: subprocess.Popen[bytes]) -> None:
    """SIGINT first: it lets a bench end its servers and remove its folders."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if bench.poll() is None:
            bench.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                bench.wait(40)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in LIMITS_S]
    if unknown:
        print(
            f"no such bench: {', '.join(unknown)}; there are {', '.join(LIMITS_S)}", file=sys.stderr
        )
        return os.EX_USAGE
    failed = [name for name in names or LIMITS_S if not run(name)]
    if failed:
        print(f"\nwithout a result: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
