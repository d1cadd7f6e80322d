from __future__ import annotations

import re

import pytest

from cockpit.domain.prefilter import (
    FLOOD_LINES,
    KEPT_BYTES,
    Prefilter,
    _add_starts,
    has_literal,
    without_flood,
)
from cockpit.domain.signatures import BY_ID, SIGNATURES
from cockpit.domain.signatures.match import Hit, match_line
from cockpit.domain.signatures.model import Signature
from cockpit.domain.signatures.prefixes import peel
from cockpit.domain.signatures.refine import refine
from cockpit.domain.signatures.values import size_mib

EXAMPLES = [(row, example) for row in SIGNATURES for example in row.examples]


def hit(line: str) -> Hit:
    found = match_line(line)
    assert found is not None, line
    refined = refine(found)
    assert refined is not None, line
    return refined


@pytest.mark.parametrize(
    ("row", "example"), EXAMPLES, ids=[f"{row.id}-{n}" for n, (row, _) in enumerate(EXAMPLES)]
)
def test_each_example_hits_its_own_signature_and_no_other(row: Signature, example: str) -> None:
    found = match_line(example)
    assert found is not None
    assert found.signature.id == row.id
    assert row.role == "metric" or has_literal(example.encode())


def test_ids_are_unique_and_every_row_has_a_test_line_and_a_source() -> None:
    assert len(BY_ID) == len(SIGNATURES)
    assert all(row.examples and row.source and row.literals for row in SIGNATURES)


@pytest.mark.parametrize("row", SIGNATURES, ids=list(BY_ID))
def test_patterns_do_not_run_away_on_hostile_lines(row: Signature) -> None:
    """Each repeats the literal's surroundings thousands of times; a runaway pattern would hang here."""
    for literal in row.literals:
        for filler in ("a", "1 "):
            match_line((filler * 6000)[:6000] + literal)
            match_line(literal * 50 + filler * 200 + literal)


@pytest.mark.parametrize(
    ("line", "message", "level", "rank"),
    [
        ("[rank3]: Boom", "Boom", "", 3),
        ("[default3]:[rank2]: Boom", "Boom", "", 3),
        ("[rank5]:[E1130 12:10:00.812345678 ProcessGroupNCCL.cpp:685] Boom", "Boom", "error", 5),
        ("E1130 12:11:03.410000 1180 torch/distributed/api.py:1003] Boom", "Boom", "error", None),
        ("INFO 02-02 10:00:06 metrics.py:467] Boom", "Boom", "info", None),
        ("(Worker_TP1 pid=5150) ERROR 06-01 09:12:55 [executor.py:671] Boom", "Boom", "error", 1),
        ("(VllmWorker rank=2 pid=77) WARNING 06-01 09:12:55 [a.py:1] Boom", "Boom", "warning", 2),
        ("[2026-05-01 10:00:00 DP0 TP3] Boom", "Boom", "", 3),
        ("(RayWorkerWrapper pid=1234, ip=10.0.0.4) Boom", "Boom", "", None),
        ("trainer-1  | Boom", "Boom", "", None),
        ("2026-05-01T10:00:00.123456789Z stderr F [rank1]: Boom", "Boom", "", 1),
        ("Nov 30 12:01:02 gpu7 kernel: Boom", "Boom", "", None),
        ("[88121.402113] Boom", "Boom", "", None),
    ],
)
def test_prefixes_are_peeled_and_kept_as_tags(
    line: str, message: str, level: str, rank: int | None
) -> None:
    peeled = peel(line)
    assert (peeled.message, peeled.level, peeled.rank) == (message, level, rank)


@pytest.mark.parametrize(
    ("text", "bare", "mib"),
    [
        ("1.75 GiB", "B", 1792),
        ("812.44 MiB", "B", 812.44),
        ("5368709120 bytes", "B", 5120),
        ("3221225472", "B", 3072),
        ("41.32", "GiB", 42311.68),
        ("66120012kB", "B", 64570.32),
        ("19.40G", "B", 19865.6),
        ("4976.70 MB", "B", 4746.15),
        ("512 bytes", "B", 0),
        ("x", "B", None),
        ("9" * 400 + " GiB", "B", None),
    ],
)
def test_sizes_become_mib(text: str, bare: str, mib: float | None) -> None:
    assert size_mib(text, bare) == mib


