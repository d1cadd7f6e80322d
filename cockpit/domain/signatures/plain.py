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
    Signature(
        id="torch-oom-bare",
        family="gpu_oom",
        literals=(
            "OutOfMemoryError: ",
            "RuntimeError: CUDA out of memory",
            "cuda runtime error (2)",
        ),
        pattern=(
            r"^(?:torch\.)?(?:cuda\.)?OutOfMemoryError: \S|^RuntimeError: CUDA out of memory"
            r"|cuda runtime error \(2\) : out of memory at"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="programs that raise PyTorch's error again without its numbers; torch before 1.0",
        examples=(
            "torch.cuda.OutOfMemoryError: CUDA out of memory",
            "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58",
        ),
    ),
)
