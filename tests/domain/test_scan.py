from __future__ import annotations

import textwrap

import pytest

from cockpit.domain.incidents import Finding
from cockpit.domain.scan import Scanner

GIB = 1024


def oom(rank: int | None = None, tried: str = "1.75 GiB", reserved: str = "0.20 GiB") -> str:
    prefix = "" if rank is None else f"[rank{rank}]: "
    return (
        f"{prefix}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {rank or 0} has a "
        "total capacity of 79.10 GiB of which 812.00 MiB is free. Including non-PyTorch memory, this "
        "process has 78.29 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and "
        f"{reserved} is reserved by PyTorch but unallocated."
    )


def elastic(code: int, rank: int = 0) -> str:
    return (
        "E1130 12:11:03.41 1180 torch/distributed/elastic/multiprocessing/api.py:1003] failed "
        f"(exitcode: {code}) local_rank: {rank} (pid: 31877) of binary: /opt/venv/bin/python3"
    )


def scan(*lines: str) -> list[Finding]:
    """What a whole log amounts to."""
    scanner = Scanner(settled=True)
    return scanner.feed("".join(f"{line}\n" for line in lines).encode()) + scanner.finish()


def only(*lines: str) -> Finding:
    [finding] = scan(*lines)
    return finding


def test_facts_are_numbers_with_their_place() -> None:
    finding = only("step 1", "größe", oom(3))
    assert (finding.family, finding.severity, finding.line) == ("gpu_oom", "fatal", 3)
    assert finding.offset == len("step 1\ngröße\n".encode())
    assert finding.rank == 3
    assert finding.facts == {
        "tried_mib": 1.75 * GIB,
        "gpu_index": 3,
        "total_mib": 80998.4,
        "free_mib": 812,
        "in_use_mib": 80168.96,
        "allocated_mib": 77 * GIB,
        "unallocated_mib": 204.8,
        "rank": 3,
    }


@pytest.mark.parametrize(
    ("line", "cause", "first_remedy"),
    [
        (oom(tried="1.75 GiB"), "too_big", "smaller_batch"),
        (oom(reserved="5.41 GiB"), "fragmentation", "expandable_segments"),
        (oom(tried="60.00 GiB"), "huge_tensor", "fused_attention"),
        (oom(tried="20.00 MiB"), "driver_fragmentation", "expandable_segments"),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 384.00 MiB (GPU 0; 23.70 GiB total capacity; 10.00 "
            "GiB already allocated; 210.56 MiB free; 22.40 GiB reserved in total by PyTorch)",
            "fragmentation",
            "expandable_segments",
        ),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacty "
            "of 23.65 GiB of which 41.06 MiB is free. Process 48213 has 9.77 GiB memory in use. Including "
            "non-PyTorch memory, this process has 13.82 GiB memory in use. Of the allocated memory 13.10 GiB is "
            "allocated by PyTorch, and 214.33 MiB is reserved by PyTorch but unallocated.",
            "other_tenant",
            "kill_orphan",
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of "
            "79.10 GiB of which 41.77 GiB is free. 36.00 GiB allowed; Of the allocated memory 34.90 GiB is allocated "
            "by PyTorch, and 310.12 MiB is reserved by PyTorch but unallocated.",
            "own_cap",
            "raise_memory_fraction",
        ),
    ],
)
def test_the_numbers_tell_why_a_card_was_full(line: str, cause: str, first_remedy: str) -> None:
    finding = only(line)
    assert finding.cause == cause
    assert finding.remedies[0].code == first_remedy


def test_the_traceback_tells_the_phase() -> None:
    finding = only(
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 10, in main',
        "    loss.backward()",
        '  File "/opt/torch/autograd/graph.py", line 1, in _engine_run_backward',
        oom(),
    )
    assert finding.cause == "too_big_backward"


