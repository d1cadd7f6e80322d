"""A fine-tune that logs like the HF Trainer.

With `--oom-after` PyTorch's pool falls to pieces after that time and the run is out of memory, unless the
allocator may grow in pieces: the first remedy of that incident, applied, helps here as it does in life.
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

from card_use import CardUse, total_mib, visible_cards

GIB = 1024.0
IDLE_GIB = 6.87
"""Held by PyTorch and in use by nobody when memory runs out."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--step-s", type=float, default=0.12)
    parser.add_argument("--level-gib", type=float, default=18.9)
    parser.add_argument("--util", type=float, default=96.0)
    parser.add_argument("--oom-after", type=float, default=0.0, help="seconds; 0: never")
    args = parser.parse_args()
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


def _stop(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(128 + number)


def train(args: argparse.Namespace, uses: list[CardUse]) -> None:
    print("Loading checkpoint shards: 100%|##########| 4/4 [00:02<00:00,  1.71it/s]", flush=True)
    print("trainable params: 39,976,960 || all params: 7,655,593,472 || trainable%: 0.5222")
    print("***** Running training *****")
    print("  Num examples = 48,000\n  Num Epochs = 3\n  Total optimization steps = %d" % args.steps)
    sys.stdout.flush()
    noise = random.Random(7)
    begun = time.monotonic()
    for step in range(1, args.steps + 1):
        elapsed = time.monotonic() - begun
        level = warm_up(args.level_gib, elapsed)
        late = args.oom_after and elapsed > args.oom_after - 12.0
        if late:
            level += 3.9 * min(1.0, (elapsed - args.oom_after + 12.0) / 10.0)
        for use in uses:
            use.hold(level * GIB, args.util)
        if args.oom_after and elapsed > args.oom_after:
            out_of_memory(level, step)
        time.sleep(args.step_s)
        bar(step, args, elapsed)
        if step % 10 == 0:
            report(step, args, noise)
        if step % 400 == 0:
            print("\nSaving model checkpoint to out/checkpoint-%d" % step, flush=True)
    print(
        "\n{'train_runtime': %.1f, 'train_loss': 1.21, 'epoch': 3.0}" % (time.monotonic() - begun)
    )


def warm_up(level_gib: float, elapsed: float) -> float:
    """Memory climbs while weights load and the allocator fills, then stays level."""
    return level_gib * min(1.0, 0.35 + 0.65 * elapsed / 8.0)


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


def out_of_memory(held_gib: float, step: int) -> None:
    """Die as PyTorch does, with numbers that fit the card."""
    gpu = visible_cards()[0]
    total = (total_mib(gpu) - 430) / GIB
    free = max(0.02, total - held_gib)
    allocated = held_gib - 0.81 - IDLE_GIB
    sys.stderr.write(
        "\nTraceback (most recent call last):\n"
        '  File "train.py", line 212, in <module>\n'
        "    trainer.train()\n"
        '  File "transformers/trainer.py", line 2241, in train\n'
        "    return inner_training_loop(\n"
        '  File "torch/_tensor.py", line 581, in backward\n'
        "    torch.autograd.backward(\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total "
        "capacity of %.2f GiB of which %.2f MiB is free. Including non-PyTorch memory, this process "
        "has %.2f GiB memory in use. Of the allocated memory %.2f GiB is allocated by PyTorch, and "
        "%.2f GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
        "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "
        "See documentation for Memory Management  "
        "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\n"
        % (total, free * GIB, held_gib, allocated, IDLE_GIB)
    )
    sys.stderr.flush()
    raise SystemExit(1)


if __name__ == "__main__":
    main()
