"""Client CPU of watching 8 hosts x 8 cards at 1 Hz on a terminal: cockpit against its peers, in one run."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from benchmarks.lab import Lab, lab, peers_bin
from benchmarks.on_pty import Cost, OnPty

HOSTS, CARDS = 8, 8
WARM_UP_S = 12.0
COLUMNS, ROWS = 200, 60


def programs(made: Lab, folder: Path) -> dict[str, list[str]]:
    config = folder / "mnvitop.toml"
    config.write_text(f"hosts = {list(made.names)!r}\n".replace("'", '"'))
    peers = peers_bin()
    return {
        "cockpit, 1 s": [sys.executable, "-m", "cockpit"],
        "mnvitop 1.0.0, 1 s": [str(peers / "mnvitop"), "-c", str(config), "-i", "1"],
        "clustop 0.1.0, 1 s": [str(peers / "clustop"), "-i", "1", *made.names],
    }


def measure(argv: list[str], made: Lab, seconds: float) -> Cost:
    program = OnPty(argv, made.environ(), COLUMNS, ROWS)
    try:
        threading.Event().wait(WARM_UP_S)
        return program.measure(seconds)
    finally:
        program.end()


async def run(seconds: float, rounds: int, say: Callable[[str], None] = print) -> None:
    async with lab(HOSTS, CARDS) as made:
        costs: dict[str, list[Cost]] = {}
        for _ in range(rounds):
            for name, argv in programs(made, made.laptop.folder).items():
                cost = await asyncio.to_thread(measure, argv, made, seconds)
                costs.setdefault(name, []).append(cost)
        say(f"{'program':22} {'CPU %':>7} {'RSS MiB':>8} {'processes':>9} {'kB/s drawn':>10}")
        medians = {name: statistics.median(c.cpu_pct for c in each) for name, each in costs.items()}
        for name, each in costs.items():
            last = each[-1]
            say(
                f"{name:22} {medians[name]:7.2f} {last.rss_mib:8.1f} {last.processes:9d}"
                f" {last.drawn_kb_s:10.1f}"
            )
        ours = medians["cockpit, 1 s"]
        for name, cpu_pct in medians.items():
            if name != "cockpit, 1 s" and cpu_pct:
                say(f"cockpit / {name}: {ours / cpu_pct:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=2)
    args, _ = parser.parse_known_args()
    asyncio.run(run(args.seconds, args.rounds))


if __name__ == "__main__":
    main()