def test_another_process_is_named_and_an_empty_card_is_asked_for() -> None:
    line = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of "
        "23.65 GiB of which 41.06 MiB is free. Process 48213 has 9.77 GiB memory in use. Including non-PyTorch memory, "
        "this process has 13.82 GiB memory in use. Of the allocated memory 13.10 GiB is allocated by PyTorch, and "
        "214.33 MiB is reserved by PyTorch but unallocated."
    )
    finding = only(line)
    assert finding.facts["holder_pid"] == 48213
    patches = {remedy.code: remedy.patch for remedy in finding.remedies}
    assert patches["pick_empty_card"] == {"gpus.min_free": "14 GiB", "gpus.share": False}


def test_copies_of_other_ranks_and_the_launcher_fold_into_the_cause() -> None:
    finding = only(
        *(oom(rank) for rank in (5, 0, 1, 2)),
        elastic(1, 5),
        elastic(-15, 0),
        "Root Cause (first observed failure):",
    )
    assert (finding.family, finding.rank, finding.line) == ("gpu_oom", 5, 1)


@pytest.mark.parametrize("cause_first", [True, False])
def test_the_root_cause_wins_wherever_it_stands(cause_first: bool) -> None:
    wrapper = (
        "(EngineCore_DP0 pid=7) ERROR 06-01 08:00:13 [core.py:708] EngineCore failed to start."
    )
    cause = "(EngineCore_DP0 pid=7) ERROR 06-01 08:00:13 [core.py:708] " + oom()
    lines = [cause, wrapper] if cause_first else [wrapper, *["  at work"] * 40, cause]
    assert (
        only(
            *lines, "RuntimeError: Engine core initialization failed. See root cause above."
        ).family
        == "gpu_oom"
    )


REMOTE = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
NCCL = "torch.distributed.DistBackendError: NCCL error in: a.cpp:1, unhandled {} error (run with NCCL_DEBUG=INFO"
KILLED = "[8.1] {}: Killed process 4 (python3) total-vm:1kB, anon-rss:66120012kB, file-rss:0kB"
WORKER = "RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed. "
VLLM_WORKER = (
    "ERROR 06-01 09:13:01 [e.py:381] Worker proc VllmWorker-2 died unexpectedly (exit code: -6)"
)
XID_79 = "[9.1] NVRM: Xid (PCI:0000:65:00): 79, pid=1, name=python3, GPU has fallen off the bus."
NCCL_SHM = (
    "gpu7:1:2 [0] misc/shmutils.cc:87 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x "
    "(size 9637888), error: No space left on device (28)"
)
NO_SPACE = "OSError: [Errno 28] No space left on device: '/out/ckpt.pt'"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


@pytest.mark.parametrize(
    ("effect", "cause", "family"),
    [
        (REMOTE, oom(), "gpu_oom"),
        (elastic(-9), KILLED.format("Out of memory"), "host_oom"),
        (WORKER, KILLED.format("Memory cgroup out of memory"), "host_oom"),
        (NCCL.format("cuda"), oom(), "gpu_oom"),
        (VLLM_WORKER, XID_79, "hardware"),
        (NCCL.format("system"), NCCL_SHM, "shm"),
        (elastic(1), NO_SPACE, "disk"),
        ("RuntimeError: No CUDA GPUs are available", MISMATCH, "driver"),
    ],
)
@pytest.mark.parametrize("cause_first", [True, False])
def test_one_cause_is_one_finding(effect: str, cause: str, family: str, cause_first: bool) -> None:
    lines = (cause, effect) if cause_first else (effect, cause)
    assert only("x", *lines).family == family


def test_two_causes_are_two_findings() -> None:
    found = scan(
        XID_79,
        "[9.2] NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.",
        "[9.3] NVRM: Xid (PCI:0000:1b:00): 48, pid=1, name=python3, DBE",
        NO_SPACE,
    )
    assert [(f.family, f.line) for f in found] == [("hardware", 1), ("hardware", 3), ("disk", 4)]


