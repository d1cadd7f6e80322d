"""Runs over a real sshd whose connections are cut: no byte lost or repeated, every code right."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.desk import until
from tests.rented import Rented, rented_box
from tests.servers import Identity, free_port

pytestmark = pytest.mark.sshd


@pytest.fixture
async def rented(tmp_path: Path) -> AsyncIterator[Rented]:
    async with rented_box(tmp_path) as made:
        yield made


NOISE = """
import os, random, sys, time
source = random.Random(1)
for step in range(120):
    os.write(1, b"\\r%d%%|###" % step + source.randbytes(20000) + b"x" * 20000 + "显存\\n".encode())
    time.sleep(0.1)
print("done")
sys.exit(11)
"""


async def test_cut_links_lose_and_repeat_no_byte(rented: Rented) -> None:
    script = rented.desk.file("noise.py", NOISE)
    path = rented.desk.profile("noise", f"exec /usr/bin/python3 {script}")
    process = await rented.desk.start("run", path)
    await until(lambda: rented.runs("noise"), "it runs")
    ending = asyncio.ensure_future(rented.desk.end_of(process))
    for _ in range(3):
        await rented.cut()
    done = await ending
    (folder,) = rented.runs("noise")
    on_host = (folder / "log").read_bytes()
    assert done.code == 11
    assert hashlib.sha256(done.out).digest() == hashlib.sha256(on_host).digest()
    assert "The connection to box is gone" in done.err and "box answers again" in done.err
    mirror = rented.desk.home / "runs" / "box" / folder.name / "log"
    assert mirror.read_bytes() == on_host


async def test_a_copy_without_room_costs_no_byte_of_what_is_printed(rented: Rented) -> None:
    """`logs` is the room for copies: what does not fit comes from the host a second time."""
    (rented.desk.home / "settings.toml").write_text('logs = "1 MiB"\n')
    path = rented.desk.profile("big", "seq 1 600000; exit 5")
    done = await rented.desk.call("run", path)
    assert done.code == 5
    assert done.out == b"".join(b"%d\n" % number for number in range(1, 600_001))
    (folder,) = rented.runs("big")
    copy = rented.desk.home / "runs" / "box" / folder.name / "log"
    assert copy.stat().st_size <= 1 << 20
    again = await rented.desk.call("attach", folder.name)
    assert (again.code, again.out) == (5, done.out)


async def test_json_tells_of_the_cut_and_ctrl_c_during_it_stops_after_it(rented: Rented) -> None:
    path = rented.desk.profile(
        "long", "trap 'echo saved; exit 4' INT; echo on; while :; do sleep 0.05; done"
    )
    process = await rented.desk.start("run", path, "--json")
    assert process.stdout is not None
    seen: list[str] = []

    async def reach(name: str) -> None:
        while name not in seen:
            line = await asyncio.wait_for(process.stdout.readline(), 60)  # type: ignore[union-attr]
            seen.append(json.loads(line)["event"])

    await reach("log")
    rented.sshd.kill_connections()
    await reach("link.lost")
    process.send_signal(signal.SIGINT)
    await reach("run.stopping")
    done = await rented.desk.end_of(process)
    assert done.code == 4
    names = done.names
    assert "link.restored" in seen + names and names[-1] == "run.exited"
    assert [event["text"] for event in done.named("log")] == ["saved"]


async def test_another_computer_sees_the_run_follows_it_and_stops_it(
    rented: Rented, tmp_path: Path
) -> None:
    run = await rented.desk.detached(rented.desk.profile("shared", "echo here; sleep 600"))
    other = rented.desk_of(tmp_path / "other")
    (row,) = (await other.call("ps", "--json")).events
    assert (row["run"], row["name"], row["host"], row["state"]) == (run, "shared", "box", "running")
    attached = await other.start("attach", "shared")
    assert attached.stdout is not None
    assert await asyncio.wait_for(attached.stdout.readline(), 60) == b"here\n"
    stopped = await other.call("stop", run)
    assert stopped.code == 0
    assert (await other.end_of(attached)).code == 130
    assert (await rented.desk.call("wait", run)).code == 130
    assert await other.clear() == []


SERVER = """
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready = time.monotonic() - begun > 1.5
        self.send_response(200 if ready else 503)
        self.end_headers()
        self.wfile.write(b"up" if ready else b"")
    def log_message(self, *args): pass
