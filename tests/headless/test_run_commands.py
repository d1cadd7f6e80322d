"""`ps`, `logs`, `attach`, `wait` and `stop`: what they print, what they find, what they end with."""

from __future__ import annotations

import asyncio
import glob
import json
import subprocess
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView
from cockpit.engine.shipping import PYTHONS
from tests.desk import Desk, until

PS_KEYS = [
    "run", "name", "host", "state", "code", "signal", "started_s", "ended_s", "gpus", "step", "degraded",
]  # fmt: skip


async def test_ps_lists_every_run_of_every_host_with_the_keys_of_the_design(desk: Desk) -> None:
    failed = await desk.detached(desk.profile("failed", "exit 3"))
    assert (await desk.call("wait", failed)).code == 3
    alive = await desk.detached(desk.profile("alive", "sleep 600"))
    desk.hosts(
        '[hosts.here]\nlocal = true\n[hosts.gone]\nhost = "127.0.0.1"\nport = 1\nuser = "x"\n'
    )
    listed, table, one = await asyncio.gather(
        desk.call("ps", "--json"), desk.call("ps"), desk.call("ps", "--host", "gone")
    )
    assert listed.code == 0 and "gone" in listed.err
    rows = listed.events
    assert [list(row) for row in rows] == [PS_KEYS, PS_KEYS]
    assert [(row["run"], row["name"], row["state"], row["code"]) for row in rows] == [
        (alive, "alive", "running", None),
        (failed, "failed", "exited", 3),
    ]
    assert rows[1]["ended_s"] >= rows[1]["started_s"] > 1e9 and rows[0]["ended_s"] is None
    lines = table.out.decode().splitlines()
    assert lines[1].split()[:3] == [alive, "here", "running"]
    assert "exited 3" in lines[2]
    assert one.code == 69 and one.out == b""
    stopped = await desk.call("stop", "alive")
    assert stopped.code == 0 and stopped.out == b"" and "Nothing of alive-" in stopped.err
    again = await desk.call("stop", alive, "--json")
    assert again.code == 0 and again.events[0]["signals"] == []


async def test_stopping_a_name_says_which_others_of_it_go_on(desk: Desk) -> None:
    first = await desk.detached(desk.profile("twice", "sleep 600"))
    second = await desk.detached(desk.profile("twice", "sleep 600"))
    stopped = await desk.call("stop", "twice")
    assert stopped.code == 0 and stopped.out == b""
    assert f"Nothing of {second}" in stopped.err and f"go on: {first}." in stopped.err
    by_id = await desk.call("stop", first)
    assert by_id.code == 0 and "go on" not in by_id.err


async def test_no_runs_is_no_data(desk: Desk) -> None:
    done = await desk.call("ps")
    assert (done.code, done.out) == (0, b"") and "No runs." in done.err


async def test_a_run_is_named_by_id_prefix_or_profile_and_nothing_else(desk: Desk) -> None:
    first = await desk.detached(desk.profile("two", "echo 1; exit 1"))
    second = await desk.detached(desk.profile("two", "echo 2; exit 2"))
    await desk.call("wait", first)
    newest, exact, prefix = await asyncio.gather(
        desk.call("wait", "two", "--json"), desk.call("logs", first), desk.call("logs", second[:-1])
    )
    assert newest.code == 2 and newest.events[0]["run"] == second
    assert (exact.out, prefix.out) == (b"1\n", b"2\n")
    unknown, ambiguous, odd = await asyncio.gather(
        desk.call("wait", "nope"), desk.call("stop", "two-"), desk.call("logs", "../../etc")
    )
    assert unknown.code == 64 and "nope" in unknown.err
    assert ambiguous.code == 64 and first in ambiguous.err and second in ambiguous.err
    assert odd.code == 64


async def test_logs_follows_to_the_end_and_tells_lines_as_json(desk: Desk) -> None:
    go = desk.folder / "go"
    script = f"printf 'a\\377b\\n'; while [ ! -e {go} ]; do sleep 0.05; done; printf 'end'"
    run = await desk.detached(desk.profile("f", script))
    following = await desk.start("logs", "-f", run)
    assert following.stdout is not None
    assert await asyncio.wait_for(following.stdout.readline(), 60) == b"a\xffb\n"
    snapshot = await desk.call("logs", run)
    assert (snapshot.code, snapshot.out) == (0, b"a\xffb\n")
    go.touch()
    rest = await desk.end_of(following)
    assert (rest.code, rest.out) == (0, b"end")
    lines = await desk.call("logs", run, "--json")
    assert [(one["event"], one["offset"], one["text"]) for one in lines.events] == [
        ("log", 0, "a\ufffdb"),
        ("log", 4, "end"),
    ]
    beyond = await desk.call("logs", run, "--from", "99999")
    assert (beyond.code, beyond.out) == (0, b"")


