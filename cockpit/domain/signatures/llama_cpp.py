"""llama.cpp and Ollama: buffers that do not fit."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

LLAMA_CPP: Final = (
    Signature(
        id="ggml-oom",
        family="gpu_oom",
        literals=("cudaMalloc failed: out of memory",),
        pattern=(
            r"(?P<_fn>\w+): allocating (?P<tried_mib>[\d.]+ MiB) on device (?P<gpu_index>\d+):"
            r" (?:cuda|hip|musa)Malloc failed: out of memory"
        ),
        cause="ggml_too_big",
        remedies=("fewer_gpu_layers", "smaller_context", "kv_quant", "smaller_quant"),
        source="ggml/src/ggml-cuda/ggml-cuda.cu",
        examples=(
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9216.00 MiB on device 0: "
            "cudaMalloc failed: out of memory",
        ),
    ),
    Signature(
        id="ggml-buffer",
        family="gpu_oom",
        literals=("buffer of size",),
        pattern=(
            r"(?P<_fn>ggml_gallocr_reserve_n(?:_impl)?|alloc_tensor_range): failed to allocate"
            r" (?P<_buf>\w+) buffer of size (?P<tried_mib>\d+)"
        ),
        cause="ggml_too_big",
        remedies=("smaller_context", "fewer_gpu_layers", "kv_quant"),
        source="ggml/src/ggml-alloc.c",
        examples=(
            "ggml_gallocr_reserve_n_impl: failed to allocate CUDA0 buffer of size 2483027968",
        ),
    ),
    Signature(
        id="ggml-cudaerr",
        family="gpu_oom",
        literals=("error: out of memory",),
        pattern=(
            r"(?:^|ollama\[\d+\]: |\| +)(?:ggml_cuda_error: )?(?:CUDA|ROCm) error: out of memory$"
        ),
        cause="ggml_too_big",
        remedies=("fewer_gpu_layers", "smaller_context", "kv_quant"),
        source="ggml-cuda.cu ggml_cuda_error",
        examples=("CUDA error: out of memory",),
    ),
    Signature(
        id="ollama-runner",
        family="gpu_oom",
        role="symptom",
        literals=("llama-server reported out-of-memory during startup",),
        pattern=(r"llama-server reported out-of-memory during startup"),
        cause="ggml_too_big",
        remedies=("smaller_context", "unload_models"),
        source="ollama llm/llama_server.go",
        examples=(
            "Error: llama-server reported out-of-memory during startup: cudaMalloc failed: out "
            "of memory",
        ),
    ),
    Signature(
        id="llama-kv",
        family="kv_cache",
        role="symptom",
        literals=(
            "failed to allocate buffer for kv cache",
            "failed to allocate compute pp buffers",
        ),
        pattern=(
            r"failed to allocate (?P<_what>buffer for kv cache|compute (?:pp|tg) buffers|compute"
            r" buffers)"
        ),
        cause="kv_context",
        remedies=("smaller_context", "kv_quant", "fewer_slots"),
        source="llama.cpp src/llama-context.cpp",
        examples=(
            "llama_init_from_model: failed to initialize the context: failed to allocate compute "
            "pp buffers",
        ),
    ),
    Signature(
        id="ollama-sysmem",
        family="host_oom",
        literals=("requires more system memory",),
        pattern=(
            r"model requires more system memory \((?P<needed_mib>[\d.]+ [KMG]iB)\) than is available"
            r" \((?P<available_mib>[\d.]+ [KMG]iB)\)"
        ),
        cause="model_needs_ram",
        remedies=("smaller_quant", "smaller_context", "raise_container_limit"),
        source="ollama server/llm",
        examples=(
            "Error: model requires more system memory (38.2 GiB) than is available (30.9 GiB)",
        ),
    ),
)
