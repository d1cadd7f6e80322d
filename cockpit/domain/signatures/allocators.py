"""Memory errors of the other allocators: JAX, TensorFlow, llama.cpp, TensorRT-LLM, ONNX, Paddle, bitsandbytes."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

ALLOCATORS: Final = (
    Signature(
        id="jax-hbm",
        family="gpu_oom",
        literals=("Ran out of memory in memory space",),
        pattern=(
            r"Ran out of memory in memory space hbm\. Used (?P<in_use_mib>[\d.]+[KMGT]) of"
            r" (?P<total_mib>[\d.]+[KMGT]) hbm\. Exceeded hbm capacity by (?P<_over>[\d.]+[KMGT])"
        ),
        cause="xla_too_big",
        remedies=("shard", "remat", "smaller_batch"),
        source="openxla/xla (compile-time)",
        examples=(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space "
            "hbm. Used 19.40G of 15.48G hbm. Exceeded hbm capacity by 3.92G.",
        ),
    ),
    Signature(
        id="jax-oom",
        family="gpu_oom",
        literals=("Out of memory while trying", "Out of memory allocating"),
        pattern=(
            r"(?:XlaRuntimeError|JaxRuntimeError|RuntimeError|ValueError): (?:RESOURCE_EXHAUSTED|"
            r"Resource exhausted): Out of memory (?:while trying to allocate|allocating)"
            r" (?P<tried_mib>[\d.]+ ?(?:bytes|[KMGT]iB))"
        ),
        cause="xla_pool",
        remedies=("smaller_batch", "remat", "xla_fraction"),
        source="openxla/xla pjrt + bfc_allocator",
        examples=(
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while "
            "trying to allocate 5368709120 bytes.",
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
            "allocate 3.50GiB.",
        ),
    ),
    Signature(
        id="tf-oom",
        family="gpu_oom",
        literals=("OOM when allocating tensor",),
        pattern=(
            r"OOM when allocating tensor with shape\[(?P<_shape>[\d,]*)\] and type (?P<_dtype>\w+) on"
            r" (?P<_dev>\S+)(?: by allocator (?P<_alloc>\S+))?"
        ),
        cause="too_big",
        remedies=("smaller_batch", "tf_growth"),
        source="tensorflow core/framework + bfc_allocator",
        examples=(
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating "
            "tensor with shape[128,56,56,256] and type float on "
            "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        ),
    ),
    Signature(
        id="tf-bfc-fatal",
        family="gpu_oom",
        literals=("requested by op",),
        pattern=(
            r"Allocator \((?P<_alloc>[\w:]+)\) ran out of memory trying to allocate"
            r" (?P<tried_mib>[\d.]+[KMGT]iB)(?: \(rounded to \d+\))? ?requested by op (?P<_op>.+)"
        ),
        cause="too_big",
        remedies=("smaller_batch", "tf_growth"),
        any_level=True,
        source="xla/tsl/framework/bfc_allocator.cc",
        examples=(
            "2026-02-03 09:15:22.118203: W external/xla/xla/tsl/framework/bfc_allocator.cc:497] "
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate 6.25GiB (rounded to "
            "6710886400)requested by op gradients/conv5/Conv2DBackpropInput",
        ),
    ),
    Signature(
        id="trtllm-oom",
        family="gpu_oom",
        literals=("[TensorRT-LLM][ERROR] CUDA runtime error",),
        pattern=(
            r"\[TensorRT-LLM\]\[ERROR\] CUDA runtime error in (?P<_call>.+?): out of memory"
            r" \((?P<_file>\S+)\)"
        ),
        cause="kv_took_all",
        remedies=("trt_fraction", "fewer_requests", "shorter_model_len"),
        source="TensorRT-LLM cpp/tensorrt_llm/runtime/tllmBuffers.h",
        examples=(
            "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, "
            "mCudaStream->get()): out of memory "
            "(/src/tensorrt_llm/cpp/tensorrt_llm/runtime/tllmBuffers.h:112)",
        ),
    ),
    Signature(
        id="bnb-oom",
        family="gpu_oom",
        literals=("Error out of memory at line",),
        pattern=(
            r"Error (?P<_what>out of memory|no kernel image is available for execution on the device)"
            r" at line (?P<_line>\d+) in file (?P<_file>\S+)"
        ),
        cause="too_big",
        remedies=("lean_optimizer", "smaller_batch"),
        source="bitsandbytes csrc/compat.cuh",
        examples=("Error out of memory at line 517 in file /src/csrc/pythonInterface.c",),
    ),
    Signature(
        id="onnx-oom",
        family="gpu_oom",
        literals=(
            "Failed to allocate memory for requested buffer of size",
            "CUDA failure 2: out of memory",
        ),
        pattern=(
            r"Failed to allocate memory for requested buffer of size (?P<tried_mib>\d+)|CUDA failure"
            r" 2: out of memory ; GPU=(?P<gpu_index>\d+)"
        ),
        cause="ort_arena",
        remedies=("smaller_batch", "ort_limit"),
        source="onnxruntime core/framework/bfc_arena.cc, providers/cuda/cuda_call.cc",
        examples=(
            "2026-03-01 10:00:00.123 [E:onnxruntime:, sequential_executor.cc:516 ExecuteKernel] "
            "Non-zero status code returned while running Conv node. Status Message: "
            "bfc_arena.cc:376 Available memory is smaller than requested. Failed to allocate "
            "memory for requested buffer of size 1073741824",
            "onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException: cuda_call.cc:129 CUDA "
            "failure 2: out of memory ; GPU=0 ; hostname=gpu7",
        ),
    ),
    Signature(
        id="paddle-oom",
        family="gpu_oom",
        literals=("Out of memory error on GPU",),
        pattern=(
            r"Out of memory error on GPU (?P<gpu_index>\d+)\. Cannot allocate"
            r" (?P<tried_mib>[\d.]+[KMGT]?B) memory on GPU \d+, (?P<allocated_mib>[\d.]+[KMGT]?B)"
            r" memory has been allocated and available memory is only (?P<free_mib>[\d.]+[KMGT]?B)"
        ),
        cause="too_big",
        remedies=(
            "smaller_batch",
            "gradient_checkpointing",
            "shorter_sequences",
            "lean_optimizer",
            "shard",
        ),
        source="paddle/phi/core/memory/allocation/cuda_allocator.cc",
        examples=(
            "ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 1.500000GB "
            "memory on GPU 0, 22.870000GB memory has been allocated and available memory is only "
            "801.125000MB.",
        ),
    ),
    Signature(
        id="trtllm-kvsmall",
        family="kv_cache",
        literals=("must be large enough to process at least 1 sequence to completion",),
        pattern=(
            r"maxTokensInPagedKvCache(?: \((?P<tokens>\d+)\))? must be large enough to process at"
            r" least 1 sequence to completion"
        ),
        cause="kv_one_request",
        remedies=("shorter_model_len", "kv_fp8", "trt_fraction"),
        source="TensorRT-LLM batch_manager",
        examples=(
            "[TensorRT-LLM][ERROR] maxTokensInPagedKvCache (8192) must be large enough to "
            "process at least 1 sequence to completion (i.e. must be larger than beam_width * "
            "tokensPerBlock * maxBlocksPerSeq)",
        ),
    ),
    Signature(
        id="triton-oor",
        family="crash",
        severity="warning",
        role="tail",
        literals=("out of resource:",),
        pattern=(
            r"(?:OutOfResources|OutOfMemoryError): out of resource: (?P<_what>[\w ]+?),? Required:"
            r" (?P<_need>\d+),? Hardware limit: ?(?P<_limit>\d+)"
        ),
        cause="kernel_limit",
        remedies=("other_block_config", "other_attention"),
        source="triton python/triton/runtime/errors.py, inductor",
        examples=(
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
            "147456, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
            "OutOfMemoryError: out of resource: triton_tem_fused_0 Required: 147456 Hardware "
            "limit:101376 Reducing block sizes or `num_stages` may help.",
        ),
    ),
    Signature(
        id="bnb-cpu",
        family="env",
        literals=(
            "Attempted to use bitsandbytes native library functionality but it's not available",
        ),
        pattern=(
            r"Attempted to use bitsandbytes native library functionality but it's not available"
        ),
        cause="bnb_no_binary",
        remedies=("reinstall_bnb",),
        source="bitsandbytes cextension.py",
        examples=(
            "RuntimeError: Attempted to use bitsandbytes native library functionality but it's "
            "not available.",
        ),
    ),
    Signature(
        id="cupy-oom",
        family="gpu_oom",
        literals=("Out of memory allocating",),
        pattern=(
            r"cupy\S*OutOfMemoryError: Out of memory allocating (?P<tried_mib>[\d,]+ bytes)"
            r"(?: \(allocated so far: (?P<allocated_mib>[\d,]+ bytes))?"
        ),
        cause="too_big",
        remedies=("smaller_batch", "headroom"),
        source="cupy/cuda/memory.pyx",
        examples=(
            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: "
            "21,474,836,480 bytes).",
        ),
    ),
    Signature(
        id="cuda-api-oom",
        family="gpu_oom",
        literals=(
            "CUDA_ERROR_OUT_OF_MEMORY",
            "cudaErrorMemoryAllocation",
            "cuMemAlloc failed: out of memory",
        ),
        pattern=(
            r"(?:Error|error|what\(\)): .{0,200}(?:CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
            r"|cuMemAlloc failed: out of memory)"
        ),
        cause="outside_allocator",
        remedies=("look_at_card", "smaller_batch"),
        source="numba, RMM, PyCUDA: the CUDA driver's own code",
        examples=(
            "numba.cuda.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
            "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /rmm/cuda.hpp:62: "
            "cudaErrorMemoryAllocation out of memory",
        ),
    ),
)
