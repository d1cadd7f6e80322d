"""The ways in which the demo's fine-tunes go wrong, each as the real thing looks from outside."""

from __future__ import annotations

import errno
import os
import sys
import time
from typing import NoReturn

from card_use import CardUse, fail, pace, total_mib, visible_cards

GIB = 1024.0
IDLE_GIB = 6.87
"""Held by PyTorch and in use by nobody when memory runs out."""
CONTAINED_ECC = 94
SPINNING_SHARE = 0.3
"""Of its limit a card draws so much while a collective waits for a rank that never comes."""
FULL = "/dev/full"


def out_of_memory(held_gib: float) -> NoReturn:
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


def disk_full() -> NoReturn:
    """Save a checkpoint on a disk that has no room: the kernel itself says so, where it has such a device."""
    path = "out/checkpoint-400/optimizer.pt"
    print("\nSaving model checkpoint to out/checkpoint-400", flush=True)
    if os.path.exists(FULL):
        with open(FULL, "wb", buffering=0) as file:
            try:
                file.write(bytes(1024))
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from None
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def memory_error(uses: list[CardUse], held_mib: float) -> NoReturn:
    """A cell of the card's memory fails: the driver reports an Xid, and ends who used it."""
    fail(visible_cards()[0], CONTAINED_ECC)
    until_s = time.monotonic() + max(3.0, 4.0 * pace())
    while time.monotonic() < until_s:
        for use in uses:
            use.hold(held_mib, 100.0, SPINNING_SHARE)
        time.sleep(0.1)
    sys.stderr.write(
        "\nTraceback (most recent call last):\n"
        '  File "train.py", line 212, in <module>\n'
        "    loss.backward()\n"
        "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace"
        " below might be incorrect.\n"
    )
    sys.stderr.flush()
    raise SystemExit(1)


def hang(uses: list[CardUse], held_mib: float) -> NoReturn:
    """Wait in a collective: the kernel spins, so the cards look busy and draw little."""
    while True:
        for use in uses:
            use.hold(held_mib, 100.0, SPINNING_SHARE)
        time.sleep(0.2)


def start_workers(count: int) -> None:
    """Processes as a loader has them; they sleep, and end with their parent."""
    parent = os.getpid()
    for _ in range(count):
        if os.fork() == 0:
            try:
                while os.getppid() == parent:
                    time.sleep(1.0)
            except (KeyboardInterrupt, SystemExit):
                pass
            os._exit(0)