def test_a_fault_of_one_card_does_not_explain_that_of_another() -> None:
    found = scan(
        XID_79, "[9.4] NVRM: Xid (PCI:0000:ca:00): 31, pid=7, name=python3, MMU Fault", XID_79
    )
    assert [(f.line, f.cause) for f in found] == [(1, "gpu_lost"), (2, "illegal_access")]


def test_recoveries_of_one_kind_are_one_notice_and_a_failure_after_them_is_its_own() -> None:
    tries = [
        line
        for n in (32, 16, 8)
        for line in (oom(), f"Batch size {2 * n} failed, trying batch size {n}")
    ]
    assert [(f.line, f.recovered) for f in scan(*tries)] == [(1, True)]
    assert [(f.line, f.severity) for f in scan(*tries, oom())] == [(1, "notice"), (7, "fatal")]


def test_what_comes_much_later_has_its_own_cause() -> None:
    found = scan(oom(), *["working"] * 500, elastic(-11))
    assert [f.family for f in found] == ["gpu_oom", "crash"]


def test_a_wrapper_alone_is_told() -> None:
    assert only(elastic(1)).family == "crash"
    assert only(elastic(-9)).family == "host_oom"


@pytest.mark.parametrize(
    ("line", "facts", "patches"),
    [
        (
            "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (9.33 GiB). Based on the available memory, the "
            "estimated maximum model length is 76432. Try increasing",
            {
                "max_model_len": 131072, "needed_mib": 16384, "available_mib": 9553.92,
                "kv_cache_mib": 9553.92, "tokens": 76432,
            },
            {"vllm.max_model_len": 76432, "vllm.kv_cache_dtype": "fp8", "vllm.gpu_memory_utilization": 0.95},
        ),
        (
            "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be "
            "stored in KV cache (54837). Try",
            {"max_model_len": 131072, "tokens": 54837},
            {"vllm.max_model_len": 54832, "vllm.kv_cache_dtype": "fp8", "vllm.gpu_memory_utilization": 0.95},
        ),
        (
            "ValueError: Free memory on device cuda:0 (41.32/79.10 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 71.19 GiB). Decrease",
            {"free_mib": 42311.68, "total_mib": 80998.4, "gpu_memory_utilization": 0.9, "needed_mib": 72898.56},
            {"vllm.gpu_memory_utilization": 0.5},
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing",
            {},
            {"vllm.gpu_memory_utilization": 0.95, "vllm.max_num_batched_tokens": 2048, "vllm.enforce_eager": True},
        ),
    ],
)  # fmt: skip
def test_vllm_at_start_up_carries_patches_with_values_of_ours(
    line: str, facts: dict[str, object], patches: dict[str, object]
) -> None:
    finding = only(line)
    assert finding.family == "kv_cache"
    assert finding.facts == facts
    merged = {
        key: value for remedy in finding.remedies for key, value in (remedy.patch or {}).items()
    }
    assert merged == patches


def test_the_containers_limit_is_read_from_the_lines_before() -> None:
    finding = only(
        "[88121.40] memory: usage 67108864kB, limit 67108864kB, failcnt 123",
        "[88121.41] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=d,mems_allowed=0,"
        "oom_memcg=/a,task_memcg=/a,task=python3,pid=31877,uid=0",
        "[88121.42] Memory cgroup out of memory: Killed process 31877 (python3) total-vm:188211004kB, "
        "anon-rss:66120012kB, file-rss:40212kB, shmem-rss:8kB, UID:0 pgtables:2kB oom_score_adj:0",
    )
    assert (finding.family, finding.cause) == ("host_oom", "cgroup_oom_kill")
    assert finding.facts == {"pid": 31877, "anon_rss_mib": 64570.32, "limit_mib": 65536}


