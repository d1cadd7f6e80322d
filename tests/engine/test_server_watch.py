"""A real HTTP server behind a real sshd: its page becomes numbers on its run, and incidents when it serves badly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.config.hosts import load_hosts
from cockpit.config.paths import Home
from cockpit.domain import server_watch as rules
from cockpit.domain.models import HostName, RunId
from cockpit.domain.server_sample import ServerSample
from cockpit.engine import server_watch
from cockpit.engine.engine import Engine
from cockpit.engine.server_watch import Cadence, Source, source_of
from tests.builders.server_pages import vllm
from tests.desk import until
from tests.rented import Rented, rented_box
from tests.servers import free_port

BOX = HostName("box")
QUICK = Cadence(every_s=0.1, slow_s=0.2, health_every_s=0.2, answer_s=1.0)

SERVER = """
import http.server, os, sys, time
folder = sys.argv[2]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        mode = open(folder + "/mode").read()
        with open(folder + "/asked", "a") as asked:
            asked.write(mode + "\\n")
        if mode == "silent":
            time.sleep(30)
        if mode == "moved" and self.path == "/metrics":
            self.send_response(302); self.send_header("Location", "/elsewhere"); self.end_headers(); return
        body = open(folder + "/page", "rb").read() if self.path == "/metrics" else b"up"
        if mode == "endless":
            self.send_response(200); self.end_headers()
            while True:
                self.wfile.write(b"vllm:num_requests_running 5\\n" * 4096)
        self.send_response(503 if mode == "dead" else 200)
        if mode == "chunked":
            self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
            for at in range(0, len(body), 50):
                piece = body[at:at + 50]
                self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(piece), piece))
            self.wfile.write(b"0\\r\\n\\r\\n")
            return
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class Server:
    """What the server of a run answers, changed by rewriting its files."""

    def __init__(self, rented: Rented) -> None:
        self.folder = rented.desk.folder / "served"
        self.folder.mkdir()
        self.port = free_port()
        self.says(vllm(2, 1, 0.25, 100))
        self.mode("plain")
        script = rented.desk.file("server.py", SERVER)
        more = f'[ready]\nhttp = "/health"\nport = {self.port}\n[metrics]\nport = {self.port}\n'
        words = f"exec /usr/bin/python3 {script} {self.port} {self.folder}"
        self.profile = rented.desk.profile("serve", words, more)

    def says(self, page: bytes) -> None:
        self._put("page", page)

    def mode(self, mode: str) -> None:
        self._put("mode", mode.encode())

    def _put(self, name: str, text: bytes) -> None:
        new = self.folder / f"{name}.new"
        new.write_bytes(text)
        new.rename(self.folder / name)


@pytest.fixture
async def rented(tmp_path: Path) -> AsyncIterator[Rented]:
    async with rented_box(tmp_path) as made:
        yield made


@asynccontextmanager
async def served(rented: Rented, server: Server) -> AsyncIterator[tuple[Engine, RunId]]:
    home = Home(rented.desk.home)
    engine = Engine(home, load_hosts(home))
    await engine.start()
    try:
        await until(lambda: engine.fleet.hosts[BOX].link in ("live", "degraded"), "it is connected")
        run = await engine.launch(await engine.plan(server.profile))
        yield engine, run
        await engine.stop(run)
    finally:
        await engine.close()


def numbers(engine: Engine, run: RunId) -> ServerSample | None:
    view = engine.runs.get(run)
    return None if view is None else view.served


def causes(engine: Engine, run: RunId, state: str = "open") -> list[str]:
    mine = (one for one in engine.incidents.all() if one.run == run and one.state == state)
    return [one.finding.cause for one in mine]


