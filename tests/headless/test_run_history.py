"""Runs of the past: `ps --all` of hosts that are gone, and commands on runs that only the history knows."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path

from tests.desk import Desk, until

NOWHERE = '[hosts.here]\nhost = "127.0.0.1"\nport = 1\nuser = "x"\n'
ANOTHER = '[hosts.other]\nhost = "127.0.0.1"\nport = 1\nuser = "x"\n'


async def test_ps_all_tells_ended_and_last_known_runs_of_a_host_that_is_silent_or_gone(
    desk: Desk,
) -> None:
    done = desk.profile("done", "echo step 3/10; exit 3")
    assert (await desk.call("run", done)).code == 3
    alive = await desk.detached(desk.profile("alive", "sleep 600"))
    (ended,) = desk.runs("done")
    here = await desk.call("ps", "--json")
    assert {row["run"]: row["state"] for row in here.events} == {ended: "exited", alive: "running"}

    desk.hosts(NOWHERE)
    silent, table, plain = await asyncio.gather(
        desk.call("ps", "--all", "--json"), desk.call("ps", "--all"), desk.call("ps", "--json")
    )
    rows = {row["run"]: row for row in silent.events}
    assert silent.code == 69 and list(rows) == [alive, ended]
    assert (rows[ended]["state"], rows[ended]["code"]) == ("exited", 3)
    assert rows[alive]["state"] == "unreachable"
    assert "unreachable (running" in table.out.decode()
    assert (plain.code, plain.out) == (69, b"")

    desk.hosts(ANOTHER)
    gone, named, unknown = await asyncio.gather(
        desk.call("ps", "--all", "--json"),
        desk.call("ps", "--all", "--host", "here", "--json"),
        desk.call("ps", "--all", "--host", "nowhere"),
    )
    assert [row["run"] for row in gone.events] == [alive, ended]
    assert named.code == 0 and [row["run"] for row in named.events] == [alive, ended]
    assert unknown.code == 64
    desk.this_machine()
    assert (await desk.call("stop", alive)).code == 0


async def test_commands_on_a_run_whose_host_is_gone_do_what_can_be_done_without_it(
    desk: Desk,
) -> None:
    assert (await desk.call("run", desk.profile("done", "echo hello; exit 3"))).code == 3
    (ended,) = desk.runs("done")
    alive = await desk.detached(desk.profile("alive", "sleep 600"))
    desk.hosts(ANOTHER)
    wait, logs, last, all_of_it, attach, stop, lost = await asyncio.gather(
        desk.call("wait", "done", "--json"),
        desk.call("logs", "done"),
        desk.call("logs", "done", "--from", "-3"),
        desk.call("logs", "done", "--from", "-300"),
        desk.call("attach", ended[:-1]),
        desk.call("stop", ended),
        desk.call("wait", alive),
    )
    assert (wait.code, wait.events[0]["state"]) == (3, "exited")
    assert (logs.code, logs.out) == (0, b"hello\n")
    assert (last.out, all_of_it.out) == (b"lo\n", b"hello\n")
    assert "not in hosts.toml" in logs.err and "all of its log is here" in logs.err
    assert "had ended when here was last heard" in wait.err
    assert (attach.code, attach.out) == (3, b"hello\n") and "ended with code 3" in attach.err
    assert stop.code == 0 and "Nothing of" in stop.err
    assert lost.code == 69 and "not in hosts.toml" in lost.err
    desk.this_machine()
    assert (await desk.call("stop", alive)).code == 0


async def test_a_copy_that_is_not_whole_says_what_is_missing(desk: Desk) -> None:
    done, alive = (
        desk.profile("done", "echo hello; exit 3"),
        desk.profile("alive", "echo one; sleep 600"),
    )
    assert (await desk.call("run", done)).code == 3
    (ended,) = desk.runs("done")
    client = await desk.start("run", alive)
    (mirror,) = await until_found(desk, "runs/here/alive-*/log")
    await until(lambda: mirror.read_bytes() == b"one\n", "its log is here")
    client.kill()
    await desk.end_of(client)
    desk.hosts(NOWHERE)
    whole = await desk.call("logs", ended)
    assert (whole.code, whole.out) == (0, b"hello\n"), whole.err
    open_end = await desk.call("logs", "alive")
    assert (open_end.code, open_end.out) == (69, b"one\n")
    assert "had not ended" in open_end.err and "after byte 4" in open_end.err
    copy = desk.home / "runs" / "here" / ended / "log"
    copy.write_bytes(b"hel")
    short = await desk.call("logs", ended)
    assert (short.code, short.out) == (69, b"hel") and "from byte 3 of 6 on" in short.err
    desk.this_machine()
    assert (await desk.call("stop", alive_run(desk))).code == 0


async def until_found(desk: Desk, pattern: str) -> list[Path]:
    await until(lambda: list(desk.home.glob(pattern)), pattern)
    return list(desk.home.glob(pattern))


def alive_run(desk: Desk) -> str:
    (run,) = desk.runs("alive")
    return run


async def test_a_prefix_of_several_runs_lists_those_of_the_history_too(desk: Desk) -> None:
    first = await desk.detached(desk.profile("two", "exit 1"))
    second = await desk.detached(desk.profile("two", "exit 2"))
    await asyncio.gather(desk.call("wait", first), desk.call("wait", second))
    desk.hosts(NOWHERE)
    done = await desk.call("wait", "two-")
    assert done.code == 64 and first in done.err and second in done.err
    newest = await desk.call("wait", "two")
    assert newest.code == 2


async def test_a_run_whose_folder_was_removed_is_lost_and_its_copy_is_still_there(
    desk: Desk,
) -> None:
    assert (await desk.call("run", desk.profile("done", "echo hello; exit 3"))).code == 3
    (ended,) = desk.runs("done")
    shutil.rmtree(desk.run_folder(ended))
    wait, logs, listed, everything = await asyncio.gather(
        desk.call("wait", ended),
        desk.call("logs", ended),
        desk.call("ps", "--json"),
        desk.call("ps", "--all", "--json"),
    )
    assert wait.code == 3
    assert (logs.code, logs.out) == (0, b"hello\n")
    assert listed.out == b"" and [row["code"] for row in everything.events] == [3]


async def test_the_step_of_a_run_that_nobody_follows_is_read_from_its_log(desk: Desk) -> None:
    bar = "printf ' 41%%|#   | 41/100 [00:10<00:20, 2.9it/s]'"
    script = f"for n in 1 2 3; do echo \"{{'loss': 0.5, 'step': $n}}\"; done; {bar}; sleep 600"
    run = await desk.detached(desk.profile("steps", script))
    log = desk.run_folder(run) / "log"
    await until(lambda: b"41/100" in log.read_bytes(), "it prints")
    listed = await desk.call("ps", "--json")
    assert [row["step"] for row in listed.events] == [41]
    assert (await desk.call("stop", run)).code == 0


async def test_a_broken_history_costs_the_history_and_nothing_else(desk: Desk) -> None:
    (desk.home / "cockpit.db").write_bytes(b"no database" * 200)
    done = await desk.call("run", desk.profile("fine", "echo hello; exit 5"))
    assert (done.code, done.out) == (5, b"hello\n")
    assert "damaged" in done.err and (desk.home / "cockpit.db.broken-1").exists()
    listed = await desk.call("ps", "--all", "--json")
    assert [row["code"] for row in listed.events] == [5]


async def test_no_secret_and_no_address_with_a_token_gets_into_the_history(desk: Desk) -> None:
    token, secret = "tok-very-secret-42", "hf_abcdefghijklmnop"
    more = (
        f'[env]\nsecrets = ["HF_TOKEN"]\nset = {{ OTHER = "{secret}" }}\n'
        f'[notify]\n# old: json://127.0.0.1:1/{token}-old\nurls = ["json://127.0.0.1:1/{token}"]\n'
    )
    path = desk.profile("quiet", 'echo "$HF_TOKEN"', more)
    done = await desk.call("run", path, env={"HF_TOKEN": secret})
    assert done.code == 0 and token not in done.err
    dry = await desk.call("run", path, "--dry-run", env={"HF_TOKEN": secret})
    assert token not in dry.out.decode() + dry.err
    kept = [each for each in desk.home.rglob("*") if each.is_file() and each.name != "log"]
    assert any(each.name == "cockpit.db" for each in kept)
    for each in kept:
        content = each.read_bytes()
        assert token.encode() not in content, each
        assert secret.encode() not in content, each


def origin_of(home: Path, run: str) -> dict[str, object]:
    import sqlite3

    with sqlite3.connect(home / "cockpit.db") as database:
        row = database.execute("SELECT origin FROM runs WHERE run = ?", (run,)).fetchone()
    value: dict[str, object] = json.loads(row[0])
    return value


async def test_a_run_is_kept_with_the_very_text_and_changes_that_it_was_started_from(
    desk: Desk,
) -> None:
    path = desk.profile("kept", "exit 0", "# a comment\n")
    text = Path(path).read_text()
    run = await desk.detached(path, "--set", "stop.int=3s")
    Path(path).unlink()
    found = origin_of(desk.home, run)
    assert (found["text"], found["overrides"]) == (text, ["stop.int=3s"])
    made = await desk.call("profile", "new", "--from", run, "mine")
    assert made.code == 0, made.err
    mine = (desk.home / "profiles" / "mine.toml").read_text()
    assert 'int = "3s"' in mine and "# a comment" in mine and 'name = "mine"' in mine


KILLED = """
import os, sys
from cockpit.engine.agent import RunAgent

