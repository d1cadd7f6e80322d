"""Time to the first sample of 8 loopback hosts, against eight parallel `true` by asyncssh, in turns; imports aside."""

from __future__ import annotations

import asyncio
import statistics
import time

import asyncssh

import cockpit.transport.connector  # noqa: F401 - imports are not what is measured
from benchmarks.lab import Lab, lab
from cockpit.config.hosts import load_hosts
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event
from cockpit.engine.no_runs import NoRuns
from cockpit.engine.wiring import Wiring, load_transports

ROUNDS = 15
LIMIT_S = 60.0


async def parallel_true(made: Lab) -> float:
    async def one(port: int) -> None:
        async with asyncssh.connect(
            "127.0.0.1", port, username=made.sshd.user, client_keys=[str(made.laptop.identity.file)],
            known_hosts=str(made.home.known_hosts), config=None, agent_path=None,
        ) as connection:  # fmt: skip
            await connection.run("true", check=True)

    begun_s = time.perf_counter()
    await asyncio.gather(*(one(port) for port in made.ports))
    return time.perf_counter() - begun_s


async def first_samples(made: Lab) -> float:
    wiring = Wiring(make_runs=lambda _parts: NoRuns())
    engine = Engine(made.home, load_hosts(made.home), wiring=wiring)
    all_there = asyncio.Event()

    def hear(event: Event) -> None:
        if all(state.latest is not None for state in engine.fleet.hosts.values()):
            all_there.set()

    engine.subscribe(hear)
    begun_s = time.perf_counter()
    await engine.start()
    await asyncio.wait_for(all_there.wait(), LIMIT_S)
    took_s = time.perf_counter() - begun_s
    assert all(len(s.latest.gpus) == 8 for s in engine.fleet.hosts.values() if s.latest)
    await engine.close()
    return took_s


async def run() -> None:
    load_transports()
    async with lab(8, 8) as made:
        await first_samples(made)  # the hosts' caches are filled once, as on any second visit
        await parallel_true(made)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(await parallel_true(made))
            ours.append(await first_samples(made))
    ratios = [mine / base for mine, base in zip(ours, theirs, strict=True)]
    print(f"first sample of 8 hosts, median of {ROUNDS}: {statistics.median(ours) * 1000:.0f} ms")
    print(f"eight parallel `true` by asyncssh:     {statistics.median(theirs) * 1000:.0f} ms")
    print(f"ratio, pair by pair, median: {statistics.median(ratios):.2f} (to reach: 1.6)")


def main() -> None:
    asyncio.run(run())


if __name__ == "__main__":
    main()
