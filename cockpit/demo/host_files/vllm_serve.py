"""A server that starts, answers and logs like `vllm serve`, and leaks GPU memory where it is told to.

Its flags are vLLM's; a KV cache that does not fit ends it with vLLM's own words.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import random
import signal
import sys
import threading
import time
import types

from card_use import CardUse, clock_factor, total_mib, visible_cards
from vllm_metrics import Served

KV_MIB_PER_TOKEN = 0.4375
"""In bf16; half of it in fp8."""
WEIGHTS_MIB = 14_400


def main() -> None:
    args = parse()
    signal.signal(signal.SIGTERM, _stop)
    uses = [CardUse(gpu) for gpu in visible_cards()]
    pid = os.getpid()
    log("APIServer pid=%d" % pid, "api_server.py:1896", "vLLM API server version 0.11.0")
    log("APIServer pid=%d" % pid, "model.py:547", "Resolved architecture: Qwen2ForCausalLM")
    load_weights(args, uses, pid)
    kv_mib = make_kv_cache(args, uses, pid)
    served = Served(args.model, int(kv_mib / KV_MIB_PER_TOKEN))
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", args.port), make_handler(args.model, served)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log("APIServer pid=%d" % pid, "launcher.py:36", "Available routes are:")
    print("INFO:     Application startup complete.", flush=True)
    try:
        serve(args, uses, pid, WEIGHTS_MIB + kv_mib, served)
    except KeyboardInterrupt:
        print("INFO:     Shutting down", flush=True)
    finally:
        for use in uses:
            use.release()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vllm")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.9)
    parser.add_argument("--max-model-len", type=int, default=32768)
    parser.add_argument("--kv-cache-dtype", default="auto")
    parser.add_argument("--leak-mib-min", type=float, default=0.0)
    args, _ = parser.parse_known_args()
    return args


def _stop(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(0)


def log(who: str, where: str, text: str) -> None:
    stamp = time.strftime("%m-%d %H:%M:%S")
    print("(%s) INFO %s [%s] %s" % (who, stamp, where, text), flush=True)


def load_weights(args: argparse.Namespace, uses: list[CardUse], pid: int) -> None:
    who = "EngineCore_DP0 pid=%d" % pid
    log(who, "gpu_model_runner.py:2602", "Starting to load model %s..." % args.model)
    in_steps = clock_factor() == 1.0  # else it is over between two readings of the host's hour
    for shard in range(1, 5):
        for use in uses if in_steps else ():
            use.hold(WEIGHTS_MIB * shard / 4, 20.0)
        sys.stderr.write(
            "\rLoading safetensors checkpoint shards: %3d%% Completed | %d/4" % (25 * shard, shard)
        )
        sys.stderr.flush()
        time.sleep(0.5)
    sys.stderr.write("\n")
    log(who, "gpu_model_runner.py:2653", "Model loading took 14.06 GiB and 2.1 seconds")


def make_kv_cache(args: argparse.Namespace, uses: list[CardUse], pid: int) -> float:
    """MiB of the cache. Ends the process when one request of the longest length does not fit."""
    who = "EngineCore_DP0 pid=%d" % pid
    total = total_mib(visible_cards()[0])
    room = total * args.gpu_memory_utilization - WEIGHTS_MIB - 1800
    per_token = KV_MIB_PER_TOKEN / (2.0 if args.kv_cache_dtype.startswith("fp8") else 1.0)
    needed = args.max_model_len * per_token
    log(who, "gpu_worker.py:298", "Available KV cache memory: %.2f GiB" % (room / 1024.0))
    if room < needed:
        print(
            "(%s) ValueError: To serve at least one request with the models's max seq len (%d), (%.2f GiB"
            " KV cache is needed, which is larger than the available KV cache memory (%.2f GiB). Based on"
            " the available memory, the estimated maximum model length is %d. Try increasing"
            " `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
            % (
                who,
                args.max_model_len,
                needed / 1024,
                room / 1024,
                int(room / per_token) // 16 * 16,
            ),
            flush=True,
        )
        raise SystemExit(1)
    log(
        who,
        "kv_cache_utils.py:1087",
        "GPU KV cache size: %s tokens" % f"{int(room / per_token):,}",
    )
    for use in uses:
        use.hold(WEIGHTS_MIB + room, 5.0)
    return room


def serve(
    args: argparse.Namespace, uses: list[CardUse], pid: int, held_mib: float, served: Served
) -> None:
    noise = random.Random(11)
    clock = clock_factor()
    begun = time.monotonic()
    last_report = looked = begun
    while True:
        time.sleep(min(1.0, 60.0 / clock))
        now = time.monotonic()
        leaked = (now - begun) / 60.0 * args.leak_mib_min * clock
        running = noise.randint(2, 9)
        served.step(now - looked, running)
        looked = now
        for use in uses:
            use.hold(held_mib + leaked, 28.0 + 3.0 * running)
        if now - last_report >= 10.0:
            last_report = now
            log(
                "APIServer pid=%d" % pid,
                "loggers.py:127",
                "Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s,"
                " Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%"
                % (noise.uniform(80, 240), noise.uniform(150, 420), running, 4.0 * running, 41.0),
            )


def make_handler(model: str, served: Served) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/health":
                self._answer(200, b"")
            elif self.path == "/metrics":
                self._answer(200, served.page(), "text/plain; version=0.0.4")
            elif self.path == "/v1/models":
                self._answer(200, json.dumps({"object": "list", "data": [{"id": model}]}).encode())
            else:
                self._answer(404, b'{"error": "Not Found"}')

        def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Access lines would drown the log."""

    return Handler


if __name__ == "__main__":
    main()
