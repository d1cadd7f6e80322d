"""The stand-in for vLLM says what a server under load would: our reader makes sense of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import cockpit.demo
from cockpit.domain.server_sample import ServerMeter, ServerSample
from cockpit.domain.server_text import read_metrics

FILE = Path(cockpit.demo.__file__).parent / "host_files" / "vllm_metrics.py"


def served() -> Any:
    spec = importlib.util.spec_from_file_location("vllm_metrics", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Served("Qwen/Qwen2.5-7B-Instruct", 80_000)


def after_a_minute(running: int, waiting: int) -> ServerSample:
    server, meter = served(), ServerMeter()
    for second in range(60):
        server.step(1.0, running, waiting)
        sample = meter.feed(read_metrics(server.page(), float(second)))
    return sample


def test_under_load_every_number_is_known_and_plausible() -> None:
    sample = after_a_minute(8, 0)
    assert (sample.running, sample.waiting) == (8, 0)
    assert sample.gen_tokens_per_s is not None and 300 < sample.gen_tokens_per_s < 400
    assert sample.ttft_p50_s is not None and sample.ttft_p95_s is not None
    assert 0 < sample.ttft_p50_s < sample.ttft_p95_s < 1
    assert sample.e2e_p50_s is not None and 2 < sample.e2e_p50_s < 8
    assert sample.prefix_hit is not None and 0.3 < sample.prefix_hit < 0.5


def test_a_queue_makes_requests_late() -> None:
    calm, crowded = after_a_minute(8, 0), after_a_minute(8, 40)
    assert calm.queue_p95_s is not None and crowded.queue_p95_s is not None
    assert crowded.queue_p95_s > 10 * calm.queue_p95_s
