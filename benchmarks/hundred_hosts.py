"""The screen on 100 hosts x 8 cards at 1 Hz over real SSH, on a 200x50 terminal: CPU, memory, bytes drawn."""

from __future__ import annotations

import asyncio
import sys
import threading

from benchmarks.lab import Lab, lab
from benchmarks.on_pty import Cost, OnPty

HOSTS, CARDS = 100, 8
CONNECT_S = 90.0
SECONDS = 20.0


def measure(made: Lab) -> Cost:
    program = OnPty([sys.executable, "-m", "cockpit"], made.environ(), 200, 50)
    try:
        threading.Event().wait(CONNECT_S)
        return program.measure(SECONDS)
    finally:
        program.end()


async def run() -> None:
    async with lab(HOSTS, CARDS) as made:
        changing = await asyncio.to_thread(measure, made)
    print(
        f"{HOSTS} hosts x {CARDS} cards at 1 Hz, 200x50, real sshd and probes on the same two cores"
    )
    print(f"client CPU {changing.cpu_pct:.1f} % of a core (to reach: 15)")
    print(
        f"drawn {changing.drawn_kb_s:.1f} kB/s (to reach: 40), {changing.rss_mib:.0f} MiB resident"
    )


def main() -> None:
    asyncio.run(run())


if __name__ == "__main__":
    main()
