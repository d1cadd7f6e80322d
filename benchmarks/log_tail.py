"""Transport of a log: a file of 200 MB through our connection, against `ssh host cat`, in turns."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import time
from pathlib import Path

from benchmarks.lab import Lab, lab

SIZE = 200 << 20
ROUNDS = 5
LINE = b"{'loss': 1.8342, 'grad_norm': 0.71, 'learning_rate': 8.1e-05, 'epoch': 0.41, 'step': 812, 'x': 1}\n"


async def ours_mb_s(made: Lab, path: Path) -> float:
    transport = made.laptop.transport(made.sshd)
    begun_s = time.perf_counter()
    await transport.connect()
    try:
        channel = await transport.open(f"exec cat '{path}'".encode())
        size = 0
        while piece := await channel.read(1 << 18):
            size += len(piece)
        took_s = time.perf_counter() - begun_s
        assert size == SIZE
    finally:
        await transport.close()
    return SIZE / took_s / 1e6


def cat_mb_s(made: Lab, path: Path) -> float:
    begun_s = time.perf_counter()
    with subprocess.Popen(
        ["ssh", "-o", "BatchMode=yes", "h0", f"cat '{path}'"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=made.environ(),
        executable=str(made.ssh_folder / "ssh"),
    ) as cat:  # fmt: skip
        assert cat.stdout is not None
        size = 0
        while piece := cat.stdout.read(1 << 18):
            size += len(piece)
    assert size == SIZE
    return SIZE / (time.perf_counter() - begun_s) / 1e6


async def run() -> None:
    async with lab(1) as made:
        path = made.laptop.folder / "big.log"
        await asyncio.to_thread(path.write_bytes, (LINE * (SIZE // len(LINE) + 1))[:SIZE])
        ours, cat = [], []
        for _ in range(ROUNDS):
            cat.append(await asyncio.to_thread(cat_mb_s, made, path))
            ours.append(await ours_mb_s(made, path))
    ratios = [mine / base for mine, base in zip(ours, cat, strict=True)]
    print(f"our transport, median of {ROUNDS}: {statistics.median(ours):.0f} MB/s")
    print(f"ssh host cat:               {statistics.median(cat):.0f} MB/s; handshakes included")
    print(f"ratio, pair by pair, median: {statistics.median(ratios):.2f} (to reach: 0.7)")


def main() -> None:
    asyncio.run(run())


if __name__ == "__main__":
    main()
