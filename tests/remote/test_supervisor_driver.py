"""What the driver says before cards are taken: idle ones, and who is on the others."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import Card, GpuRequest
from cockpit.engine.agent import RunAgent
from cockpit.errors import NotNow
from cockpit.transport.local import LocalTransport
from tests.agents import SUPERVISOR
from tests.nvml.double import Scenario, drop_locks, make_driver, own_cards
from tests.remote.supervised import bystander, shell


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(SUPERVISOR.parent))
    found = importlib.import_module("supervisor_driver")
    monkeypatch.setattr(found, "SAMPLE_GAP_S", 0.0)
    yield found
    for name in set(sys.modules) - before:
        if name.startswith("supervisor"):
            del sys.modules[name]


LOOKS = [
    ("idle", "...", 9.0, ""),
    ("busy", "xxx", 0.0, "x"),
    ("settled", "xx....", 9.0, ""),
    ("settles-too-late", "xx....", 0.0, "x"),
    ("between-two-steps", "..x", 0.0, "x"),
]


@pytest.mark.parametrize(
    ("looks", "settles_s", "who"), [row[1:] for row in LOOKS], ids=[row[0] for row in LOOKS]
)
def test_a_card_is_idle_after_three_looks_in_a_row(
    module: ModuleType, looks: str, settles_s: float, who: str
) -> None:
    seen = {"a": iter(looks), "idle": iter("...")}
    busy = module.who_is_busy(lambda card: next(seen[card]).strip("."), ["a", "idle"], settles_s)
    assert busy == ({"a": who} if who else {})


class Binding:
    """A driver with one card."""

    class NVMLError(Exception):
        pass

    def __init__(self, pids: list[int] | None, util: int | None) -> None:
        self._pids, self._util = pids, util

    def nvmlDeviceGetComputeRunningProcesses(self, card: object) -> list[Any]:
        if self._pids is None:
            raise self.NVMLError
        return [SimpleNamespace(pid=pid) for pid in self._pids]

    def nvmlDeviceGetUtilizationRates(self, card: object) -> Any:
        if self._util is None:
            raise self.NVMLError
        return SimpleNamespace(gpu=self._util)


def test_utilisation_alone_tells_where_processes_cannot_be_seen(module: ModuleType) -> None:
    assert module.who_is_on(Binding(None, 60), "card", "a-1") == "60 % busy"
    assert module.who_is_on(Binding([], 5), "card", "a-1") == ""
    assert module.who_is_on(Binding(None, None), "card", "a-1") == ""


def test_a_process_is_named_with_its_user_except_in_a_container(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "in_container", lambda: False)
    with bystander() as process:
        words = module.who_is_on(Binding([process.pid], 0), "card", "a-1").split()
        assert words[:2] == ["pid", str(process.pid)] and words[-1] == "sleep" and len(words) == 4
        monkeypatch.setattr(module, "in_container", lambda: True)
        assert module.describe(process.pid) == f"pid {process.pid} of its machine"


@pytest.fixture
async def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunAgent]:
    """Shipped to this machine as to any host, with NVIDIA's binding cut to what it needs."""
    driver = make_driver(tmp_path, own_cards(2))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver.library))
    monkeypatch.setenv("NVML_DOUBLE", str(driver.scenario.path))
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    transport = LocalTransport(HostName("here"))
    await transport.connect()
    made = RunAgent(transport)
    await made.open()
    yield made
    await made.close()
    await transport.close()
    drop_locks(tmp_path)


async def ended(agent: RunAgent, run: str) -> RunRecord:
    while (record := await agent.status(RunId(run))).state != "exited":
        await asyncio.sleep(0.02)
    return record


@pytest.mark.nvml
async def test_a_card_that_a_stranger_computes_on_is_not_taken(
    agent: RunAgent, tmp_path: Path
) -> None:
    scenario = Scenario(tmp_path / "scenario")
    scenario.lines = scenario.path.read_text().splitlines()
    uuids = [line.split()[-1] for line in scenario.lines if " uuid " in line]
    cards = tuple(Card(index, uuid) for index, uuid in enumerate(uuids))
    with bystander() as stranger:
        scenario.say(f"gpu 0 proc {stranger.pid} 900 C")
        await agent.start(shell("a-1", "exit 3", gpus=GpuRequest(cards, 1)))
        record = await ended(agent, "a-1")
        assert (record.gpus, record.code) == ((1,), 3)
        scenario.say("gpu 1 util 60")
        with pytest.raises(NotNow) as refused:
            await agent.start(shell("a-2", "exit 0", gpus=GpuRequest(cards, 1)))
        told = str(refused.value.facts["holders"])
        assert f"GPU 0: pid {stranger.pid}" in told and "GPU 1: 60 % busy" in told
        await agent.start(shell("a-3", "exit 4", gpus=GpuRequest(cards, 2, share=True)))
        assert (await ended(agent, "a-3")).gpus == (0, 1)


@pytest.mark.nvml
async def test_a_slice_that_nobody_is_on_is_taken_and_locked_by_its_uuid(
    agent: RunAgent, tmp_path: Path
) -> None:
    """The queue, the processes and the memory are each slice's own; the job sees its uuid."""
    scenario = Scenario(tmp_path / "scenario")
    scenario.lines = scenario.path.read_text().splitlines()
    tails = [line.split()[-1][4:] for line in scenario.lines if " uuid " in line]
    slices = tuple(Card(0, f"MIG-{place:02x}{tails[0]}") for place in range(3))
    sizes = ("3g.40gb 40000 20", "1g.10gb 10000 20", "1g.10gb 10000 20")
    scenario.say("gpu 0 mig 1", *(f"gpu 0 instance {size}" for size in sizes))
    show = "echo $CUDA_VISIBLE_DEVICES"
    waits = f"{show}; echo $$ >$HOME/job; exec sleep 600"
    try:
        with bystander() as stranger:
            scenario.say(f"gpu 0 proc {stranger.pid} 900 C 0")
            await agent.start(shell("a-1", waits, gpus=GpuRequest(slices, 1)))
            held = await agent.status(RunId("a-1"))
            assert (held.gpus, held.gpu_uuids) == ((0,), (slices[1].uuid,))
            assert held.view(HostName("here")).slices == (slices[1].uuid,)
            with pytest.raises(NotNow) as refused:
                await agent.start(shell("a-2", show, gpus=GpuRequest(slices, 2)))
            told = str(refused.value.facts["holders"])
            assert f"GPU 0: pid {stranger.pid}" in told and "GPU 0: a-1" in told
            with pytest.raises(NotNow) as small:
                await agent.start(shell("a-2", show, gpus=GpuRequest(slices[2:], 1, 20_000)))
            assert "9980 MiB free" in str(small.value.facts["holders"])
            await agent.start(shell("a-3", show, gpus=GpuRequest(slices, 1)))
            assert (await ended(agent, "a-3")).gpu_uuids == (slices[2].uuid,)
        await agent.stop(RunId("a-1"), int_s=0.0, term_s=0.0)
        (log,) = tmp_path.glob("**/v1/*/a-1/log")
        assert log.read_text() == f"{slices[1].uuid}\n"
    finally:
        for one in slices:
            Path(f"/dev/shm/cockpit-{os.geteuid()}/gpu-{one.uuid}.lock").unlink(missing_ok=True)
