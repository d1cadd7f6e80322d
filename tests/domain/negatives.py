"""Lines with alarming words that are no incident, and what at most may be said of them."""

from __future__ import annotations

from typing import Final

NEGATIVES: Final[tuple[tuple[str, str, str | None], ...]] = (
    (
        "h-accelerate",
        "RuntimeError caught: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a tota"
        "l capacity of 23.65 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this"
        " process has 22.55 GiB memory in use. Of the allocated memory 21.02 GiB is allocated "
        "by PyTorch, and 1.02 GiB is reserved by PyTorch but unallocated. -> retrying with bat"
        "ch_size=115",
        "recovered",
    ),
    (
        "h-lightning",
        "Batch size 64 failed, trying batch size 32",
        None,
    ),
    (
        "h-torch213",
        "[rank0]:[W812 16:00:28.64 CUDACachingAllocator.cpp:3933] memory allocation failed wit"
        "h OOM on device 0 while trying to allocate 20971520 bytes (free: 15794176, total: 150"
        "111977472).",
        None,
    ),
    (
        "h-bfc",
        "2026-02-03 09:15:22.118203: W external/xla/xla/tsl/framework/bfc_allocator.cc:310] Al"
        "locator (GPU_0_bfc) ran out of memory trying to allocate 2.25GiB with freed_by_count="
        "0. The caller indicates that this is not a failure, but this may mean that there coul"
        "d be performance gains if more memory were available.",
        None,
    ),
    (
        "h-tfdriver",
        "2025-07-31 20:22:32.901607: I tensorflow/stream_executor/cuda/cuda_driver.cc:763] fai"
        "led to allocate 343.34M (360015104 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out "
        "of memory",
        None,
    ),
    (
        "h-llamapp",
        "sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism",
        None,
    ),
    (
        "h-ollama",
        'time=2026-08-21T10:00:00Z level=WARN source=sched.go:652 msg="llama-server load faile'
        'd; reducing automatic context and retrying once" error="llama-server reported out-of-'
        'memory"',
        None,
    ),
    (
        "h-ollama2",
        'time=2026-08-21T10:00:00Z level=INFO source=sched.go:551 msg="llama-server model pred'
        'icted to exceed available memory, evicting" model=qwen3:32b',
        None,
    ),
    (
        "h-sglretract",
        "[2026-05-01 10:00:00 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1"
        ", #new_token_ratio: 0.2120 -> 0.5000",
        None,
    ),
    (
        "h-sglold",
        "[2025-01-05 10:00:00 TP0] Decode out of memory happened. #retracted_reqs: 1, #new_tok"
        "en_ratio: 0.1900 -> 0.8531",
        None,
    ),
    (
        "h-vllmpreempt",
        "(EngineCore pid=7711) INFO 06-01 09:00:10 [loggers.py:257] Engine 000: Avg prompt thr"
        "oughput: 11.0 tokens/s, Avg generation throughput: 912.9 tokens/s, Running: 37 reqs, "
        "Waiting: 2 reqs, Preemptions: 1, GPU KV cache usage: 91.2%, Prefix cache hit rate: 12"
        ".4%",
        None,
    ),
    (
        "h-vllmwait",
        "(EngineCore pid=7711) INFO 06-01 08:00:13 [shm_broadcast.py:466] No available shared "
        "memory broadcast block found in 60 seconds. This typically happens when some processe"
        "s are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache qu"
        "antization).",
        None,
    ),
    (
        "h-scaler",
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to "
        "32768",
        None,
    ),
    (
        "h-triton",
        "OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101"
        "376. Reducing block sizes or `num_stages` may help. (skipping config BLOCK_M=128)",
        None,
    ),
    (
        "h-inductor",
        "W0630 12:00:00.1 torch/_inductor/select_algorithm.py:2431] Runtime error during autot"
        "uning: No valid triton configs. OutOfMemoryError: out of resource: triton_tem_fused_0"
        " Required: 147456 Hardware limit:101376",
        None,
    ),
    (
        "h-nccl0",
        "gpu7:1201:1201 [0] NCCL INFO cuMem host allocations do not appear to be working; fall"
        "ing back to a /dev/shm/ based implementation.",
        None,
    ),
    (
        "h-dlterm",
        "RuntimeError: DataLoader worker (pid 40112) is killed by signal: Terminated. ",
        None,
    ),
    (
        "h-sigint",
        "[rank0]: KeyboardInterrupt",
        None,
    ),
    (
        "h-elastic-term",
        "W1130 12:11:02.1 1180 torch/distributed/elastic/agent/server/api.py:753] Received Sig"
        "nals.SIGTERM death signal, shutting down workers",
        None,
    ),
    (
        "h-closing",
        "W1130 12:11:02.2 1180 torch/distributed/elastic/multiprocessing/api.py:1029] Sending "
        "process 31878 closing signal SIGTERM",
        None,
    ),
    (
        "h-xid43",
        "[77.1] NVRM: Xid (PCI:0000:ca:00): 43, pid=20111, name=python3, Ch 00000010",
        None,
    ),
    (
        "h-xid45",
        "[78.1] NVRM: Xid (PCI:0000:ca:00): 45, pid=20111, name=python3, Ch 00000012",
        None,
    ),
    (
        "h-xid63",
        "[79.1] NVRM: Xid (PCI:0000:ca:00): 63, pid=991, name=nvidia-persiste, Row Remapper: N"
        "ew row (0x00000000001a2b3c) marked for remapping, reset gpu to activate.",
        "notice",
    ),
    (
        "h-aer",
        "[401.9] pcieport 0000:64:01.0: PCIe Bus Error: severity=Corrected, type=Physical Laye"
        "r, (Receiver ID)",
        None,
    ),
    (
        "h-hfretry",
        "Error while downloading from https://cas-bridge.xethub.hf.co/x: HTTPSConnectionPool(h"
        "ost='cas-bridge.xethub.hf.co', port=443): Read timed out.",
        None,
    ),
    (
        "h-ray0",
        "(raylet) node_manager.cc:3041: 0 Workers (tasks / actors) killed due to memory pressu"
        "re (OOM), 1 Workers crashed due to other reasons at node (ID: ab12, IP: 10.0.0.4) ove"
        "r the last time period.",
        None,
    ),
    (
        "h-oomconst",
        "[88121.400321] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_s"
        "core_adj=0",
        None,
    ),
    (
        "h-reaper",
        "[88121.500000] oom_reaper: reaped process 31877 (python3), now anon-rss:0kB, file-rss"
        ":0kB, shmem-rss:8388608kB",
        None,
    ),
    (
        "h-cgzero",
        "oom_kill 0",
        None,
    ),
    (
        "e-config",
        "alloc_conf: expandable_segments:True  # avoids CUDA out of memory from fragmentation",
        None,
    ),
    (
        "e-env",
        "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8,max_split_size_mb:256",
        None,
    ),
    (
        "e-args",
        "INFO 06-01 08:00:00 [utils.py:233] non-default args: {'model': 'x', 'gpu_memory_utili"
        "zation': 0.95, 'max_model_len': 32768}",
        None,
    ),
    (
        "e-bar",
        "rendering room 12:  40%|####      | 4/10 [00:12<00:18,  3.01s/it]",
        None,
    ),
    (
        "e-bloom",
        "Loading checkpoint shards for bigscience/bloom-7b1: 100%|##########| 2/2",
        None,
    ),
    (
        "e-banana",
        "label=banana prob=0.98",
        None,
    ),
    (
        "e-nancy",
        "user=Nancy finished task finance-analysis",
        None,
    ),
    (
        "e-nan0",
        "step 400 | loss 2.113 | nan_count=0 | inf_count=0 | grad_norm 0.81",
        None,
    ),
    (
        "e-naniter",
        "number of skipped iterations:   0 | number of nan iterations:   0 |",
        None,
    ),
    (
        "e-nanval",
        "val_metrics: {'bleu': nan, 'loss': 1.92}",
        None,
    ),
    (
        "e-nanmean",
        "sklearn/metrics/_classification.py:1731: UndefinedMetricWarning: Precision is ill-def"
        "ined and being set to nan in labels with no predicted samples.",
        None,
    ),
    (
        "e-checknan",
        "[INFO] --check-for-nan-in-loss-and-grad is enabled",
        None,
    ),
    (
        "e-nanfile",
        "Saved ./ckpt/nan_debug/step_100.pt",
        None,
    ),
    (
        "e-adj",
        "echo -1000 > /proc/self/oom_score_adj",
        None,
    ),
    (
        "e-systemd",
        "Nov 30 11:58:01 gpu7 systemd[1]: Starting systemd-oomd.service - Userspace Out-Of-Mem"
        "ory (OOM) Killer...",
        None,
    ),
    (
        "e-earlyoom",
        "earlyoom v1.7: mem total: 257671 MiB, sending SIGTERM when mem <= 10.00% and swap <= "
        "10.00%",
        None,
    ),
    (
        "e-swap",
        "Killed stale tmux session train-old",
        None,
    ),
    (
        "e-killgame",
        "Agent killed 3 enemies in episode 411 (reward=12.0)",
        None,
    ),
    (
        "e-kill2",
        "Process Killed by user request: cleanup of job 881",
        None,
    ),
    (
        "e-leaky",
        "layer 4: LeakyReLU(negative_slope=0.01)",
        None,
    ),
    (
        "e-leak2",
        "train/test leakage check passed: 0 duplicates",
        None,
    ),
    (
        "e-semleak",
        "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tr"
        "acker: There appear to be 12 leaked semaphore objects to clean up at shutdown",
        None,
    ),
    (
        "e-leaksan",
        "Direct leak of 24 byte(s) in 1 object(s) allocated from:",
        None,
    ),
    (
        "e-vllmleakwarn",
        "WARNING 06-01 08:00:00 [serving_responses.py:149] `VLLM_ENABLE_RESPONSES_API_STORE` i"
        "s enabled. This may cause a memory leak since we never remove responses from the stor"
        "e.",
        None,
    ),
    (
        "e-vllmprompt",
        "INFO 06-01 09:00:00 [logger.py:41] Received request chatcmpl-1: prompt: 'Explain this"
        " error: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0"
        " has a total capacity of 23.65 GiB of which 1.10 GiB is free. Process 1 has 2.00 GiB "
        "memory in use. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.02 Gi"
        "B is reserved by PyTorch but unallocated', params: SamplingParams(n=1)",
        None,
    ),
    (
        "e-sglprompt",
        "[2026-05-01 10:00:00] Receive: obj=GenerateReqInput(text='why do I get NCCL error: un"
        "handled system error? Watchdog caught collective operation timeout', sampling_params="
        "{})",
        None,
    ),
    (
        "e-jsonl",
        '{"role": "user", "content": "RuntimeError: CUDA out of memory. Tried to allocate 384.'
        "00 MiB (GPU 0; 23.70 GiB total capacity; 20.11 GiB already allocated; 210.56 MiB free"
        '; 22.40 GiB reserved in total by PyTorch)"}',
        None,
    ),
    (
        "e-decoded",
        'Sample 3 prediction: "NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus."',
        None,
    ),
    (
        "e-code1",
        '    raise RuntimeError("CUDA out of memory occurred when warming up sampler with "',
        None,
    ),
    (
        "e-code2",
        '    if "out of memory" in str(e):',
        None,
    ),
    (
        "e-code3",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/cuda/memory.py", line 224, in em'
        "pty_cache",
        None,
    ),
    (
        "e-code4",
        "    except torch.cuda.OutOfMemoryError as e:",
        None,
    ),
    (
        "e-doc",
        '    """Retries on `CUDA out of memory. Tried to allocate` errors."""',
        None,
    ),
    (
        "e-test",
        "tests/test_oom.py::test_oom_recovery_restores_batch_size PASSED",
        None,
    ),
    (
        "e-test2",
        "FAILED tests/test_alloc.py::test_reports - AssertionError: 'CUDA out of memory' not in ''",
        None,
    ),
    (
        "e-help",
        "  --oom-retries N       how often to halve the batch after CUDA out of memory (defaul"
        "t: 3)",
        None,
    ),
    (
        "e-wandb",
        "wandb:             train/oom_events 0",
        None,
    ),
    (
        "e-prom",
        "# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.",
        None,
    ),
    (
        "e-grep",
        "$ dmesg | grep -i 'out of memory: killed process'",
        None,
    ),
    (
        "e-xtrace",
        "+ grep -c 'NVRM: Xid' /var/log/kern.log",
        None,
    ),
    (
        "e-git",
        "commit 91ab2: fix CUDA out of memory in eval loop",
        None,
    ),
    (
        "e-pip",
        "Downloading torch_memory_saver-0.0.8-cp39-abi3-manylinux2014_x86_64.whl (14 kB)",
        None,
    ),
    (
        "e-warnpin",
        "UserWarning: 'pin_memory' argument is set as true but no accelerator is found, then d"
        "evice pinned memory won't be used.",
        None,
    ),
    (
        "e-fork",
        "huggingface/tokenizers: The current process just got forked, after parallelism has al"
        "ready been used. Disabling parallelism to avoid deadlocks...",
        None,
    ),
    (
        "e-toolong",
        "ValueError: This model's maximum context length is 8192 tokens. However, your request"
        " has 9120 input tokens.",
        None,
    ),
    (
        "e-400",
        'INFO:     10.0.0.7:51522 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
        None,
    ),
    (
        "e-health503",
        'INFO:     10.0.0.9:40100 - "GET /health HTTP/1.1" 503 Service Unavailable',
        None,
    ),
    (
        "e-ncclenv",
        "[W1130 ProcessGroupNCCL.cpp:1250] Warning: WARNING: destroy_process_group() was not c"
        "alled before program exit, which can leak resources.",
        None,
    ),
    (
        "e-ncclver",
        "gpu7:1201:1201 [0] NCCL INFO NCCL version 2.27.5+cuda12.9",
        None,
    ),
    (
        "e-monitor",
        "[rank0]:[I1130 ProcessGroupNCCL.cpp:971] [PG ID 0 PG GUID 0 Rank 0] HeartbeatMonitor "
        "environments: TORCH_NCCL_ENABLE_MONITORING (Whether to kill program when no watchdog "
        "heartbeat detected): 1",
        None,
    ),
    (
        "e-clean",
        "[rank0]:[I1130 ProcessGroupNCCL.cpp:2101] main process destroyed cuda before watchdog"
        " loop exited, terminating watchdog.",
        None,
    ),
    (
        "e-ecc",
        "ECC Errors\n    Volatile\n        SRAM Uncorrectable Parity : 0",
        None,
    ),
    (
        "e-nodev",
        "ls: cannot access '/dev/nvidia9': No such file or directory",
        None,
    ),
    (
        "e-df",
        "tmpfs            64M   12M   53M  19% /dev/shm",
        None,
    ),
    (
        "e-nospaceword",
        "Notice: leaves no space left on device unless --keep 3 is used",
        None,
    ),
    (
        "e-timelimit",
        "Time limit for evaluation: 600 s; killed=0 timeouts=0",
        None,
    ),
    (
        "e-oomtag",
        "tags: ['oom', 'gpu', 'triage']",
        None,
    ),
)
