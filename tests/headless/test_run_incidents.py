"""What goes wrong in a run is told once, as it happens, with its numbers and what to do."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.desk import Desk, Done
from tests.nvml.double import drop_locks, make_driver, own_cards

OOM = (
    'Traceback (most recent call last):\\n  File "train.py", line 12, in <module>\\n    loss.backward()\\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of"
    " 23.64 GiB of which 808.00 MiB is free. Process 4121 has 22.80 GiB memory in use. Of the allocated memory"
    " 17.00 GiB is allocated by PyTorch, and 4.20 GiB is reserved by PyTorch but unallocated. If reserved but"
    " unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid"
    " fragmentation.\\n"
)
KV = (
    "INFO 11-30 10:00:00 [loader.py:447] Loading weights took 3.10 seconds\\n"
    "ERROR 11-30 10:00:05 [core.py:700] EngineCore failed to start.\\n"
    "ValueError: To serve at least one request with the models's max seq len (32768), (1.75 GiB KV cache is"
    " needed, which is larger than the available KV cache memory (0.62 GiB). Based on the available memory, the"
    " estimated maximum model length is 11600. Try increasing `gpu_memory_utilization` or decreasing"
    " `max_model_len` when initializing the engine.\\n"
)


def incidents(done: Done, family: str) -> list[dict[str, Any]]:
    return [event for event in done.named("incident") if event["family"] == family]


@pytest.mark.nvml
async def test_a_torch_oom_that_ends_the_run_is_one_incident_with_its_numbers(
    tmp_path: Path, cards: Desk
) -> None:
    path = cards.profile(
        "oom", f"printf 'step 1\\n{OOM}'; sleep 2; exit 1", "[gpus]\nindex = [2]\n"
    )
    done = await cards.call("run", path, "--json")
    assert done.code == 1
    (incident,) = incidents(done, "gpu_oom")
    facts = incident["facts"]
    assert (facts["tried_mib"], facts["free_mib"]) == (1792, 808)
    assert facts["total_mib"] == pytest.approx(23.64 * 1024, abs=1)
    assert (incident["severity"], incident["gpu"], incident["host"]) == ("fatal", 2, "here")
    assert incident["line"] == 5
    raw = (cards.home / "runs" / "here" / incident["run"] / "log").read_bytes()
    assert raw[incident["offset"] :].startswith(b"torch.OutOfMemoryError")
    names = done.names
    assert names.index("incident") > names.index("log") and names[-1] == "run.exited"
    assert incident["remedies"] and incident["cause"]
    patches = [remedy["patch"] for remedy in incident["remedies"] if remedy["patch"]]
    assert {"env.set.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} in patches


async def test_in_words_an_incident_says_why_and_what_to_set(desk: Desk) -> None:
    done = await desk.call("run", desk.profile("oom", f"printf '{OOM}'; exit 1"))
    assert done.err.count("gpu_oom") == 1
    assert "1.75 GiB" in done.err
    assert "--set env.set.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in done.err


async def test_a_change_of_the_runs_own_arguments_is_printed_to_be_copied(desk: Desk) -> None:
    args = 'args = ["--batch-size", "8", "--note", "it\'s $HOME; a"]\n'
    path = desk.profile("halved", f"printf '{OOM}'; exit 1", args)
    done = await desk.call("run", path)
    (line,) = (line for line in done.err.splitlines() if "--set" in line and "batch-size" in line)
    dry = await desk.call("run", path, "--dry-run", "--json", *shlex.split(line))
    assert dry.code == 0
    assert dry.events[0]["argv"][-4:] == ["--batch-size", "4", "--note", "it's $HOME; a"]


async def test_an_oom_in_a_line_that_was_never_finished_is_told_while_it_hangs(desk: Desk) -> None:
    text = OOM.rstrip("\\n")
    script = f"printf '{text}'; while [ ! -e {desk.folder}/go ]; do sleep 0.05; done"
    process = await desk.start("run", desk.profile("open", script), "--json")
    assert process.stdout is not None
    while b'"incident"' not in await asyncio.wait_for(process.stdout.readline(), 60):
        pass
    (desk.folder / "go").touch()
    done = await desk.end_of(process)
    assert done.code == 0 and done.named("incident") == []


async def test_attach_after_the_end_tells_the_incident_again(desk: Desk) -> None:
    await desk.call("run", desk.profile("oom", f"printf '{OOM}'; exit 1"))
    done = await desk.call("attach", "oom", "--json")
    assert done.code == 1 and len(incidents(done, "gpu_oom")) == 1
    assert done.events[-1]["event"] == "run.exited"


async def test_a_vllm_that_has_no_room_for_its_cache_says_what_to_set(desk: Desk) -> None:
    said = desk.file("said", KV.replace("\\n", "\n"))
    server = desk.file("vllm", f"#!/bin/sh\ncat {said}; exit 1\n")
    Path(server).chmod(0o755)
    env = f'[env]\nset = {{ PATH = "{desk.folder}:/usr/bin:/bin" }}\n'
    text = f'name = "serve"\nkind = "vllm"\n[vllm]\nmodel = "m"\n{env}'
    path = desk.file("serve.toml", text)
    done = await desk.call("run", path, "--json")
    (incident,) = incidents(done, "kv_cache")
    assert incident["facts"]["needed_mib"] == 1792
    patches = [remedy["patch"] for remedy in incident["remedies"] if remedy["patch"]]
    assert patches and all(key.startswith("vllm.") for patch in patches for key in patch)
    for key, value in patches[0].items():
        dry = await desk.call(
            "run", path, "--dry-run", "--json", "--set", f"{key}={json.dumps(value)}"
        )
        assert dry.code == 0 and str(value) in dry.events[0]["argv"]


async def test_a_job_that_was_killed_by_somebody_is_no_host_oom(desk: Desk) -> None:
    done = await desk.call("run", desk.profile("plain", "kill -9 $$"), "--json")
    assert done.code == 137 and incidents(done, "host_oom") == []
    assert done.events[-1]["signal"] == 9


@pytest.fixture
async def cards(tmp_path: Path) -> AsyncIterator[Desk]:
    driver = make_driver(tmp_path, own_cards(4))
    made = Desk(
        tmp_path, LD_LIBRARY_PATH=str(driver.library), NVML_DOUBLE=str(driver.scenario.path)
    )
    made.this_machine()
    yield made
    assert await made.clear() == [], "the test left processes"
    drop_locks(tmp_path)