def test_numbers_on_the_lines_below_are_read_too() -> None:
    finding = only(
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
        "Currently allocated     : 20.10 GiB",
        "Requested               : 2.00 GiB",
        "Device limit            : 23.65 GiB",
        "Free (according to CUDA): 41.06 MiB",
    )
    assert finding.facts["tried_mib"] == 2048
    assert finding.facts["free_mib"] == 41.06


def wrapped(text: str, width: int, at_words: bool, frame: str = "{}") -> list[str]:
    if at_words:
        return [frame.format(line) for line in textwrap.wrap(text, width, break_on_hyphens=False)]
    return [frame.format(text[i : i + width]) for i in range(0, len(text), width)]


@pytest.mark.parametrize("at_words", [True, False])
@pytest.mark.parametrize("frame", ["{}", "│ {} │", "[rank2]: {}"])
@pytest.mark.parametrize("width", [78, 100, 117])
def test_a_message_that_was_cut_over_lines_is_read_whole(
    width: int, frame: str, at_words: bool
) -> None:
    finding = only("x", *wrapped(oom(), width, at_words, frame), "done")
    assert (finding.signature, finding.line) == ("torch-oom-21", 2)
    assert finding.facts["total_mib"] == 80998.4
    assert finding.facts["unallocated_mib"] == 204.8


def test_rays_out_of_memory_is_the_hosts() -> None:
    finding = only(
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "Memory on the node (IP: 10.0.0.4, ID: ab) where the task was running was 30.53GB / 32.00GB (0.954), which",
    )
    assert finding.family == "host_oom"
    assert finding.facts["host_total_mib"] == 32768


@pytest.mark.parametrize("losses", [1, 3])
def test_one_nan_is_a_warning_and_three_are_a_diverged_run(losses: int) -> None:
    finding = only(*(f"step {n} | loss: nan | lr 3e-4" for n in range(losses)))
    assert finding.severity == ("fatal" if losses == 3 else "warning")


def test_every_split_of_the_stream_gives_the_same_findings() -> None:
    text = f"epoch 1\n\x1b[31m{oom(1)}\x1b[0m\r\nstep\n 1%|#| 1/9 [00:01]{elastic(-9)}\n".encode()

    def of(size: int) -> list[Finding]:
        scanner = Scanner(settled=True)
        found = [f for i in range(0, len(text), size) for f in scanner.feed(text[i : i + size])]
        return found + scanner.finish()

    whole = of(len(text))
    assert [(f.family, f.line, f.offset) for f in whole] == [("gpu_oom", 2, 8)]
    for size in (1, 2, 3, 7, 50, 333):
        assert of(size) == whole


def test_live_tells_at_once_and_takes_back() -> None:
    scanner = Scanner()
    [first] = scanner.feed(f"{oom()}\n".encode())
    assert (first.severity, first.recovered) == ("fatal", False)
    [again] = scanner.feed(b"Batch size 64 failed, trying batch size 32\n")
    assert (again.signature, again.offset) == (first.signature, first.offset)
    assert (again.severity, again.recovered) == ("notice", True)
    assert scanner.finish() == []


def test_live_does_not_repeat_copies() -> None:
    scanner = Scanner()
    assert len(scanner.feed(f"{oom(0)}\n".encode())) == 1
    assert scanner.feed(f"{oom(1)}\n{oom(2)}\n{elastic(1)}\n".encode()) == []
    assert scanner.quiet() == []


def test_live_holds_a_wrapper_back_until_it_is_quiet() -> None:
    scanner = Scanner()
    assert scanner.feed(f"{elastic(1)}\n".encode()) == []
    [told] = scanner.quiet()
    assert told.family == "crash"


def test_an_unfinished_line_is_judged_when_nothing_more_comes_and_only_once() -> None:
    scanner = Scanner()
    assert scanner.feed(b" 45%|####   | 45/100 [00:12<00:15]" + oom().encode()) == []
    [finding] = scanner.quiet()
    assert (finding.family, finding.line, finding.offset) == ("gpu_oom", 1, 0)
    assert scanner.feed(b"\n") == []
    assert scanner.finish() == []


