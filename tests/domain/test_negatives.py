from __future__ import annotations

import pytest

from cockpit.domain.incidents import Finding
from cockpit.domain.scan import Scanner
from tests.domain.negatives import NEGATIVES

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 23.65 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 22.55 GiB "
    "memory in use. Of the allocated memory 21.90 GiB is allocated by PyTorch, and 120.00 MiB is "
    "reserved by PyTorch but unallocated."
)


def scan(*lines: str) -> list[Finding]:
    scanner = Scanner(settled=True)
    found = scanner.feed("".join(f"{line}\n" for line in lines).encode())
    return found + scanner.finish()


@pytest.mark.parametrize(("name", "line", "said"), NEGATIVES, ids=[row[0] for row in NEGATIVES])
def test_look_alikes_stay_silent(name: str, line: str, said: str | None) -> None:
    found = scan("epoch 1 begins", line, "step 10 | loss 2.1", "step 11 | loss 2.0")
    if said is None:
        assert found == []
    else:
        assert [finding.severity for finding in found] == ["notice"]
        assert found[0].recovered is (said == "recovered")


def test_llama_cpp_that_retries_and_starts_has_recovered() -> None:
    found = scan(
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 421.00 MiB on device 1: "
        "cudaMalloc failed: out of memory",
        "sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism",
        "main: server is listening on http://127.0.0.1:8080",
    )
    assert [(f.signature, f.severity, f.recovered) for f in found] == [("ggml-oom", "notice", True)]


def test_a_batch_size_search_that_goes_on_has_recovered() -> None:
    found = scan(OOM, "Batch size 64 failed, trying batch size 32", "step 1 | loss 3.1")
    assert [(f.severity, f.recovered) for f in found] == [("notice", True)]


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-01-01 10:00:00 | WARNING | fairseq.trainer | ",
        "2026-01-01 10:00:00,123 - trainer - WARNING - ",
        "[2026-01-01 10:00:00,123][trainer][WARNING] - ",
        "2026-01-01 10:00:00.123 | WARNING  | app.train:step:12 - ",
        "WARNING:root:",
        "[12:00:00] WARNING  ",
    ],
)
def test_an_oom_that_is_logged_as_a_warning_was_caught(prefix: str) -> None:
    found = scan(prefix + OOM)
    assert [(f.severity, f.recovered) for f in found] == [("notice", True)]


def test_steps_after_an_oom_mean_that_the_run_goes_on() -> None:
    steps = [f" {n}%|#  | {n}/100 [00:0{n}<01:00,  1.00it/s]" for n in (7, 8, 9)]
    found = scan("WARN oom in batch 6, skipped", OOM, *steps)
    assert [(f.severity, f.recovered) for f in found] == [("notice", True)]


def test_a_bar_that_is_only_drawn_again_is_no_step() -> None:
    bar = "  7%|#  | 7/100 [00:07<01:00,  1.00it/s]"
    found = scan(OOM, bar, bar, bar, bar)
    assert [(f.severity, f.recovered) for f in found] == [("fatal", False)]


def test_a_search_that_ends_at_zero_is_fatal() -> None:
    found = scan("RuntimeError: No executable batch size found, reached zero.")
    assert [(f.family, f.severity) for f in found] == [("gpu_oom", "fatal")]


def test_noise_after_a_request_to_stop_is_no_failure() -> None:
    found = scan(
        "^CTraceback (most recent call last):",
        "[rank0]: KeyboardInterrupt",
        "E1130 12:11:03.41 1180 torch/distributed/elastic/multiprocessing/api.py:1003] failed "
        "(exitcode: -2) local_rank: 0 (pid: 31877) of binary: /usr/bin/python3",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
        "prematurely.",
    )
    assert found == []


def test_an_ordinary_log_of_many_lines_raises_nothing() -> None:
    lines = [
        "INFO 06-01 09:00:10 [loggers.py:257] Engine 000: Avg prompt throughput: 12.4 tokens/s, Avg generation "
        "throughput: 412.9 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 31.6%",
        "{'loss': 1.834, 'grad_norm': 0.71, 'learning_rate': 8.1e-05, 'epoch': 0.42}",
        " 41%|####      | 812/2000 [41:12<59:40,  2.97s/it]",
        'INFO:     10.0.0.7:51522 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        "WARNING 06-01 08:00:00 [config.py:12] max_num_batched_tokens not set, processing with default",
        "Saving model checkpoint to out/checkpoint-800, 0 errors, 0 failed",
        "训练日志 第 812/2000 步 loss 1.23 显存 21.3G",
    ]
    assert scan(*(lines * 3000)) == []