async def test_a_log_whose_middle_was_given_back_says_so_and_never_prints_zeros(desk: Desk) -> None:
    writer = desk.file(
        "write.py", "import sys\nfor n in range(60000): print(f'{n:08d} ' + 'x' * 90)\n"
    )
    script = f"{desk.environ.get('PY', 'python3')} {writer}; sleep 3; echo end"
    run = await desk.detached(desk.profile("big", script, '[log]\nmax = "1 MiB"\n'))
    await desk.call("wait", run)
    printed, attached = await asyncio.gather(
        desk.call("logs", run), desk.call("attach", run, "--json")
    )
    assert b"\0" not in printed.out and printed.out.endswith(b"end\n")
    if len(printed.out) < 60000 * 100:  # where the file system can punch holes
        assert "are not on the host any more" in printed.err
        texts = [event["text"] for event in attached.named("log")]
        assert texts[-1] == "end" and not any("\0" in text for text in texts)
        offsets = [event["offset"] for event in attached.named("log")]
        assert offsets == sorted(offsets) and offsets[-1] == 60000 * 100


async def test_a_log_that_its_job_cuts_goes_on_and_loses_nothing_after_it(desk: Desk) -> None:
    go = desk.folder / "go"
    script = (
        f'echo old; while [ ! -e {go} ]; do sleep 0.05; done; : > "$COCKPIT_DIR/log";'
        " sleep 1; echo new; echo end"
    )
    process = await desk.start("run", desk.profile("cut", script))
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"old\n"
    go.touch()
    done = await desk.end_of(process)
    assert done.code == 0 and done.out == b"new\nend\n"
    assert "cut its log" in done.err


async def test_a_home_that_cannot_hold_the_log_is_74_and_the_run_goes_on(desk: Desk) -> None:
    (desk.home / "runs").write_text("in the way")
    done = await desk.call("run", desk.profile("kept", "sleep 600"))
    assert done.code == 74 and "runs" in done.err
    (run,) = desk.runs("kept")
    assert desk.of_run(run)
    assert (await desk.call("stop", run)).code == 0
    await until(lambda: not desk.of_run(run), "it is over")


async def test_what_a_host_says_of_a_run_reaches_the_terminal_harmless(desk: Desk) -> None:
    run = await desk.detached(desk.profile("plain", "exit 0"))
    await desk.call("wait", run)
    spec = desk.run_folder(run) / "spec.json"
    told = json.loads(spec.read_text())
    told["profile"] = "evil\x1b]0;x\x07"
    told["argv"] = ["\x1b[2J"] * 3
    Path(spec).write_text(json.dumps(told))
    table, listed = await asyncio.gather(desk.call("ps"), desk.call("ps", "--json"))
    assert b"\x1b" not in table.out and "\x1b" not in listed.events[0]["name"]


async def test_a_host_without_python_runs_by_its_shell_and_says_what_it_lacks(desk: Desk) -> None:
    hidden = {
        str(Path(found).resolve())
        for place in PYTHONS
        for found in (glob.glob(place) if "/" in place else [])
    }
    if str(Path(sys.executable).resolve()) in hidden:
        pytest.skip("cockpit itself runs by a Python that a host would find")
    mounts = "; ".join(f"mount --bind /dev/null {path}" for path in sorted(hidden)) or "true"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own")
    path = desk.profile("none", "echo by sh; exit 42")
    command = f"{mounts}; exec {sys.executable} -m cockpit run {path}"
    process = await asyncio.create_subprocess_exec(
        "unshare", "-m", "sh", "-c", command,
        cwd=desk.folder, env={**desk.environ, "PATH": "/usr/bin:/bin:/usr/sbin"},
        stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    done = await desk.end_of(process)
    assert (done.code, done.out) == (42, b"by sh\n"), done.err
    assert "no Python" in done.err and "no queue" in done.err
    (run,) = desk.runs("none")
    listed = await desk.call(
        "ps", "--json"
    )  # by the Python that is there now: it reads the same folder
    (row,) = [event for event in listed.events if event["run"] == run]
    assert (row["state"], row["code"]) == ("exited", 42)


def test_ages_are_by_the_clock_of_the_host() -> None:
    """It stands in 1970: what ended there a minute ago is of today."""
    from cockpit.headless import ps

    wall_s = 1.7e9
    view = RunView(
        RunId("a-1"), "a", "command", HostName("h"), "exited", code=0, started_s=10.0, ended_s=4000.0,
        ahead_s=4060.0 - wall_s,
    )  # fmt: skip
    assert ps._is_recent(view, wall_s) and "1 m ago" in ps._table([view], wall_s, {})
    assert not ps._is_recent(view, wall_s + 2 * 86400.0)