def test_time_parts_what_lines_do_not() -> None:
    scanner = Scanner()
    scanner.feed(f"{oom()}\n".encode(), at_s=1000.0)
    scanner.feed(b"still here\n", at_s=1400.0)
    [later] = scanner.feed(
        b"torch.distributed.DistBackendError: NCCL error in: a.cpp:1, unhandled cuda error (run\n",
        at_s=1401.0,
    )
    assert later.family == "nccl"


def test_a_jump_in_the_offsets_keeps_places_true() -> None:
    scanner = Scanner()
    scanner.feed(b"abc", 0)
    [finding] = scanner.feed(f"{oom()}\n".encode(), 5000)
    assert finding.offset == 5000


def test_an_endless_line_costs_no_memory_and_hides_nothing_after_it() -> None:
    scanner = Scanner()
    for _ in range(100):
        scanner.feed(b"x" * 100_000)
    assert len(scanner._pending) <= 64 * 1024
    [finding] = scanner.feed(b"\n" + oom().encode() + b"\n")
    assert (finding.line, finding.offset) == (2, 10_000_001)


def test_hostile_bytes_break_nothing() -> None:
    scanner = Scanner()
    scanner.feed(bytes(range(256)) * 2000)
    scanner.feed(b"\x00" * 200_000 + b"\n" * 200_000)
    scanner.feed(b"CUDA out of memory. Tried to allocate " + b"9" * 100_000 + b" GiB\n")
    found = scanner.feed(
        b"\x1b]0;RuntimeError: CUDA error: out of memory\nRuntimeError: CUDA error: out of memory \x1b[2J\n"
    )
    assert all(finding.text.isprintable() for finding in found + scanner.finish())


def test_a_flood_of_one_failure_is_one_incident_and_hides_no_other() -> None:
    flood = [
        f"[rank{number}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {number} MiB"
        for number in range(2_000)
    ]
    flood.insert(1_000, "OSError: [Errno 28] No space left on device: '/data/x'")
    found = scan(*flood)
    assert [(finding.family, finding.line) for finding in found] == [("gpu_oom", 1), ("disk", 1001)]


REPORT = (
    "[2026-11-30 12:00:00,000] [INFO] [utils.py:782:see_memory_usage] MA 9.1 GB         "
    "Max_MA {most} GB         CA {held} GB         Max_CA 41 GB"
)


def test_memory_that_lies_in_pieces_is_told_when_it_stays_so() -> None:
    found = scan(*(REPORT.format(most="20.4", held="41.2") for _ in range(5)))
    assert [(one.family, one.severity, one.cause) for one in found] == [
        ("near_full", "notice", "fragmented")
    ]
    assert found[0].facts["reserved_mib"] == pytest.approx(41.2 * 1024, abs=1)
    assert found[0].facts["allocated_mib"] == pytest.approx(20.4 * 1024, abs=1)


@pytest.mark.parametrize(("most", "held"), [("38.0", "41.2"), ("0.9", "2.0"), ("41.2", "41.2")])
def test_a_cache_of_ordinary_size_is_nothing(most: str, held: str) -> None:
    assert scan(*(REPORT.format(most=most, held=held) for _ in range(9))) == []


def test_a_rank_that_lost_its_peer_over_gloo_follows_from_the_one_that_failed() -> None:
    peer = (
        "[rank1]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] "
        "Connection closed by peer [10.0.0.2]:41022"
    )
    oom = (
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 23.65 GiB of which 1.10 GiB is free."
    )
    for lines in ((oom, peer), (peer, oom)):
        [one] = scan(*lines)
        assert (one.family, one.rank) == ("gpu_oom", 0)
    [alone] = scan(peer)
    assert (alone.family, alone.cause, alone.rank) == ("nccl", "peer_exited", 1)
