"""What is left of a message when its numbers were cut off: tried after all others."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

PLAIN: Final = (
    Signature(
        id="torch-oom-plain",
        family="gpu_oom",
        literals=("out of memory. Tried to allocate",),
        pattern=(
            r"(?:CUDA|HIP|XPU|NPU|MUSA|MLU|cuda|GPU) out of memory\. Tried to allocate"
            r" (?P<tried_mib><SIZE>)(?:.{0,40}?GPU (?P<gpu_index>\d+) has a total capac(?:i)?ty of"
            r" (?P<total_mib><SIZE>))?(?: of which (?P<free_mib><SIZE>) is free)?(?:\. Including"
            r" non-PyTorch memory, this process has (?P<in_use_mib><SIZE>) memory in use)?"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="pytorch CUDACachingAllocator.cpp, shortened or wrapped by whoever printed it",
        examples=("RuntimeError: XPU out of memory. Tried to allocate 512.00 MiB.",),
    ),
)
