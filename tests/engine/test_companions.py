"""Forwards and readiness over a real sshd: they follow reconnections, wait for taken ports, and name the model."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.config.hosts import load_hosts
from cockpit.config.pasted import Forward
from cockpit.config.paths import Home
from cockpit.domain.models import HostName, RunId
from cockpit.engine import companions
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event, OwnTrouble
from tests.desk import until
from tests.rented import Rented, rented_box
from tests.servers import free_port

pytestmark = pytest.mark.sshd
BOX = HostName("box")

SERVER = """
import http.server, json, os, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready = os.path.exists(sys.argv[2])
        self.send_response(200 if ready else 503)
        self.end_headers()
        if ready and self.path == "/v1/models":
            self.wfile.write(json.dumps({"object": "list", "data": [{"id": "Qwen/Qwen\\x1b[31m2.5"}]}).encode())
        elif ready:
            self.wfile.write(b"up")
    def log_message(self, *args): pass
time.sleep(0.5)
print("listening", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
async def rented(tmp_path: Path) -> AsyncIterator[Rented]:
    async with rented_box(tmp_path) as made:
        yield made


@asynccontextmanager
async def watched(rented: Rented, *forwards: Forward) -> AsyncIterator[tuple[Engine, list[Event]]]:
    """An engine as the screens have it, over the rented box."""
    home = Home(rented.desk.home)
    spec = replace(load_hosts(home)[BOX], forwards=forwards)
    engine = Engine(home, {BOX: spec})
    told: list[Event] = []
    engine.subscribe(told.append)
    await engine.start()
    try:
        yield engine, told
    finally:
        await engine.close()


def get(port: int, path: str = "/") -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return bytes(answer.read())


async def answers(port: int) -> bool:
    try:
        return await asyncio.to_thread(get, port) == b"up"
    except OSError:
        return False


async def test_a_server_is_ready_when_it_serves_its_model_and_its_port_follows_cuts_and_restarts(
    rented: Rented,
) -> None:
    remote, local, go = free_port(), free_port(), rented.desk.folder / "go"
    script = rented.desk.file("server.py", SERVER)
    more = f'[ready]\nhttp = "/v1/models"\nno_progress = "0.4s"\n[forward]\n{local} = {remote}\n'
    path = rented.desk.profile("serve", f"exec /usr/bin/python3 {script} {remote} {go}", more)
    async with watched(rented) as (engine, _told):
        await until(lambda: engine.fleet.hosts[BOX].link in ("live", "degraded"), "it is connected")
        run = await engine.launch(await engine.plan(path))
        await until(
            lambda: _signatures(engine, run) == ["start-stuck"], "a start that stands still"
        )
        assert engine.runs.get(run).state == "running"  # type: ignore[union-attr]
        go.touch()
        await until(lambda: engine.runs.get(run).state == "ready", "it is ready")  # type: ignore[union-attr]
        around = engine.around(run)
        assert around.model == "Qwen/Qwen2.5"
        assert [(one.local_port, one.remote_port, one.is_open) for one in around.forwards] == [
            (local, remote, True)
        ]
        assert await answers(local)
        await rented.cut()
        await until(lambda: engine.runs.get(run).state == "ready", "ready again")  # type: ignore[union-attr]
        await until(lambda: engine.around(run).forwards[0].is_open, "forwarded again")
        assert await answers(local)
    assert not await answers(local)
    async with watched(rented) as (engine, _told):
        await until(lambda: engine.around(run).forwards, "the next cockpit knows the ports")
        await until(lambda: engine.around(run).forwards[0].is_open, "and opens them")
        assert await answers(local)
        await engine.stop(run)


def _signatures(engine: Engine, run: RunId) -> list[str]:
    return [one.finding.signature for one in engine.incidents.all() if one.run == run]


async def test_ports_of_a_pasted_command_are_forwarded_and_a_taken_one_is_told_and_waited_for(
    rented: Rented, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companions, "TRY_AGAIN_S", 0.1)
    target = socket.create_server(("127.0.0.1", 0))
    remote = target.getsockname()[1]
    taken = socket.create_server(("127.0.0.1", 0))
    first, second = free_port(), taken.getsockname()[1]
    forwards = (Forward(first, "127.0.0.1", remote), Forward(second, "localhost", remote))
    async with watched(rented, *forwards) as (engine, told):
        await until(lambda: len(engine.host_forwards(BOX)) == 2, "they are wanted")
        await until(lambda: engine.host_forwards(BOX)[0].is_open, "the first is open")
        await until(lambda: engine.host_forwards(BOX)[1].code == "port_taken", "the second is not")
        assert [e.facts["port"] for e in told if isinstance(e, OwnTrouble)] == [second]
        taken.close()
        await until(lambda: engine.host_forwards(BOX)[1].is_open, "it is free and taken")
        _reader, writer = await asyncio.open_connection("127.0.0.1", second)
        writer.write(b"hello")
        accepted, _address = await asyncio.to_thread(target.accept)
        assert await asyncio.to_thread(accepted.recv, 5) == b"hello"
        writer.close()
        accepted.close()
        await rented.cut()
        await until(
            lambda: all(one.is_open for one in engine.host_forwards(BOX)), "after a cut too"
        )
        troubles = [event for event in told if isinstance(event, OwnTrouble)]
        assert len(troubles) == 1
    target.close()
