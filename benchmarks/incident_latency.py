"""From a line in a log on a loopback host to the incident that every screen hears of, over real SSH."""

from __future__ import annotations

import asyncio
import statistics
import time

from benchmarks.lab import lab
from cockpit.config.hosts import load_hosts
from cockpit.domain.models import HostName
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event, IncidentChanged

RUNS = 40
LIMIT_S = 30.0
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total"
    " capacity of 23.64 GiB of which 812.06 MiB is free. Including non-PyTorch memory, this process"
    " has 22.80 GiB memory in use. Of the allocated memory 21.00 GiB is allocated by PyTorch, and"
    " 312.44 MiB is reserved by PyTorch but unallocated."
)
SCRIPT = f"sleep 0.4; date +%s.%N > stamp-$COCKPIT_RUN; echo '{OOM}'; sleep 1"


async def run() -> None:
    async with lab(1) as made:
        made.home.profiles_dir.mkdir(exist_ok=True)
        profile = made.home.profiles_dir / "oom.toml"
        await asyncio.to_thread(profile.write_text, _profile(str(made.laptop.folder)))
        engine = Engine(made.home, load_hosts(made.home))
        heard: dict[str, float] = {}

        def hear(event: Event) -> None:
            if isinstance(event, IncidentChanged) and event.incident.run is not None:
                heard.setdefault(event.incident.run, time.time())

        engine.subscribe(hear)
        await engine.start()
        host = HostName("h0")
        begun_s = time.monotonic()
        while engine.fleet.hosts[host].latest is None:
            assert time.monotonic() - begun_s < LIMIT_S
            await asyncio.sleep(0.05)
        delays = []
        for _ in range(RUNS):
            run_id = await engine.launch(await engine.plan(str(profile), hosts=[host]))
            begun_s = time.monotonic()
            while run_id not in heard:
                assert time.monotonic() - begun_s < LIMIT_S, "the incident never came"
                await asyncio.sleep(0.01)
            stamp = made.laptop.folder / f"stamp-{run_id}"
            written_s = float((await asyncio.to_thread(stamp.read_text)).strip())
            delays.append(heard[run_id] - written_s)
        await engine.close()
    delays.sort()
    worst = delays[min(len(delays) - 1, int(0.99 * len(delays)))]
    print(f"log line to incident, {RUNS} runs: median {1000 * statistics.median(delays):.0f} ms,")
    print(f"p99 {1000 * worst:.0f} ms (to reach: 150)")


def _profile(folder: str) -> str:
    return f'kind = "command"\ncwd = "{folder}"\n\n[command]\nscript = "{SCRIPT}"\n'


def main() -> None:
    asyncio.run(run())


if __name__ == "__main__":
    main()
