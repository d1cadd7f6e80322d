"""What a vLLM server under load says at /metrics: counters that rise, requests that queue when the cache is full."""

from __future__ import annotations

import random
import threading

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
MEAN_TOKENS = 180


class Histogram:
    def __init__(self, name: str) -> None:
        self.name = name
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def see(self, value: float) -> None:
        place = next((at for at, bound in enumerate(BOUNDS) if value <= bound), len(BOUNDS))
        self.counts[place] += 1
        self.total += value

    def rows(self, labels: str) -> list[str]:
        rows, so_far = ["# TYPE %s histogram" % self.name], 0
        for bound, count in zip([*map(str, BOUNDS), "+Inf"], self.counts, strict=True):
            so_far += count
            rows.append('%s_bucket{le="%s",%s} %d' % (self.name, bound, labels, so_far))
        rows.append("%s_count{%s} %d" % (self.name, labels, so_far))
        return [*rows, "%s_sum{%s} %.4f" % (self.name, labels, self.total)]


class Served:
    """The server's counters; one thread serves requests, others read the page."""

    def __init__(self, model: str, kv_tokens: int) -> None:
        self._labels = 'engine="0",model_name="%s"' % model
        self._kv_tokens = kv_tokens
        self._lock = threading.Lock()
        self._noise = random.Random(7)
        self._part = 0.0
        self.running = self.waiting = 0
        self.kv_usage = 0.0
        self.counters = {
            "prompt_tokens": 0.0,
            "generation_tokens": 0.0,
            "num_preemptions": 0.0,
            "prefix_cache_queries": 0.0,
            "prefix_cache_hits": 0.0,
        }
        self.finished = {"stop": 0, "length": 0, "abort": 0}
        self.ttft = Histogram("vllm:time_to_first_token_seconds")
        self.tpot = Histogram("vllm:request_time_per_output_token_seconds")
        self.itl = Histogram("vllm:inter_token_latency_seconds")
        self.e2e = Histogram("vllm:e2e_request_latency_seconds")
        self.queue = Histogram("vllm:request_queue_time_seconds")

    def step(self, passed_s: float, running: int, waiting: int = 0) -> None:
        """So many requests were in work for so long."""
        with self._lock:
            token_s = 0.018 + 0.0006 * running
            made = running * passed_s / token_s
            self.running, self.waiting = running, waiting
            self.kv_usage = min(
                0.99, running * 900.0 / max(1, self._kv_tokens) + 0.3 * bool(waiting)
            )
            self.counters["generation_tokens"] += made
            self._part += made / MEAN_TOKENS
            ended, self._part = int(self._part), self._part % 1.0
            for _ in range(ended):
                self._end(token_s, waiting)

    def _end(self, token_s: float, waiting: int) -> None:
        noise = self._noise
        prompt = noise.randint(200, 900)
        self.counters["prompt_tokens"] += prompt
        self.counters["prefix_cache_queries"] += prompt
        self.counters["prefix_cache_hits"] += int(prompt * noise.uniform(0.3, 0.5))
        queued = noise.uniform(0.001, 0.02) + waiting * noise.uniform(0.05, 0.2)
        first = queued + prompt * noise.uniform(0.0001, 0.0003)
        each = token_s * noise.uniform(0.8, 1.3)
        self.queue.see(queued)
        self.ttft.see(first)
        self.tpot.see(each)
        self.itl.see(each)
        self.e2e.see(first + MEAN_TOKENS * each)
        self.finished["length" if noise.random() < 0.1 else "stop"] += 1

    def page(self) -> bytes:
        with self._lock:
            gauges = {
                "num_requests_running": float(self.running),
                "num_requests_waiting": float(self.waiting),
                "kv_cache_usage_perc": self.kv_usage,
            }
            rows = []
            for name, value in gauges.items():
                rows += [
                    "# TYPE vllm:%s gauge" % name,
                    "vllm:%s{%s} %.6g" % (name, self._labels, value),
                ]
            for name, value in self.counters.items():
                rows.append("# TYPE vllm:%s counter" % name)
                rows.append("vllm:%s_total{%s} %.1f" % (name, self._labels, value))
            for reason, count in self.finished.items():
                labels = 'finished_reason="%s",%s' % (reason, self._labels)
                rows.append("vllm:request_success_total{%s} %d" % (labels, count))
            for histogram in (self.ttft, self.tpot, self.itl, self.e2e, self.queue):
                rows += histogram.rows(self._labels)
            return ("\n".join(rows) + "\n").encode()
