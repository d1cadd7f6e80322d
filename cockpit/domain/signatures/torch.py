"""Memory errors that PyTorch itself reports, in every format since 1.0, and the libraries below it."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

TORCH: Final = (
    Signature(
        id="torch-oom-cap",
        family="gpu_oom",
        literals=(" allowed; ",),
        pattern=(
            r"(?P<_backend>CUDA|HIP|XPU) out of memory\. Tried to allocate (?P<tried_mib><SIZE>)\. GPU"
            r" ?(?P<gpu_index>\d*) has a total capac(?:i)?ty of (?P<total_mib><SIZE>) of which"
            r" (?P<free_mib><SIZE>) is free\. (?P<_procs>(?:Process \d+ has <SIZE> memory in use\."
            r" )*)(?:Including non-PyTorch memory, this process has (?P<in_use_mib><SIZE>) memory in"
            r" use\. )?(?P<allowed_mib><SIZE>) allowed; Of the allocated memory"
            r" (?P<allocated_mib><SIZE>) is allocated by PyTorch, (?:with"
            r" (?P<private_pools_mib><SIZE>) allocated in private pools \(e\.g\., (?:CUDA|HIP)"
            r" Graphs\), )?and (?P<unallocated_mib><SIZE>) is reserved by PyTorch but unallocated"
        ),
        cause="own_cap",
        remedies=("raise_memory_fraction", "smaller_batch", "gradient_checkpointing"),
        source="pytorch CUDACachingAllocator.cpp (set_per_process_memory_fraction)",
        examples=(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a "
            "total capacity of 79.10 GiB of which 41.77 GiB is free. Including non-PyTorch "
            "memory, this process has 37.31 GiB memory in use. 36.00 GiB allowed; Of the "
            "allocated memory 34.90 GiB is allocated by PyTorch, and 310.12 MiB is reserved by "
            "PyTorch but unallocated.",
        ),
    ),
    Signature(
        id="torch-oom-hip",
        family="gpu_oom",
        literals=("HIP out of memory. Tried to allocate",),
        pattern=(
            r"HIP out of memory\. Tried to allocate (?P<tried_mib><SIZE>)\. GPU ?(?P<gpu_index>\d*)"
            r" has a total capac(?:i)?ty of (?P<total_mib><SIZE>) of which (?P<free_mib><SIZE>) is free\."
            r"(?P<_procs>(?: Process \d+ has <SIZE> memory in use\.)*)"
            r"(?: Including non-PyTorch memory, this process has (?P<in_use_mib><SIZE>) memory in use\.)?"
            r"(?: Of the allocated memory (?P<allocated_mib><SIZE>) is allocated by PyTorch,"
            r"(?: with (?P<private_pools_mib><SIZE>) allocated in private pools \(e\.g\., \w+ Graphs\),)?"
            r" and (?P<unallocated_mib><SIZE>) is reserved by PyTorch but unallocated)?"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="hipified CUDACachingAllocator (`c10/hip/HIPCachingAllocator.cpp`)",
        examples=(
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 640.00 MiB. GPU 0 has "
            "a total capacity of 63.98 GiB of which 402.00 MiB is free. Of the allocated memory "
            "61.20 GiB is allocated by PyTorch, and 1.02 GiB is reserved by PyTorch but "
            "unallocated.",
        ),
    ),
    Signature(
        id="torch-oom-21",
        family="gpu_oom",
        literals=("has a total capac",),
        pattern=(
            r"(?P<_backend>CUDA|HIP|XPU) out of memory\. Tried to allocate (?P<tried_mib><SIZE>)\. GPU"
            r" ?(?P<gpu_index>\d*) has a total capac(?:i)?ty of (?P<total_mib><SIZE>) of which"
            r" (?P<free_mib><SIZE>) is free\. (?P<_procs>(?:Process \d+ has <SIZE> memory in use\."
            r" )*)(?:Including non-PyTorch memory, this process has (?P<in_use_mib><SIZE>) memory in"
            r" use\. )?(?:(?P<allowed_mib><SIZE>) allowed; )?Of the allocated memory"
            r" (?P<allocated_mib><SIZE>) is allocated by PyTorch, (?:with"
            r" (?P<private_pools_mib><SIZE>) allocated in private pools \(e\.g\., (?:CUDA|HIP)"
            r" Graphs\), )?and (?P<unallocated_mib><SIZE>) is reserved by PyTorch but unallocated"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="pytorch c10/cuda/CUDACachingAllocator.cpp",
        examples=(
            "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. "
            "GPU 3 has a total capacity of 79.10 GiB of which 812.44 MiB is free. Including "
            "non-PyTorch memory, this process has 78.29 GiB memory in use. Of the allocated "
            "memory 71.06 GiB is allocated by PyTorch, and 5.41 GiB is reserved by PyTorch but "
            "unallocated. If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 "
            "has a total capacty of 23.65 GiB of which 41.06 MiB is free. Process 48213 has 9.77 "
            "GiB memory in use. Including non-PyTorch memory, this process has 13.82 GiB memory "
            "in use. Of the allocated memory 13.10 GiB is allocated by PyTorch, and 214.33 MiB "
            "is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
            "try setting max_split_size_mb to avoid fragmentation.",
            "(EngineCore_DP0 pid=912) ERROR 03-14 02:11:09 [core.py:712] torch.OutOfMemoryError: "
            "CUDA out of memory. Tried to allocate 620.00 MiB. GPU 0 has a total capacity of "
            "47.41 GiB of which 390.06 MiB is free. Process 1204 has 46.99 GiB memory in use. Of "
            "the allocated memory 44.80 GiB is allocated by PyTorch, with 58.00 MiB allocated in "
            "private pools (e.g., CUDA Graphs), and 712.90 MiB is reserved by PyTorch but "
            "unallocated.",
        ),
    ),
    Signature(
        id="torch-oom-preempt",
        family="gpu_oom",
        literals=("would exceed per_process_memory_fraction limit",),
        pattern=(
            r"CUDA out of memory\. Allocation was preemptively rejected because it would exceed"
            r" per_process_memory_fraction limit\. Requested size: (?P<tried_mib>\S+(?: \S+)?)"
        ),
        cause="own_cap",
        remedies=("raise_memory_fraction", "smaller_batch", "gradient_checkpointing"),
        source="pytorch CUDACachingAllocator.cpp (throw_on_cudamalloc_oom)",
        examples=(
            "torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected "
            "because it would exceed per_process_memory_fraction limit. Requested size: "
            "3221225472",
        ),
    ),
    Signature(
        id="torch-oom-1x",
        family="gpu_oom",
        literals=("already allocated;",),
        pattern=(
            r"(?P<_backend>CUDA|HIP) out of memory\. Tried to allocate (?P<tried_mib><SIZE>) \(GPU"
            r" (?P<gpu_index>\d+); (?P<total_mib><SIZE>) total capacity; (?P<allocated_mib><SIZE>)"
            r" already allocated; (?P<free_mib><SIZE>) free; (?:(?P<allowed_mib><SIZE>) allowed;"
            r" )?(?P<reserved_mib><SIZE>) (?:reserved in total by PyTorch|cached)\)"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="pytorch CUDACachingAllocator.cpp",
        examples=(
            "RuntimeError: CUDA out of memory. Tried to allocate 384.00 MiB (GPU 0; 23.70 GiB "
            "total capacity; 20.11 GiB already allocated; 210.56 MiB free; 22.40 GiB reserved in "
            "total by PyTorch) If reserved memory is >> allocated memory try setting "
            "max_split_size_mb to avoid fragmentation.",
            "RuntimeError: CUDA out of memory. Tried to allocate 1.20 GiB (GPU 1; 10.92 GiB "
            "total capacity; 8.01 GiB already allocated; 700.31 MiB free; 1.50 GiB cached)",
        ),
    ),
    Signature(
        id="torch-oom-mps",
        family="gpu_oom",
        literals=("MPS backend out of memory",),
        pattern=(
            r"MPS backend out of memory \(MPS allocated: (?P<allocated_mib>[\d.]+ [KMGT]B), other"
            r" allocations: [\d.]+ [KMGT]B, max allowed: (?P<allowed_mib>[\d.]+ [KMGT]B)\)\. Tried to"
            r" allocate (?P<tried_mib>[\d.]+ [KMGT]B)"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="pytorch aten/src/ATen/mps/MPSAllocator.mm",
        examples=(
            "RuntimeError: MPS backend out of memory (MPS allocated: 17.54 GB, other "
            "allocations: 512.00 KB, max allowed: 18.13 GB). Tried to allocate 864.00 MB on "
            "private pool.",
        ),
    ),
    Signature(
        id="torch-oom-npu",
        family="gpu_oom",
        literals=("NPU out of memory. Tried to allocate",),
        pattern=(
            r"NPU out of memory\. Tried to allocate (?P<tried_mib><SIZE>) \(NPU (?P<gpu_index>\d+);"
            r" (?P<total_mib><SIZE>) total capacity; (?P<allocated_mib><SIZE>) already allocated;"
            r" <SIZE> current active; (?P<free_mib><SIZE>) free; (?P<reserved_mib><SIZE>) reserved in"
            r" total by PyTorch\)"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="torch_npu csrc/core/npu/NPUCachingAllocator.cpp",
        examples=(
            "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total "
            "capacity; 55.10 GiB already allocated; 55.10 GiB current active; 640.21 MiB free; "
            "57.31 GiB reserved in total by PyTorch)",
        ),
    ),
    Signature(
        id="torch-oom-1eb",
        family="gpu_oom",
        literals=("Tried to allocate more than 1EB memory",),
        pattern=(r"(?:CUDA|HIP) out of memory\. Tried to allocate more than 1EB memory"),
        cause="size_overflow",
        remedies=("print_shapes",),
        source="pytorch CUDACachingAllocator.cpp",
        examples=(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.",
        ),
    ),
    Signature(
        id="torch-retry",
        family="gpu_oom",
        severity="notice",
        role="metric",
        literals=("memory allocation failed with OOM on device",),
        pattern=(
            r"memory allocation failed with OOM on device (?P<gpu_index>\d+) while trying to allocate"
            r" (?P<tried_mib>\d+) bytes \(free: (?P<free_mib>\d+), total: (?P<total_mib>\d+)\)"
        ),
        cause="allocator_retry",
        remedies=("headroom", "expandable_segments"),
        source="pytorch CUDACachingAllocator.cpp alloc_block",
        examples=(
            "[rank1]:[W812 16:00:28.643448608 CUDACachingAllocator.cpp:3933] memory allocation "
            "failed with OOM on device 1 while trying to allocate 20971520 bytes (free: "
            "15794176, total: 150111977472).",
        ),
    ),
    Signature(
        id="torch-preempt-log",
        family="gpu_oom",
        severity="notice",
        role="metric",
        literals=("Preemptively rejecting allocation: requested",),
        pattern=(r"Preemptively rejecting allocation: requested (?P<tried_mib>[^,(]+)"),
        cause="allocator_retry",
        remedies=("raise_memory_fraction",),
        source="pytorch CUDACachingAllocator.cpp",
        examples=(
            "[W1130 CUDACachingAllocator.cpp:3471] Preemptively rejecting allocation: requested "
            "2147483648 (2.7% of 79.10 GiB) but total_allocated_memory (75.1 GiB) + requested "
            "size would exceed memory limit (75.14 GiB). Set throw_on_cudamalloc_oom:false to "
            "disable.",
        ),
    ),
    Signature(
        id="torch-oom-async",
        family="gpu_oom",
        literals=("would exceed allowed memory. (out of memory)",),
        pattern=(
            r"Allocation on device (?P<gpu_index>\d*) ?would exceed allowed memory\. \(out of memory\)"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="pytorch c10/cuda/CUDAMallocAsyncAllocator.cpp",
        examples=(
            "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of "
            "memory)",
        ),
    ),
    Signature(
        id="torch-oom-outside",
        family="gpu_oom",
        literals=("ran out of memory outside PyTorch's allocator",),
        pattern=(r"CUDA ran out of memory outside PyTorch's allocator"),
        cause="outside_torch",
        remedies=("lower_memory_fraction", "fixed_shapes"),
        source="pytorch aten/src/ATen/native/cudnn (SDPA)",
        examples=(
            "RuntimeError: CUDA ran out of memory outside PyTorch's allocator. If this workload "
            "uses many dynamic shapes, cuDNN may need additional device memory to JIT-compile "
            "shape-specialized kernels.",
        ),
    ),
)
