"""Lines a second that the log detectors scan on one core, on ordinary training and serving logs."""

from __future__ import annotations

import random
import statistics
import time

from cockpit.domain.scan import Scanner

LINES = 400_000
PIECE = 64 * 1024
ROUNDS = 5


def ordinary_log(lines: int) -> bytes:
    """What trainers and servers print when all is well."""
    source = random.Random(1)
    kinds = (
        lambda n: f"{{'loss': {source.random():.4f}, 'grad_norm': 0.71, 'learning_rate': 8.1e-05}}",
        lambda n: f" 41%|####      | {n % 2000}/2000 [41:12<59:40,  2.97s/it]",
        lambda n: (
            f"INFO 02-02 10:00:06 [loggers.py:257] Engine 000: Avg prompt throughput: {n}.1"
            " tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 61.2%"
        ),
        lambda n: (
            f'INFO:     127.0.0.1:{40000 + n % 9999} - "POST /v1/completions HTTP/1.1" 200 OK'
        ),
        lambda n: f"[rank{n % 8}]: iteration {n} | lm loss: 2.31 | grad norm: 1.02 | 412.7 TFLOP/s",
        lambda n: f"2026-11-30 12:00:00,{n % 1000:03d} - data - INFO - shard {n} loaded in 0.41 s",
    )
    return "".join(source.choice(kinds)(number) + "\n" for number in range(lines)).encode()


def wordy_log(lines: int) -> bytes:
    """What nobody prints all day: no line resembles another, so that nothing is known from before."""
    source = random.Random(2)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(source.choices(letters, k=source.randint(2, 9))) for _ in range(5000)]
    return "".join(" ".join(source.choices(words, k=13)) + "\n" for _ in range(lines)).encode()


def lines_a_second(log: bytes) -> float:
    scanner = Scanner()
    begun_s = time.perf_counter()
    for start in range(0, len(log), PIECE):
        found = scanner.feed(log[start : start + PIECE])
        assert not found, found
    assert not scanner.finish()
    return log.count(b"\n") / (time.perf_counter() - begun_s)


def main() -> None:
    log = ordinary_log(LINES)
    rates = [lines_a_second(log) for _ in range(ROUNDS)]
    print(f"{LINES:,} ordinary lines ({len(log) / 1e6:.0f} MB), median of {ROUNDS}:")
    print(f"{statistics.median(rates):,.0f} lines/s (to reach: 200,000); nothing was flagged")
    log = wordy_log(LINES // 4)
    rates = [lines_a_second(log) for _ in range(ROUNDS)]
    print(f"{statistics.median(rates):,.0f} lines/s where no line resembles another")


if __name__ == "__main__":
    main()
