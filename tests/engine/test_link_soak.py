"""100 000 samples through real decoding, with losses, deaths and garbage between them: nothing grows."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from pathlib import Path

from cockpit.engine.fleet import HISTORY_SAMPLES
from tests.builders.clock import FakeClock, run_virtual
from tests.builders.links import FakeFleet, ProbeHost, settle

HOSTS = 10
SAMPLES_PER_HOST = 10_000
MEASURE_EVERY = 1_000
WARM = 5


HELLO = json.dumps({"k": "hello", "v": 1, "interval": 1.0, "facts": {"hostname": "h"}})


def line(seq: int) -> bytes:
    """A sample in which what a busy host changes has changed, with an ever new process."""
    card = {
        "index": 0,
        "uuid": "GPU-1",
        "name": "NVIDIA H100",
        "util_pct": seq % 101,
        "mem_used_mib": 1000 + seq % 5000,
        "mem_total_mib": 81_559,
        "processes": [{"pid": 1 + seq % 4_000_000, "name": f"job-{seq}", "mem_used_mib": 10}],
    }
    sample = {
        "k": "sample",
        "seq": seq,
        "at": 1_700_000_000.0 + seq,
        "mono": float(seq),
        "source": "nvml",
        "host": {"cpu_pct": float(seq % 100)},
        "cards": [0],
        "gpus": [card],
    }
    return json.dumps(sample).encode() + b"\n"


async def soak(clock: FakeClock) -> None:
    hosts = [ProbeHost(f"h{n}") for n in range(HOSTS)]
    measured: list[tuple[int, int, int]] = []
    async with FakeFleet(clock, *hosts) as fleet:
        for fake in hosts:
            fake.sampler.push(HELLO.encode() + b"\n")
        for seq in range(SAMPLES_PER_HOST):
            sample = line(seq)
            for number, fake in enumerate(hosts):
                trouble = (seq + 97 * number) % 1000
                if trouble == 500:
                    fake.transport.lose()
                elif trouble == 700:
                    fake.sampler.die("killed")
                elif trouble == 900:
                    fake.sampler.push(b"\xff\xfegarbage [[[[\n")
                fake.sampler.push(sample)
            await asyncio.sleep(1.0)
            fleet.samples.clear()
            fleet.events.clear()
            for fake in hosts:
                del fake.transports[:-1], fake.samplers[:-1], fake.attempts_s[:]
            if seq % MEASURE_EVERY == MEASURE_EVERY - 1:
                await asyncio.sleep(60)
                await settle()
                gc.collect()
                measured.append((len(asyncio.all_tasks()), open_fds(), sys.getallocatedblocks()))
        states = fleet.store.hosts.values()
        assert [len(card.util_pct) for state in states for card in state.history.values()] == [
            HISTORY_SAMPLES
        ] * HOSTS
    tasks, fds, blocks = zip(*measured, strict=True)
    assert len(set(tasks)) == 1 and len(set(fds)) == 1
    full = blocks[WARM:]  # histories and the decoder's caches are full by then
    assert max(full) <= 1.01 * full[0]


def open_fds() -> int:
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def test_nothing_grows_over_100_000_samples() -> None:
    run_virtual(soak)
