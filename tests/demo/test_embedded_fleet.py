"""The demo as a person starts it: hosts answer, runs start, memory runs out, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cockpit.config.hosts import load_hosts
from cockpit.demo.director import direct
from cockpit.demo.hosts import demo_hosts
from cockpit.demo.main import EmbeddedFleet, embedded_fleet
from cockpit.demo.sweep import marked_processes
from cockpit.domain.models import HostName
from cockpit.engine.engine import Engine

LIMIT_S = 60.0
SRC = """
import sys, json
from cockpit.demo.main import embedded_fleet
with embedded_fleet(1) as fleet:
    print(json.dumps([fleet.server.pid, str(fleet.home.root.parent)]), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def short_tmp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The demo's folder goes into the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def token_of(fleet: EmbeddedFleet) -> str:
    command = Path(f"/proc/{fleet.server.pid}/cmdline").read_bytes().split(b"\0")
    return command[-2].decode()


async def until(condition: object) -> None:
    async def wait() -> None:
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.05)

    await asyncio.wait_for(wait(), LIMIT_S)


async def test_hosts_answer_and_runs_start_through_the_engine(short_tmp: Path) -> None:
    with embedded_fleet(3) as fleet:
        token = token_of(fleet)
        engine = Engine(fleet.home, load_hosts(fleet.home))
        await engine.start()
        try:
            await direct(engine)
            await until(lambda: len(engine.runs.all()) == 3)
            cards = {
                host: len(state.latest.gpus) if state.latest else 0
                for host, state in engine.fleet.hosts.items()
            }
            assert cards == {"vast-a": 1, "a100": 2, "h100": 8}
            a100 = engine.fleet.hosts[HostName("a100")]
            await until(lambda: bool(a100.latest and a100.latest.gpus[0].processes))
            assert a100.latest is not None
            process = a100.latest.gpus[0].processes[0]
            assert process.run is not None and process.run.startswith("vllm-7b-")
            await until(lambda: any(view.state == "ready" for view in engine.runs.all()))
            await until(lambda: any(view.served for view in engine.runs.all()))
            (served,) = (view.served for view in engine.runs.all() if view.served)
            assert served.running is not None and served.kv_usage is not None
        finally:
            await engine.close()
    assert marked_processes("COCKPIT_DEMO", token) == []
    assert list(short_tmp.iterdir()) == []


def test_a_killed_parent_leaves_nothing(short_tmp: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", SRC], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None and parent.stdin is not None
    pid, folder = json.loads(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait(LIMIT_S)
    parent.stdin.close()
    parent.stdout.close()
    asyncio.run(until(lambda: not os.path.exists(folder) and not os.path.exists(f"/proc/{pid}")))


@pytest.mark.parametrize(("count", "names"), [(1, 1), (3, 3), (7, 7)])
def test_any_number_of_hosts_with_names_of_their_own(count: int, names: int) -> None:
    assert len({host.name for host in demo_hosts(count)}) == names


def test_cards_of_two_demos_have_different_uuids() -> None:
    first, second = (
        {str(card["uuid"]) for host in demo_hosts(3) for card in host.cards(token)}
        for token in ("one", "two")
    )
    assert len(first) == 11 and not first & second