@pytest.mark.sshd
async def test_the_page_is_read_through_the_connection_in_every_form(
    rented: Rented, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "CADENCE", QUICK)
    server = Server(rented)
    async with served(rented, server) as (engine, run):
        await until(lambda: numbers(engine, run) is not None, "its numbers")
        version = engine.runs.version
        server.says(vllm(5, 0, 0.5, 600))
        await until(lambda: getattr(numbers(engine, run), "running", 0) == 5, "newer ones")
        now = numbers(engine, run)
        assert now is not None and now.gen_tokens_per_s is not None and now.gen_tokens_per_s > 0
        assert engine.runs.version > version
        for mode, running in (("chunked", 6), ("plain", 7)):
            server.mode(mode)
            server.says(vllm(running, 0, 0.5, 700))
            await until(lambda n=running: getattr(numbers(engine, run), "running", 0) == n, mode)  # type: ignore[misc]
        for mode in ("endless", "moved"):
            server.mode(mode)
            before = numbers(engine, run)
            await asyncio.sleep(0)
            server.says(vllm(9, 0, 0.5, 800))
            assert (
                numbers(engine, run) == before or getattr(numbers(engine, run), "running", 0) == 7
            )
        server.mode("plain")
        await until(lambda: getattr(numbers(engine, run), "running", 0) == 9, "it reads again")
        await rented.cut()
        server.says(vllm(4, 0, 0.5, 900))
        await until(lambda: getattr(numbers(engine, run), "running", 0) == 4, "after a cut")
        assert causes(engine, run) == []
    assert numbers(engine, run) is None


@pytest.mark.sshd
async def test_an_engine_that_dies_behind_its_open_port_is_an_incident_until_it_answers_again(
    rented: Rented, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "CADENCE", QUICK)
    monkeypatch.setattr(rules, "DEAD_S", 0.5)
    server = Server(rented)
    async with served(rented, server) as (engine, run):
        await until(lambda: numbers(engine, run) is not None, "its numbers")
        for mode in ("dead", "silent"):
            server.mode(mode)
            await until(lambda: causes(engine, run) == ["engine_dead"], mode)
            server.mode("plain")
            await until(lambda: causes(engine, run) == [], f"well after {mode}")


@pytest.mark.sshd
async def test_a_server_that_hangs_or_has_a_full_cache_is_an_incident(
    rented: Rented, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "CADENCE", QUICK)
    monkeypatch.setattr(rules, "STALL_EARLY_S", 0.5)
    server = Server(rented)
    async with served(rented, server) as (engine, run):
        await until(lambda: causes(engine, run) == ["server_stuck"], "it hangs")
        (incident,) = (one for one in engine.incidents.all() if one.run == run)
        assert incident.evidence[0].source == "metrics"
        assert "vllm:num_requests_running 2" in incident.evidence[0].text
    assert [one.state for one in engine.incidents.all() if one.run == run] == ["closed"]


@pytest.mark.sshd
async def test_scripts_hear_of_a_servers_numbers_as_metric_events(rented: Rented) -> None:
    server = Server(rented)
    process = await rented.desk.start("run", server.profile, "--json")
    assert process.stdout is not None
    while True:
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        assert line
        event = json.loads(line)
        if event["event"] == "metric":
            break
    process.terminate()
    await rented.desk.end_of(process)
    assert (event["host"], event["running"], event["waiting"], event["kv_usage"]) == (
        "box",
        2,
        1,
        0.25,
    )
    assert event["ttft_p50_s"] is None and "e2e_p95_s" in event and "gen_tokens_per_s" in event
    assert event["run"] and event["at_s"] > 0


@pytest.mark.parametrize(
    ("kind", "metrics", "expected"),
    [
        pytest.param("vllm", (9000, "/m"), Source(9000, "/m"), id="its-profile"),
        pytest.param("vllm", None, Source(8000, "/metrics", "/health"), id="vllm"),
        pytest.param(
            "trtllm", None, Source(8000, "/prometheus/metrics", "/health", "/metrics"), id="trtllm"
        ),
        pytest.param("ollama", None, Source(8000, "/api/ps", "/health"), id="ollama"),
        pytest.param("torchrun", None, None, id="no-server"),
    ],
)
def test_where_a_server_tells_how_it_does(
    kind: str, metrics: tuple[int, str] | None, expected: Source | None
) -> None:
    assert source_of(kind, metrics, 8000, ("/health", "/v1/models")) == expected