begun = time.monotonic()
print("listening", flush=True)
http.server.HTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
"""


async def test_a_server_is_ready_when_it_answers_and_is_forwarded_again_after_a_cut(
    rented: Rented,
) -> None:
    remote, local = free_port(), free_port()
    script = rented.desk.file("server.py", SERVER.replace("PORT", str(remote)))
    more = f'[ready]\nhttp = "/health"\n[forward]\n{local} = {remote}\n'
    path = rented.desk.profile("serve", f"exec /usr/bin/python3 {script}", more)
    process = await rented.desk.start("run", path, "--json")
    assert process.stdout is not None
    seen: list[str] = []

    async def reach(name: str) -> None:
        while name not in seen:
            line = await asyncio.wait_for(process.stdout.readline(), 60)  # type: ignore[union-attr]
            seen.append(json.loads(line)["event"])

    def fetched() -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{local}/", timeout=5) as answer:
            return bytes(answer.read())

    await reach("run.ready")
    assert seen.index("run.started") < seen.index("run.ready")
    assert await asyncio.to_thread(fetched) == b"up"
    rented.sshd.kill_connections()
    await reach("link.restored")
    await until(lambda: is_listening(local), "the port is forwarded again")
    assert await asyncio.to_thread(fetched) == b"up"
    process.send_signal(signal.SIGINT)
    assert (await rented.desk.end_of(process)).code == 130


def is_listening(port: int) -> bool:
    wanted = f"0100007F:{port:04X} 00000000:0000 0A"
    return wanted in Path("/proc/net/tcp").read_text()


async def test_a_jump_may_be_a_host_that_the_command_is_not_about(rented: Rented) -> None:
    text = (rented.desk.home / "hosts.toml").read_text()
    inner = text.replace("[hosts.box]", "[hosts.inner]") + 'jump = "box"\n'
    rented.desk.hosts(text + inner)
    path = rented.desk.profile("inside", "echo inside; exit 3")
    ran, seen = await asyncio.gather(
        rented.desk.call("run", path, "--host", "inner"),
        rented.desk.call("status", "--host", "inner", "--json"),
    )
    assert (ran.code, ran.out) == (3, b"inside\n")
    assert seen.code == 0, seen.err


async def test_a_host_that_does_not_take_our_key_or_is_unknown_is_told_by_its_code(
    rented: Rented, tmp_path: Path
) -> None:
    path = rented.desk.profile("never", "echo never")
    (rented.desk.home / "known_hosts").unlink()
    unknown = await rented.desk.call("run", path)
    assert unknown.code == 77 and "is new to cockpit" in unknown.err
    wrong = rented.desk_of(tmp_path / "wrong")
    stranger = Identity.make(tmp_path / "id_stranger")
    text = (wrong.home / "hosts.toml").read_text().replace(str(rented.key.file), str(stranger.file))
    wrong.hosts(text)
    for command in (["run", path], ["ps"], ["stop", "never"], ["logs", "never"]):
        refused = await wrong.call(*command)
        assert refused.code == 69 and refused.out == b"", command
    assert rented.runs("never") == []


async def test_logs_of_a_host_that_is_gone_come_from_the_copy_here(rented: Rented) -> None:
    path = rented.desk.profile("kept", "echo one; echo two")
    assert (await rented.desk.call("run", path)).code == 0
    rented.sshd.stop()
    done = await rented.desk.call("logs", "kept")
    assert done.code == 0 and done.out == b"one\ntwo\n"
    assert "refused the connection" in done.err and "It is whole: kept-" in done.err
