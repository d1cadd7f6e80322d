"""One table a kind of profile, named as the kind; keys are spelled as the tool spells its options, with _ for -."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cockpit.config.fields import (
    Args,
    Argv,
    Count,
    Filled,
    Flag,
    Fraction,
    Length,
    Number,
    OneOrMany,
    Port,
    Positive,
    ProcessCount,
    Real,
    Script,
    Table,
    Text,
    Whole,
)

LOOPBACK = "127.0.0.1"


class CommandTable(Table):
    """Any program: `argv` without a shell, or `script` for /bin/sh."""

    argv: Argv | None = Field(default=None, description="The program and its arguments; no shell")
    script: Script | None = Field(default=None, description="Text for /bin/sh -c")
    args: Args = Field(default=(), description='More arguments; "$@" in a script')


class _Training(Table):
    """A launcher that starts a script or module in several processes."""

    script: Filled | None = Field(default=None, description="The script, relative to cwd")
    module: Filled | None = Field(
        default=None, description="A module instead of a script (python -m)"
    )
    args: Args = Field(default=(), description="Arguments of the script")
    launcher_args: Args = Field(default=(), description="More options of the launcher itself")


class TorchrunTable(_Training):
    nproc_per_node: ProcessCount | None = Field(
        default=None,
        description="Processes on each host; the number of reserved cards when not said",
    )
    max_restarts: Count | None = None
    rdzv_backend: Filled | None = None
    log_dir: Filled | None = None
    tee: Filled | None = None


class AccelerateTable(_Training):
    num_processes: Positive | None = Field(
        default=None, description="Over all hosts; the number of reserved cards when not said"
    )
    mixed_precision: Literal["no", "fp16", "bf16", "fp8"] | None = None
    config_file: Filled | None = None
    multi_gpu: Flag | None = None
    use_deepspeed: Flag = False
    deepspeed_config_file: Filled | None = None
    zero_stage: Count | None = None
    use_fsdp: Flag = False
    gradient_accumulation_steps: Positive | None = None
    dynamo_backend: Filled | None = None


class DeepspeedTable(_Training):
    num_gpus: Positive | None = None
    include: Filled | None = None
    enable_each_rank_log: Filled | None = None


class MegatronTable(_Training):
    """pretrain_gpt.py and its like, started by torchrun."""

    nproc_per_node: ProcessCount | None = None
    tensor_model_parallel_size: Positive | None = None
    pipeline_model_parallel_size: Positive | None = None
    context_parallel_size: Positive | None = None
    micro_batch_size: Positive | None = None
    global_batch_size: Positive | None = None
    seq_length: Positive | None = None
    train_iters: Positive | None = None
    save: Filled | None = None
    load: Filled | None = None
    save_interval: Positive | None = None


class ColossalaiTable(_Training):
    nproc_per_node: Positive | None = None


class PaddleTable(_Training):
    nproc_per_node: Positive | None = None
    log_dir: Filled | None = None
    max_restart: Count | None = None


class YoloTable(Table):
    """Ultralytics: `yolo TASK MODE key=value …`."""

    task: Literal["detect", "segment", "semantic", "depth", "classify", "pose", "obb"] | None = None
    mode: Literal["train", "val", "predict", "export", "track", "benchmark"] = "train"
    model: Filled | None = None
    data: Filled | None = None
    epochs: Positive | None = None
    batch: Real | None = None
    imgsz: Positive | None = None
    workers: Count | None = None
    patience: Count | None = None
    project: Filled | None = None
    run_name: Filled | None = Field(default=None, alias="name")
    resume: Flag | None = None
    amp: Flag | None = None
    cache: Flag | None = None
    args: Args = Field(default=(), description='More, as "key=value"')


class ServerTable(Table):
    """A server. Its keys may be written with - as on the command line; the reader turns them into _."""

    args: Args = Field(default=(), description="More options, as on the command line")


class VllmTable(ServerTable):
    """`vllm serve MODEL`. An API key is a secret: put VLLM_API_KEY in env.secrets."""

    model: Filled
    host: Filled = LOOPBACK
    port: Port = 8000
    served_model_name: OneOrMany | None = None
    tensor_parallel_size: Positive | None = Field(
        default=None, description="The number of reserved cards when no parallel size is said"
    )
    pipeline_parallel_size: Positive | None = None
    data_parallel_size: Positive | None = None
    enable_expert_parallel: Flag | None = None
    distributed_executor_backend: Filled | None = None
    dtype: Filled | None = None
    quantization: Filled | None = None
    kv_cache_dtype: Filled | None = None
    load_format: Filled | None = None
    gpu_memory_utilization: Fraction | None = None
    kv_cache_memory_bytes: Length | None = None
    max_model_len: Length | None = None
    max_num_seqs: Positive | None = None
    max_num_batched_tokens: Length | None = None
    block_size: Positive | None = None
    cpu_offload_gb: Number | None = None
    swap_space: Number | None = None
    enforce_eager: Flag | None = None
    enable_prefix_caching: Flag | None = None
    enable_chunked_prefill: Flag | None = None
    async_scheduling: Flag | None = None
    disable_custom_all_reduce: Flag | None = None
    trust_remote_code: Flag | None = None
    tokenizer: Filled | None = None
    tokenizer_mode: Filled | None = None
    revision: Filled | None = None
    download_dir: Filled | None = None
    seed: Whole | None = None
    chat_template: Filled | None = None
    generation_config: Filled | None = None
    override_generation_config: Text | None = None
    hf_overrides: Text | None = None
    limit_mm_per_prompt: Text | None = None
    speculative_config: Text | None = None
    compilation_config: Text | None = None
    enable_auto_tool_choice: Flag | None = None
    tool_call_parser: Filled | None = None
    reasoning_parser: Filled | None = None
    enable_lora: Flag | None = None
    lora_modules: OneOrMany | None = None
    max_loras: Positive | None = None
    max_lora_rank: Positive | None = None
    enable_log_requests: Flag | None = None
    disable_log_stats: Flag | None = None
    uvicorn_log_level: Filled | None = None
    api_server_count: Positive | None = None
    shutdown_timeout: Count | None = None
    config: Filled | None = None


class SglangTable(ServerTable):
    """`python3 -m sglang.launch_server --model-path MODEL`."""

    model: Filled
    host: Filled = LOOPBACK
    port: Port = 30000
    served_model_name: Filled | None = None
    tp_size: Positive | None = None
    dp_size: Positive | None = None
    pp_size: Positive | None = None
    ep_size: Positive | None = None
    dtype: Filled | None = None
    quantization: Filled | None = None
    kv_cache_dtype: Filled | None = None
    mem_fraction_static: Fraction | None = None
    context_length: Positive | None = None
    max_running_requests: Positive | None = None
    max_total_tokens: Positive | None = None
    chunked_prefill_size: Whole | None = None
    attention_backend: Filled | None = None
    disable_cuda_graph: Flag | None = None
    disable_radix_cache: Flag | None = None
    trust_remote_code: Flag | None = None
    enable_metrics: Flag = True
    log_level: Filled | None = None
    watchdog_timeout: Number | None = None
    tool_call_parser: Filled | None = None
    reasoning_parser: Filled | None = None
    chat_template: Filled | None = None


class TgiTable(ServerTable):
    """`text-generation-launcher --model-id MODEL`."""

    model: Filled
    host: Filled = LOOPBACK
    port: Port = 3000
    num_shard: Positive | None = None
    quantize: Filled | None = None
    dtype: Filled | None = None
    max_input_tokens: Positive | None = None
    max_total_tokens: Positive | None = None
    max_batch_prefill_tokens: Positive | None = None
    max_concurrent_requests: Positive | None = None
    cuda_memory_fraction: Fraction | None = None


class TrtllmTable(ServerTable):
    """`trtllm-serve MODEL`; its options have underscores."""

    model: Filled
    host: Filled = LOOPBACK
    port: Port = 8000
    backend: Filled | None = None
    tp_size: Positive | None = None
    pp_size: Positive | None = None
    ep_size: Positive | None = None
    max_batch_size: Positive | None = None
    max_num_tokens: Positive | None = None
    max_seq_len: Positive | None = None
    free_gpu_memory_fraction: Fraction | None = None
    trust_remote_code: Flag | None = None
    config: Filled | None = None


class OllamaTable(ServerTable):
    """`ollama serve`: all of its options are variables OLLAMA_…"""

    host: Filled = LOOPBACK
    port: Port = 11434
    models: Filled | None = Field(default=None, description="Folder of the models on the host")
    keep_alive: Filled | None = None
    num_parallel: Positive | None = None
    max_loaded_models: Count | None = None
    context_length: Positive | None = None
    flash_attention: Flag | None = None
    kv_cache_type: Filled | None = None


KIND_TABLES: dict[str, type[Table]] = {
    "command": CommandTable,
    "torchrun": TorchrunTable,
    "accelerate": AccelerateTable,
    "deepspeed": DeepspeedTable,
    "megatron": MegatronTable,
    "colossalai": ColossalaiTable,
    "paddle": PaddleTable,
    "yolo": YoloTable,
    "vllm": VllmTable,
    "sglang": SglangTable,
    "tgi": TgiTable,
    "trtllm": TrtllmTable,
    "ollama": OllamaTable,
}
SERVER_KINDS = frozenset(
    kind for kind, table in KIND_TABLES.items() if issubclass(table, ServerTable)
)