@pytest.mark.parametrize(
    ("line", "family", "cause"),
    [
        ("failed (exitcode: -9) local_rank: 2 (pid: 3) of binary: /usr/bin/python3", "host_oom", "killed"),
        ("failed (exitcode: -7) local_rank: 2 (pid: 3) of binary: /usr/bin/python3", "shm", "shm_full"),
        ("failed (exitcode: -11) local_rank: 2 (pid: 3) of binary: /p", "crash", "native_crash"),
        ("failed (exitcode: 1) local_rank: 2 (pid: 3) of binary: /p", "crash", "rank_failed"),
        ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
         "{'EngineCore_DP0': -9}", "host_oom", "killed"),
        ("RuntimeError: DataLoader worker (pid 4) is killed by signal: Bus error. ", "shm", "shm_full"),
        ("RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed. ", "host_oom", "killed"),
        ("OSError: [Errno 28] No space left on device: '/dev/shm/x'", "shm", "shm_full"),
        ("OSError: [Errno 28] No space left on device: '/out/x.pt'", "disk", "disk_full"),
        ("gpu7:1:2 [3] enqueue.cc:1 NCCL WARN Cuda failure 2 'out of memory'", "gpu_oom", "nccl_buffers"),
        ("RuntimeError: unable to open shared memory object </t_1> in read-write mode: Too many open "
         "files (24)", "env", "too_many_files"),
        ("ResourceExhaustedError: OOM when allocating tensor with shape[8] and type float on "
         "/job:localhost/device:CPU:0 by allocator cpu", "host_oom", "host_allocation"),
    ],
)  # fmt: skip
def test_numbers_and_paths_decide_the_family(line: str, family: str, cause: str) -> None:
    found = hit(line)
    assert (found.family, found.cause) == (family, cause)


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: DataLoader worker (pid 4) is killed by signal: Terminated. ",
        "(raylet) node_manager.cc:3041: 0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers",
    ],
)
def test_a_request_to_stop_and_a_count_of_zero_are_nothing(line: str) -> None:
    found = match_line(line)
    assert found is not None
    assert refine(found) is None


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[31mRuntimeError: CUDA error: out of memory\x1b[0m",
        "[31mRuntimeError: CUDA error: out of memory[0m",
        " 45%|####      | 45/100 [00:12<00:15,  3.4it/s]RuntimeError: CUDA error: out of memory",
        "\r 45%|##| 45/100 [00:12<00:15]\r 46%|##| 46/100 [00:12<00:15]RuntimeError: CUDA error: out of memory",
        "worker-0  | [rank0]: (RayWorker pid=1, ip=10.0.0.4) RuntimeError: CUDA error: out of memory",
        '{"log":"RuntimeError: CUDA error: out of memory\\n","stream":"stderr"}',
        "训练失败：RuntimeError: CUDA error: out of memory（显存不足）",
        "x" * 20000 + " RuntimeError: CUDA error: out of memory",
    ],
)
def test_colours_bars_prefixes_and_other_languages_do_not_hide_it(line: str) -> None:
    assert hit(line).signature.id == "cuda-oom-rt"


def test_the_prefilter_finds_the_lines_and_only_them() -> None:
    prefilter = Prefilter()
    block = b"a\nRuntimeError: CUDA error: out of memory\nb\nc\nOSError: [Errno 12] Cannot allocate memory\n"
    assert prefilter.hit_lines(block) == [1, 4]
    assert prefilter.hit_lines(b"x\n" + block) == [2, 5]
    assert prefilter.hit_lines(b"step 1\nstep 2\n") == []


def test_the_prefilter_finds_every_example_new_or_known_alone_or_among_others() -> None:
    lines = [example.encode() for row, example in EXAMPLES if row.role != "metric"]
    ordinary = [b"step %d an error of no kind, 0 errors" % n for n in range(len(lines))]
    mixed = [line for pair in zip(ordinary, lines, strict=True) for line in pair]
    prefilter = Prefilter()
    for _again in range(2):
        assert prefilter.hit_lines(b"\n".join(mixed) + b"\n") == [*range(1, len(mixed), 2)]
        assert all(prefilter.hit_lines(line + b"\n") == [0] for line in lines)
        assert all(Prefilter().hit_lines(line + b"\n") == [0] for line in lines)


def test_a_line_behind_many_that_look_like_it_is_found_wherever_it_stands() -> None:
    """The trigger `rror` is looked at in so many lines; behind them its literals are looked for instead."""
    for before in range(60, 70):
        shapes = [b"%s an error of no kind" % (b"a" * n) for n in range(before)]
        block = b"\n".join([*shapes, b"MemoryError", b""])
        starts: set[int] = set()
        _add_starts(block, b"rror", (b"MemoryError",), starts)
        assert starts == {block.index(b"MemoryError")}


def test_a_number_decides_where_the_words_alone_do_not() -> None:
    prefilter = Prefilter()
    access = b'INFO: 10.0.0.7:51522 - "POST /v1/completions HTTP/1.1" %d x\n'
    assert prefilter.hit_lines(access % 200 + access % 500 + access % 404) == [1]
    assert prefilter.hit_lines(access % 503) == [0]


def test_what_the_prefilter_remembers_is_bounded() -> None:
    prefilter = Prefilter()
    for n in range(200):
        words = (
            b"%s %s\n" % (chr(97 + n % 26).encode() * (n + i), b"word" * (i % 90))
            for i in range(200)
        )
        prefilter.hit_lines(b"".join(words))
    kept = sum(map(len, prefilter._ordinary)) + sum(map(len, prefilter._suspect))
    assert kept <= KEPT_BYTES


def test_patterns_name_only_facts_of_the_design() -> None:
    allowed = {
        "tried_mib", "free_mib", "total_mib", "allocated_mib", "reserved_mib", "unallocated_mib",
        "private_pools_mib", "in_use_mib", "allowed_mib", "limit_mib", "needed_mib", "available_mib",
        "kv_cache_mib", "anon_rss_mib", "host_used_mib", "host_total_mib", "gpu_index", "rank", "pid", "exitcode",
        "signal", "errno", "xid", "bus_id", "step", "total_steps", "epoch", "port", "path", "max_model_len",
        "gpu_memory_utilization", "tokens",
    }  # fmt: skip
    names = {name for row in SIGNATURES for name in row.regex.groupindex if name[0] != "_"}
    assert names <= allowed
    assert all(isinstance(row.regex, re.Pattern) for row in SIGNATURES)


def test_of_a_flood_the_first_and_the_last_are_read() -> None:
    rows = [b"CUDA out of memory %d" % number for number in range(1000)]
    rows[500] = b"No space left on device"
    judged = without_flood(rows, list(range(1000)))
    assert judged == {*range(FLOOD_LINES), 500, *range(1000 - FLOOD_LINES, 1000)}
    assert without_flood(rows, [3, 500]) == {3, 500}
