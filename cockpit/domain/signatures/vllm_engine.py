"""vLLM: engines and workers that die or stop answering."""

from __future__ import annotations

from typing import Final

from cockpit.domain.signatures.model import Signature

VLLM_ENGINE: Final = (
    Signature(
        id="vllm-core-init",
        family="crash",
        role="wrapper",
        literals=(
            "Engine core initialization failed. See root cause above.",
            "Engine process failed to start",
        ),
        pattern=(
            r"Engine process failed to start|Engine core initialization failed\. See root cause above\."
            r"(?: Failed core proc\(s\): (?P<_procs>\{.*?\}))?"
        ),
        cause="engine_start",
        remedies=("read_first_error",),
        source="vllm v1/engine/utils.py (core_client.py in 0.8)",
        examples=(
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
            "proc(s): {'EngineCore_DP0': -9}",
        ),
    ),
    Signature(
        id="vllm-core-start",
        family="crash",
        role="wrapper",
        literals=("EngineCore failed to start.",),
        pattern=(r"EngineCore failed to start\."),
        cause="engine_start",
        remedies=("read_first_error",),
        source="vllm v1/engine/core.py",
        examples=(
            "(EngineCore_DP0 pid=7711) ERROR 06-01 08:00:13 [core.py:708] EngineCore failed to "
            "start.",
        ),
    ),
    Signature(
        id="vllm-core-fatal",
        family="crash",
        role="wrapper",
        literals=("EngineCore encountered a fatal error.",),
        pattern=(r"EngineCore encountered a fatal error\."),
        cause="engine_died",
        remedies=("read_first_error", "restart_server"),
        source="vllm v1/engine/core.py",
        examples=(
            "(EngineCore pid=7711) ERROR 06-01 09:12:55 [core.py:1138] EngineCore encountered a "
            "fatal error.",
        ),
    ),
    Signature(
        id="vllm-dead",
        family="crash",
        role="fallout",
        literals=("EngineCore encountered an issue. See stack trace (above) for the root cause.",),
        pattern=(r"EngineDeadError: EngineCore encountered an issue"),
        cause="engine_died",
        remedies=("read_first_error", "restart_server"),
        source="vllm v1/engine/exceptions.py",
        examples=(
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See "
            "stack trace (above) for the root cause.",
        ),
    ),
    Signature(
        id="vllm-dead-v0",
        family="crash",
        role="fallout",
        literals=("Background loop has errored already.", "Engine loop is not running."),
        pattern=(
            r"(?:AsyncEngineDeadError: Background loop (?:has errored already|is stopped)|"
            r"MQEngineDeadError: Engine loop is not running)"
        ),
        cause="engine_died",
        remedies=("read_first_error", "restart_server"),
        source="vllm engine/async_llm_engine.py, multiprocessing",
        examples=(
            "vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop has errored "
            "already.",
        ),
    ),
    Signature(
        id="vllm-worker-died",
        family="crash",
        role="wrapper",
        literals=("died unexpectedly",),
        pattern=(
            r"(?P<_what>Worker proc|Engine core proc(?:ess)?|RayWorkerProc) (?P<_name>\S+) died"
            r" unexpectedly(?: \(exit code: (?P<exitcode>-?\d+)\))?"
        ),
        cause="worker_died",
        remedies=("check_kernel_log", "read_first_error"),
        source="vllm v1/executor/multiproc_executor.py, ray_executor_v2.py",
        examples=(
            "ERROR 06-01 09:13:01 [multiproc_executor.py:381] Worker proc VllmWorker-2 died "
            "unexpectedly (exit code: -9), shutting down executor.",
            "ERROR 06-01 09:13:01 [core_client.py:564] Engine core proc EngineCore_DP0 died "
            "unexpectedly, shutting down client.",
        ),
    ),
    Signature(
        id="vllm-proc-rc",
        family="crash",
        role="wrapper",
        literals=("died with exit code",),
        pattern=(
            r"Process (?P<_name>\S+) \(PID: (?P<pid>\d+)\) died with exit code (?P<exitcode>-?\d+)"
        ),
        cause="worker_died",
        remedies=("check_kernel_log", "read_first_error"),
        source="vllm v1/utils.py",
        examples=("RuntimeError: Process ApiServer_2 (PID: 4411) died with exit code -9",),
    ),
    Signature(
        id="vllm-worker-exc",
        family="crash",
        role="wrapper",
        literals=("WorkerProc hit an exception.", "WorkerProc failed to start."),
        pattern=(r"(?:Ray)?WorkerProc (?:hit an exception|failed to start|failed)[.:]"),
        cause="worker_exception",
        remedies=("read_first_error",),
        source="vllm v1/executor/multiproc_executor.py",
        examples=(
            "(Worker_TP1 pid=5150) ERROR 06-01 09:12:55 [multiproc_executor.py:671] WorkerProc "
            "hit an exception.",
        ),
    ),
    Signature(
        id="vllm-rpc-timeout",
        family="hang",
        role="symptom",
        literals=("RPC call to",),
        pattern=(r"RPC call to (?P<_method>\w+) timed out\."),
        cause="worker_stuck",
        remedies=("check_xid", "py_spy"),
        source="vllm v1/executor/multiproc_executor.py",
        examples=("TimeoutError: RPC call to sample_tokens timed out.",),
    ),
    Signature(
        id="vllm-shm-wait",
        family="hang",
        severity="warning",
        role="count",
        literals=("No available shared memory broadcast block found in",),
        pattern=(r"No available shared memory broadcast block found ?in (?P<_s>\d+) seconds?\."),
        cause="worker_stuck",
        remedies=("check_xid", "py_spy"),
        any_level=True,
        at_least=3,
        source="vllm distributed/device_communicators/shm_broadcast.py",
        examples=(
            "(EngineCore pid=7711) INFO 06-01 09:14:00 [shm_broadcast.py:466] No available "
            "shared memory broadcast block found in 60 seconds. This typically happens when some "
            "processes are hanging or doing some time-consuming work (e.g. compilation, "
            "weight/kv cache quantization).",
        ),
    ),
    Signature(
        id="vllm-sleep",
        family="kv_cache",
        severity="notice",
        role="metric",
        literals=("Sleep mode freed",),
        pattern=(
            r"Sleep mode freed (?P<_freed>[\d.]+) GiB memory, (?P<_used>[\d.]+) GiB memory is still in"
            r" use\."
        ),
        cause="sleep_mode",
        source="vllm v1/worker/gpu_worker.py",
        examples=(
            "INFO 06-01 12:00:01 [gpu_worker.py:336] Sleep mode freed 61.40 GiB memory, 2.10 GiB "
            "memory is still in use.",
        ),
    ),
    Signature(
        id="vllm-sleep-grow",
        family="crash",
        severity="warning",
        literals=("Memory usage increased after sleeping.",),
        pattern=(r"Memory usage increased after sleeping\."),
        cause="sleep_grew",
        remedies=("isolate_card",),
        source="vllm v1/worker/gpu_worker.py",
        examples=("AssertionError: Memory usage increased after sleeping.",),
    ),
    Signature(
        id="vllm-api500",
        family="crash",
        severity="warning",
        role="count",
        literals=('HTTP/1.1" 50', 'HTTP/1.0" 50'),
        pattern=(r'"(?:POST|GET) (?P<path>/v1/\S+|/generate\S*) HTTP/1\.[01]" (?P<_code>50[0-9])'),
        cause="server_errors",
        remedies=("read_first_error",),
        any_level=True,
        at_least=3,
        source="uvicorn access log",
        examples=(
            'INFO:     10.0.0.7:51522 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server '
            "Error",
        ),
    ),
)
