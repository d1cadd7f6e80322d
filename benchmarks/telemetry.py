"""Client CPU of watching 8 hosts x 8 cards at 1 Hz on a terminal: cockpit against its peers, in turns."""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
from pathlib import Path

from benchmarks.lab import Lab, lab, peers_bin
from benchmarks.on_pty import Cost, OnPty

HOSTS, CARDS = 8, 8
COLUMNS, ROWS = 200, 60
WARM_UP_S = 8.0
"""After the last host was drawn: readings that come every few seconds have come once."""
SECONDS = 16.0
ROUNDS = 2
OURS, BEST_PEER = "cockpit, 1 s", "mnvitop 1.0.0, 1 s"


def programs(folder: Path, names: tuple[str, ...]) -> dict[str, tuple[list[str], bytes]]:
    """What is started, and a text that is drawn once every host answers."""
    config = folder / "mnvitop.toml"
    config.write_text(f"hosts = {list(names)!r}\n".replace("'", '"'))
    peers = peers_bin()
    last = names[-1].encode()
    return {
        OURS: ([sys.executable, "-m", "cockpit"], b"%d GPUs" % (HOSTS * CARDS)),
        BEST_PEER: ([str(peers / "mnvitop"), "-c", str(config), "-i", "1"], last),
        "clustop 0.1.0, 1 s": ([str(peers / "clustop"), "-i", "1", *names], last),
    }


def measure(argv: list[str], drawn: bytes, made: Lab) -> Cost:
    program = OnPty(argv, made.environ(), COLUMNS, ROWS)
    try:
        program.wait_for(drawn)
        threading.Event().wait(WARM_UP_S)
        return program.measure(SECONDS)
    finally:
        program.end()


async def run() -> None:
    costs: dict[str, list[Cost]] = {}
    async with lab(HOSTS, CARDS) as made:
        for _ in range(ROUNDS):
            for name, (argv, drawn) in programs(made.laptop.folder, made.names).items():
                cost = await asyncio.to_thread(measure, argv, drawn, made)
                costs.setdefault(name, []).append(cost)
    print(f"{HOSTS} hosts x {CARDS} cards, every number moves, {COLUMNS}x{ROWS}, real sshd")
    print(
        f"{'program':20} {'CPU %':>7} {'RSS MiB':>8} {'peak':>6} {'processes':>9} {'drawn kB/s':>10}"
    )
    for name, each in costs.items():
        print(
            f"{name:20} {_median(each):7.2f} {each[-1].rss_mib:8.1f} {each[-1].peak_mib:6.1f}"
            f" {each[-1].processes:9d} {each[-1].drawn_kb_s:10.1f}"
        )
    for name, each in costs.items():
        if name != OURS and _median(each):
            aim = " (to reach: below 1)" if name == BEST_PEER else ""
            print(f"cockpit / {name}: {_median(costs[OURS]) / _median(each):.2f}{aim}")


def _median(each: list[Cost]) -> float:
    return statistics.median(cost.cpu_pct for cost in each)


def main() -> None:
    asyncio.run(run())


if __name__ == "__main__":
    main()