start = RunAgent.start

async def claimed_and_killed(agent, spec):
    await start(agent, spec)
    os.kill(os.getpid(), 9)

RunAgent.start = claimed_and_killed
sys.argv = ["cockpit", "run", sys.argv[1], "--detach"]
from cockpit.cli import main
main()
"""


async def test_a_run_whose_client_was_killed_as_its_host_claimed_it_can_be_started_again(
    desk: Desk,
) -> None:
    path = desk.profile("cut", "exit 5", "# a comment\n")
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, path, cwd=desk.folder, env=desk.environ
    )
    assert await asyncio.wait_for(client.wait(), 60) == -9
    (run,) = desk.runs("cut")
    await until(lambda: b'"code"' in (desk.run_folder(run) / "exit").read_bytes(), "it ends")
    first = await desk.call("profile", "new", "--from", run, "before")
    assert first.code == 0, first.err
    assert [row["run"] for row in (await desk.call("ps", "--json")).events] == [run]
    made = await desk.call("profile", "new", "--from", run, "after")
    assert made.code == 0, made.err
    texts = {
        name: (desk.home / "profiles" / f"{name}.toml").read_text() for name in ("before", "after")
    }
    assert all("# a comment" in text for text in texts.values())
    assert (await desk.call("run", str(desk.home / "profiles" / "after.toml"))).code == 5
