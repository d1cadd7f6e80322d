"""CPU that a host spends on one sample of 8 cards: our probe at 1 Hz, against `gpustat` started for each poll."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.lab import peers_bin
from cockpit.engine.shipping import load_program
from tests.nvml.double import healthy, make_driver

SECONDS = 30.0
POLLS = 10


def probe_cpu_s(environ: dict[str, str], folder: Path) -> tuple[float, int]:
    """CPU of a running probe in `SECONDS`, start-up aside, and the samples that it printed meanwhile."""
    for name, source in load_program("probe").sources:
        (folder / f"{name}.py").write_bytes(source)
    argv = [sys.executable, "-S", "-E", str(folder / "probe.py"), "--interval", "1"]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, cwd=folder
    ) as probe:
        assert probe.stdout is not None and probe.stdin is not None
        for _ in range(5):
            probe.stdout.readline()
        before = cpu_s_of(probe.pid)
        begun_s, lines = time.monotonic(), 0
        while time.monotonic() - begun_s < SECONDS:
            lines += bool(probe.stdout.readline())
        cpu_s = cpu_s_of(probe.pid) - before
        probe.stdin.close()
        probe.kill()
    return cpu_s, lines


def cpu_s_of(pid: int) -> float:
    """CPU of a process's threads by the scheduler's own count: clock ticks are too coarse for this."""
    spent_ns = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end while we look
            spent_ns += int((task / "schedstat").read_text().split()[0])
    return spent_ns / 1e9


def gpustat_cpu_s(environ: dict[str, str]) -> float:
    """Median CPU of one `gpustat` from start to end."""
    costs = []
    for _ in range(POLLS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [str(peers_bin() / "gpustat"), "--color", "--show-power"],
            env=environ, stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(costs)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cockpit-bench-") as name:
        folder = Path(name)
        environ = make_driver(folder, healthy(8)).environ(PYTHONDONTWRITEBYTECODE="1")
        environ["LC_ALL"] = os.environ.get("LC_ALL", "C.UTF-8")
        cpu_s, samples = probe_cpu_s(environ, folder)
        poll_s = gpustat_cpu_s(environ)
    ours_s = cpu_s / max(1, samples)
    print(
        f"probe: {1000 * ours_s:.2f} ms of CPU a sample of 8 cards ({samples} samples; to reach: 1)"
    )
    print(f"gpustat by exec: {1000 * poll_s:.0f} ms a poll")
    print(
        f"ratio: 1/{poll_s / ours_s:.0f} (to reach: 1/100)" if ours_s else "too little to measure"
    )


if __name__ == "__main__":
    main()
