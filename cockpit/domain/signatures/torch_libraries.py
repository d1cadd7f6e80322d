"""Memory errors of the libraries around PyTorch's allocator: CUDA, cuBLAS, cuDNN, cuFFT, DeepSpeed."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

TORCH_LIBRARIES: Final = (
    Signature(
        id="cuda-oom-rt",
        family="gpu_oom",
        literals=("CUDA error: out of memory", "HIP error: out of memory"),
        pattern=(r"(?:RuntimeError|AcceleratorError): (?:CUDA|HIP) error: out of memory"),
        cause="outside_allocator",
        remedies=("look_at_card", "kill_orphan", "pinned_memory"),
        source="pytorch c10/cuda/CUDAException.cpp",
        examples=("torch.AcceleratorError: CUDA error: out of memory",),
    ),
    Signature(
        id="cublas-alloc",
        family="gpu_oom",
        literals=("CUBLAS_STATUS_ALLOC_FAILED",),
        pattern=(r"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `?(?P<_call>cublas\w+)"),
        cause="library_workspace",
        remedies=("headroom", "cublas_workspace", "launch_blocking"),
        source="pytorch ATen/cuda/Exceptions, CublasHandlePool",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
            "`cublasCreate(handle)`",
        ),
    ),
    Signature(
        id="cublas-notinit",
        family="gpu_oom",
        severity="warning",
        literals=("CUBLAS_STATUS_NOT_INIT",),
        pattern=(r"CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `?(?P<_call>cublas\w+)"),
        cause="library_or_index",
        remedies=("headroom", "check_indices"),
        source="pytorch ATen/cuda/Exceptions",
        examples=(
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling "
            "`cublasCreate(handle)`",
        ),
    ),
    Signature(
        id="cudnn-alloc",
        family="gpu_oom",
        literals=("ALLOC_FAILED", "ALLOCATION_FAILED"),
        pattern=(
            r"cuDNN error: CUDNN_STATUS_(?P<_st>(?:INTERNAL_ERROR_)?(?:HOST_|"
            r"DEVICE_)?ALLOC(?:ATION)?_FAILED)"
        ),
        cause="library_workspace",
        remedies=("smaller_batch", "cudnn_benchmark_off", "headroom"),
        source="pytorch ATen/cudnn",
        examples=("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",),
    ),
    Signature(
        id="cudnn-notinit",
        family="gpu_oom",
        severity="warning",
        literals=("CUDNN_STATUS_NOT_INITIALIZED",),
        pattern=(r"cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
        cause="library_or_cudnn",
        remedies=("headroom", "reinstall_cudnn"),
        source="pytorch ATen/cudnn",
        examples=("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",),
    ),
    Signature(
        id="cudnn-noalgo",
        family="gpu_oom",
        severity="warning",
        literals=(
            "Unable to find a valid cuDNN algorithm to run convolution",
            "GET was unable to find an engine to execute this computation",
        ),
        pattern=(
            r"Unable to find a valid cuDNN algorithm to run convolution|GET was unable to find an"
            r" engine to execute this computation"
        ),
        cause="library_workspace",
        remedies=("smaller_batch", "check_dtype"),
        source="pytorch ATen/native/cudnn/Conv_v7/v8",
        examples=("RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",),
    ),
    Signature(
        id="cufft-alloc",
        family="gpu_oom",
        severity="warning",
        literals=("CUFFT_ALLOC_FAILED", "CUFFT_NO_WORKSPACE"),
        pattern=(r"cuFFT error: CUFFT_(?P<_st>ALLOC_FAILED|NO_WORKSPACE)"),
        cause="library_workspace",
        remedies=("fft_plan_cache", "smaller_batch"),
        source="pytorch ATen/native/cuda/CuFFT",
        examples=("RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED",),
    ),
    Signature(
        id="acc-zero",
        family="gpu_oom",
        literals=("No executable batch size found, reached zero.",),
        pattern=(r"No executable batch size found, reached zero\."),
        cause="batch_one_does_not_fit",
        remedies=("gradient_checkpointing", "shorter_sequences", "lean_optimizer", "shard"),
        source="accelerate utils/memory.py",
        examples=("RuntimeError: No executable batch size found, reached zero.",),
    ),
    Signature(
        id="ds-flush",
        family="gpu_oom",
        severity="warning",
        literals=("pytorch allocator cache flushes since last step",),
        pattern=(r"(?P<_n>\d+) pytorch allocator cache flushes since last step"),
        cause="allocator_thrash",
        remedies=("smaller_batch", "expandable_segments", "stage3_live"),
        source="DeepSpeed runtime/zero/stage3.py",
        examples=(
            "[2026-11-30 12:00:00,000] [WARNING] [stage3.py:2658:step] 3 pytorch allocator cache "
            "flushes since last step. this happens when there is high memory pressure and is "
            "detrimental to performance.",
        ),
    ),
    Signature(
        id="ds-memory",
        family="near_full",
        severity="notice",
        role="count",
        at_least=3,
        bare_unit="GiB",
        any_level=True,
        literals=("Max_MA ",),
        pattern=(
            r"MA (?P<_now>[\d.]+) GB +Max_MA (?P<allocated_mib>[\d.]+) GB +CA (?P<reserved_mib>[\d.]+) GB"
            r" +Max_CA [\d.]+ GB"
        ),
        cause="fragmented",
        remedies=("expandable_segments", "empty_cache"),
        source="DeepSpeed runtime/utils.py see_memory_usage",
        examples=(
            "[2026-11-30 12:00:00,000] [INFO] [utils.py:782:see_memory_usage] MA 9.1 GB         Max_MA 20.4 GB"
            "         CA 41.2 GB         Max_CA 41 GB",
        ),
    ),
    Signature(
        id="megatron-memory",
        family="near_full",
        severity="notice",
        role="count",
        at_least=3,
        bare_unit="MiB",
        any_level=True,
        literals=("| max allocated: ",),
        pattern=(
            r"memory \(MB\) \| allocated: (?P<_now>[\d.]+) \| max allocated: (?P<allocated_mib>[\d.]+)"
            r" \| reserved: (?P<reserved_mib>[\d.]+)"
        ),
        cause="fragmented",
        remedies=("expandable_segments", "empty_cache"),
        source="Megatron-LM megatron/training/utils.py report_memory",
        examples=(
            "[Rank 0] (after 10 iterations) memory (MB) | allocated: 10240.0 | max allocated: 20480.5 | "
            "reserved: 41984.0 | max reserved: 41984.0",
        ),
    ),
)
