"""A fine-tune that logs like the HF Trainer, and goes wrong at a given second in one of several ways.

What mends it in life mends it here: an allocator that may grow in pieces keeps its memory together, more
loader workers feed the card, a run that resumes does not hang again.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import sys
import time
import types

import troubles
from card_use import CardUse, pace, visible_cards

GIB = 1024.0
WARM_UP_S = 8.0
RUN_UP_S = 12.0
"""Memory climbs for so long before it runs out."""
ENOUGH_WORKERS = 2


def main() -> None:
    args = parse()
    if "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        args.oom_after = 0.0
    signal.signal(signal.SIGTERM, _stop)
    uses = [CardUse(gpu) for gpu in visible_cards()]
    try:
        train(args, uses)
    except KeyboardInterrupt:
        print("KeyboardInterrupt: saving checkpoint before exit", flush=True)
        raise SystemExit(130) from None
    finally:
        for use in uses:
            use.release()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--step-s", type=float, default=0.12)
    parser.add_argument("--level-gib", type=float, default=18.9)
    parser.add_argument("--util", type=float, default=96.0)
    for name in ("oom", "hang", "disk-full", "xid"):
        parser.add_argument("--%s-after" % name, type=float, default=0.0, help="seconds; 0: never")
    parser.add_argument("--num_workers", type=int, help="loader workers; one cannot feed the card")
    parser.add_argument("--resume", default="", help="go on from the last checkpoint")
    args = parser.parse_args()
    for name in ("oom_after", "hang_after", "disk_full_after", "xid_after"):
        setattr(args, name, getattr(args, name) * pace())
    if args.resume:
        args.hang_after = 0.0
    return args


def _stop(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(128 + number)


def train(args: argparse.Namespace, uses: list[CardUse]) -> None:
    print("Loading checkpoint shards: 100%|##########| 4/4 [00:02<00:00,  1.71it/s]", flush=True)
    print("trainable params: 39,976,960 || all params: 7,655,593,472 || trainable%: 0.5222")
    print("***** Running training *****")
    print("  Num examples = 48,000\n  Num Epochs = 3\n  Total optimization steps = %d" % args.steps)
    sys.stdout.flush()
    noise = random.Random(7)
    is_starved = args.num_workers is not None and args.num_workers < ENOUGH_WORKERS
    if args.num_workers:
        troubles.start_workers(args.num_workers)
    begun = time.monotonic()
    for step in range(1, args.steps + 1):
        elapsed = time.monotonic() - begun
        level = warm_up(args.level_gib, elapsed) + run_up(args, elapsed)
        for use in uses:
            use.hold(level * GIB, 24.0 if is_starved else args.util)
        meet_trouble(args, uses, elapsed, level)
        time.sleep(args.step_s * (2.5 if is_starved else 1.0))
        if args.num_workers is not None:
            timed_step(step, args, is_starved)
            continue
        bar(step, args, elapsed)
        if step % 10 == 0:
            report(step, args, noise)
        if step % 400 == 0:
            print("\nSaving model checkpoint to out/checkpoint-%d" % step, flush=True)
    print(
        "\n{'train_runtime': %.1f, 'train_loss': 1.21, 'epoch': 3.0}" % (time.monotonic() - begun)
    )


def meet_trouble(
    args: argparse.Namespace, uses: list[CardUse], elapsed: float, level: float
) -> None:
    if 0 < args.oom_after < elapsed:
        troubles.out_of_memory(level)
    if 0 < args.disk_full_after < elapsed:
        troubles.disk_full()
    if 0 < args.xid_after < elapsed:
        troubles.memory_error(uses, level * GIB)
    if 0 < args.hang_after < elapsed:
        troubles.hang(uses, level * GIB)


def warm_up(level_gib: float, elapsed: float) -> float:
    """Memory climbs while weights load and the allocator fills, then stays level."""
    return level_gib * min(1.0, 0.35 + 0.65 * elapsed / (WARM_UP_S * pace()))


def run_up(args: argparse.Namespace, elapsed: float) -> float:
    """GiB beside the level in the last seconds before memory runs out."""
    span_s = RUN_UP_S * pace()
    if not args.oom_after or elapsed < args.oom_after - span_s:
        return 0.0
    return 3.9 * min(1.0, (elapsed - args.oom_after + span_s) / (span_s * 10.0 / RUN_UP_S))


def timed_step(step: int, args: argparse.Namespace, is_starved: bool) -> None:
    """As mmengine logs: the time of a step, and how much of it went into waiting for data."""
    if step % 5:
        return
    step_s = args.step_s * (2.5 if is_starved else 1.0)
    print(
        "Epoch(train) [1][%d/%d] lr: 1.0000e-04 time: %.4f data_time: %.4f memory: 17911 loss: %.4f"
        % (
            step,
            args.steps,
            step_s,
            step_s * (0.62 if is_starved else 0.03),
            0.8 + 40.0 / (step + 30),
        ),
        flush=True,
    )


def bar(step: int, args: argparse.Namespace, elapsed: float) -> None:
    share = step / args.steps
    left = elapsed / share - elapsed
    text = "\r%3d%%|%-20s| %d/%d [%s<%s, %5.2fit/s]" % (
        100 * share,
        "#" * int(20 * share),
        step,
        args.steps,
        clock(elapsed),
        clock(left),
        1.0 / args.step_s,
    )
    sys.stderr.write(text)
    sys.stderr.flush()


def clock(seconds: float) -> str:
    return "%02d:%02d" % divmod(int(seconds), 60)


def report(step: int, args: argparse.Namespace, noise: random.Random) -> None:
    share = step / args.steps
    loss = 0.9 + 1.6 * math.exp(-3.0 * share) + noise.uniform(-0.04, 0.04)
    print(
        "\r{'loss': %.4f, 'grad_norm': %.3f, 'learning_rate': %.3e, 'epoch': %.2f}"
        % (loss, noise.uniform(0.4, 1.1), 1e-4 * (1.0 - share), 3.0 * share),
        flush=True,
    )


if __name__ == "__main__":
    main()
