"""The screen on 100 hosts x 8 cards at 1 Hz over real SSH, on a 200x50 terminal: CPU, memory, bytes drawn."""

from __future__ import annotations

import asyncio
import sys
import threading

from benchmarks.lab import Lab, lab
from benchmarks.on_pty import Cost, OnPty

HOSTS, CARDS = 100, 8
FEW = HOSTS * CARDS // 50
"""2 % of all cards, each on a host of its own."""
CONNECT_LIMIT_S = 150.0
SETTLE_S = 8.0
SECONDS = 20.0


def measure(made: Lab) -> tuple[float, Cost]:
    """Seconds until every host's cards are counted, and what the screen costs after that."""
    program = OnPty([sys.executable, "-m", "cockpit"], made.environ(), 200, 50)
    try:
        all_there_s = program.wait_for(b"%d GPUs" % (HOSTS * CARDS), CONNECT_LIMIT_S)
        threading.Event().wait(SETTLE_S)
        return all_there_s, program.measure(SECONDS)
    finally:
        program.end()


async def run() -> None:
    print(f"{HOSTS} hosts x {CARDS} cards at 1 Hz, 200x50; their sshd and probes share our cores")
    for few, what, kb_s in ((None, "every card moves", 40), (FEW, "2 % of the cards move", 5)):
        async with lab(HOSTS, CARDS, changing_cards=few) as made:
            all_there_s, cost = await asyncio.to_thread(measure, made)
        print(f"{what}:", flush=True)
        print(f"  client CPU {cost.cpu_pct:5.1f} % of a core (to reach: 15)")
        print(f"  drawn      {cost.drawn_kb_s:5.1f} kB/s (to reach: {kb_s})")
        print(f"  memory     {cost.rss_mib:5.0f} MiB resident, {cost.peak_mib:.0f} at most")
        print(f"  all hosts there after {all_there_s:.1f} s", flush=True)


def main() -> None:
    asyncio.run(run())


if __name__ == "__main__":
    main()
