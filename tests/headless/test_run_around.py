"""Hooks, messages and budgets of `cockpit run` and `attach`: waited for, told once, and never with an address."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.desk import Desk, until

TOKEN = "tok-0123456789"
HOOK = "printf '%s\\n' \"$COCKPIT_EVENT $COCKPIT_RUN $COCKPIT_EXIT_CODE $COCKPIT_FAMILY\" >> "


@pytest.fixture
def inbox() -> Iterator[tuple[str, list[str]]]:
    """An address on loopback, and the paths that were posted to."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"127.0.0.1:{server.server_port}", paths
    server.shutdown()
    thread.join()
    server.server_close()


def told(desk: Desk) -> list[str]:
    path = desk.folder / "told"
    return path.read_text().splitlines() if path.exists() else []


async def test_the_end_s_hook_and_message_are_done_when_the_command_returns(
    desk: Desk, inbox: tuple[str, list[str]]
) -> None:
    pytest.importorskip("apprise")
    address, paths = inbox
    more = (
        f"[hooks]\non_end = '''sleep 0.5; {HOOK}{desk.folder}/told'''\n"
        f'[notify]\nurls = ["json://{address}/{TOKEN}"]\n'
    )
    done = await desk.call("run", desk.profile("ends", "exit 3", more))
    (run,) = desk.runs("ends")
    assert done.code == 3
    assert told(desk) == [f"on_end {run} 3 "]
    assert paths == [f"/{TOKEN}"]
    assert TOKEN not in done.err and TOKEN not in (await desk.call("ps", "--all")).out.decode()


async def test_a_hook_that_fails_and_an_address_that_refuses_are_said_without_it(
    desk: Desk,
) -> None:
    pytest.importorskip("apprise")
    more = (
        "[hooks]\non_end = 'echo no room >&2; exit 9'\n"
        f'[notify]\nurls = ["json://127.0.0.1:1/{TOKEN}"]\n'
    )
    done = await desk.call("run", desk.profile("bad", "exit 0", more))
    assert done.code == 0
    assert "A hook failed: on_end: exit 9, no room." in done.err
    assert "The message by json was not taken." in done.err
    log = desk.home / "cockpit.log"
    assert "no room" in log.read_text() and TOKEN not in log.read_text() + done.err


async def test_of_several_cockpits_that_follow_a_run_one_tells_of_its_end(desk: Desk) -> None:
    go = desk.folder / "go"
    more = f"[hooks]\non_end = '''{HOOK}{desk.folder}/told'''\n"
    script = f"echo on; while [ ! -e {go} ]; do sleep 0.05; done; exit 4"
    run = await desk.detached(desk.profile("many", script, more))
    followers = [await desk.start(command, run) for command in ("attach", "attach", "wait")]
    for follower in followers[:2]:
        assert follower.stdout is not None
        assert await asyncio.wait_for(follower.stdout.readline(), 60) == b"on\n"
    go.touch()
    ends = await asyncio.gather(*(desk.end_of(follower) for follower in followers))
    assert [end.code for end in ends] == [4, 4, 4]
    assert told(desk) == [f"on_end {run} 4 "]


async def test_a_budget_stops_the_run_and_the_command_says_so(desk: Desk) -> None:
    more = (
        "[stop]\nint = '5s'\n[budget]\nmax_hours = 0.0002\naction = 'stop'\n"
        f"[hooks]\non_incident = '''{HOOK}{desk.folder}/told'''\n"
    )
    done = await desk.call("run", desk.profile("dear", "sleep 600", more), "--json")
    (run,) = desk.runs("dear")
    signatures = [event["signature"] for event in done.named("incident")]
    assert "budget-reached" in signatures
    ended = done.named("run.exited")[0]
    assert ended["by"] == "cockpit" and done.code == 130
    assert f"on_incident {run}  cost" in told(desk)


async def test_the_plan_says_what_budget_and_messages_cannot_do(desk: Desk) -> None:
    desk.this_machine(price="2 EUR/h")
    more = (
        '[budget]\nmax_cost = "5 USD"\naction = "stop"\n'
        f'[notify]\nurls = ["{TOKEN}", "ntfy://{TOKEN}"]\n'
    )
    path = desk.profile("plan", "exit 0", more)
    dry = await desk.call("run", path, "--dry-run", "--json")
    (plan,) = dry.events
    codes = {check["code"] for check in plan["checks"] if check["verdict"] == "warning"}
    assert {"budget_other_currency", "budget_stop_needs_us", "notify_bad_url"} <= codes
    assert "table_later" not in codes
    words = await desk.call("run", path, "--dry-run")
    assert "costs EUR and [budget] counts USD" in words.out.decode()
    assert TOKEN not in dry.out.decode() + words.out.decode()


async def test_a_hook_outlives_a_command_that_is_left(desk: Desk) -> None:
    more = f"[hooks]\non_end = '''sleep 1; {HOOK}{desk.folder}/told'''\n"
    process = await desk.start("run", desk.profile("left", "exit 0", more))

    def hook_runs() -> bool:
        return any(_cmdline(pid) == b"sleep\x001\x00" for pid in desk.processes())

    await until(hook_runs, "the hook runs")
    process.kill()
    await process.wait()
    await until(lambda: told(desk), "it ends by itself")


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_an_end_that_nobody_saw_is_made_up_for_once_by_who_waits_later(desk: Desk) -> None:
    told = desk.folder / "told"
    run = await desk.detached(
        desk.profile("late", "exit 3", f"[hooks]\non_end = 'echo end >> {told}'\n")
    )
    await until(lambda: (desk.run_folder(run) / "exit").exists(), "it has ended")
    for _time in range(2):
        assert (await desk.call("wait", run)).code == 3
        assert told.read_text() == "end\n"
