"""Runs on a host without Python: the real script by dash, bash and busybox, with real processes and files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_record import RunRecord
from cockpit.domain.run_spec import Card, GpuRequest, RestartPolicy
from cockpit.engine.agent_frames import Data, End, Truncated
from cockpit.engine.sh_agent import ShAgent
from cockpit.engine.sh_order import SHELL_NAMES
from cockpit.errors import LaunchFailed, LinkLost, RunUnknown
from tests.agents import PipeTransport
from tests.remote.supervised import (
    LIMIT_S,
    alive,
    bystander,
    of_home,
    shell,
    spec,
    start_of,
    until,
    write_record,
)
from tests.shells import SHELLS, ShTransport, toolbox

RUN = RunId(f"sh-{os.getpid()}")
"""A stop finds its processes by this mark, on the whole machine: tests beside us have another."""


@dataclass
class Bench:
    transport: ShTransport
    agent: ShAgent

    @property
    def home(self) -> Path:
        return self.transport.home

    def folder(self, run: str = RUN) -> Path:
        (found,) = self.home.glob(f"**/v1/*/{run}")
        return found

    async def ended(self, run: str = RUN) -> RunRecord:
        deadline_s = time.monotonic() + LIMIT_S
        while True:
            record = await self.agent.status(RunId(run))
            if record.state in ("exited", "lost"):
                return record
            assert time.monotonic() < deadline_s, record
            await asyncio.sleep(0.05)

    async def new_agent(self) -> None:
        await self.agent.close()
        self.agent = self.transport.agent()
        await self.agent.open()

    async def pid_of(self, name: str) -> int:
        path = self.home / name
        await until(lambda: path.exists() and path.read_text().endswith("\n"), name)
        return int(path.read_text())


async def opened(home: Path, by: str, **more: object) -> Bench:
    transport = ShTransport(home, by, **more)  # type: ignore[arg-type]
    agent = transport.agent()
    await agent.open()
    return Bench(transport, agent)


async def left_alone(bench: Bench) -> None:
    await bench.agent.close()
    try:
        await until(lambda: not of_home(bench.home), "no process is left")
    finally:
        for pid in of_home(bench.home):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=sorted(SHELLS))
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await opened(tmp_path, request.param)
    yield bench
    await left_alone(bench)


@pytest.fixture
async def dash(tmp_path: Path) -> AsyncIterator[Bench]:
    """Where the shell makes no difference, the one that most hosts have."""
    bench = await opened(tmp_path, "dash")
    yield bench
    await left_alone(bench)


async def log_of(agent: ShAgent, run: str = RUN, offset: int = 0) -> bytes:
    parts = []
    async with aclosing(agent.tail(RunId(run), offset)) as frames:
        async for frame in frames:
            if isinstance(frame, Data):
                parts.append(frame.data)
    return b"".join(parts)


# -- a run's life ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 42", 42, None),
        ("kill -9 $$", None, 9),
        ("kill -TERM $$", None, 15),
    ],
    ids=["zero", "code", "killed", "terminated"],
)
async def test_the_end_of_a_job_is_kept_as_it_was(
    bench: Bench, script: str, code: int | None, number: int | None
) -> None:
    reply = await bench.agent.start(shell(RUN, f"echo out; echo err >&2; {script}"))
    assert not reply.existed
    record = await bench.ended()
    assert (record.state, record.code, record.signal, record.by) == ("exited", code, number, "job")
    assert await log_of(bench.agent) == b"out\nerr\n"


async def test_what_is_not_there_ends_with_127_and_says_so_in_the_log(dash: Bench) -> None:
    await dash.agent.start(spec(RUN, "/no/such/program"))
    assert (await dash.ended()).code == 127
    assert b"/no/such/program" in await log_of(dash.agent)


async def test_a_job_is_in_a_session_of_its_own_and_hears_every_signal(bench: Bench) -> None:
    script = (
        "cat /proc/$$/status; cat /proc/$$/stat; ls -l /proc/$$/fd >&2; echo $$ >pid; sleep 600"
    )
    await bench.agent.start(shell(RUN, script))
    pid = await bench.pid_of("pid")
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn"))
    assert int(ignored.split()[1], 16) & 0b111 == 0  # HUP, INT, QUIT
    assert os.getsid(pid) != os.getsid(bench.transport.channels[0].process.pid)
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    assert os.readlink(f"/proc/{pid}/fd/1") == str(bench.folder() / "log")
    record = await bench.agent.status(RUN)
    assert (record.state, record.degraded) == ("running", "sh_only")
    await bench.agent.stop(RUN, int_s=0.0, term_s=0.0)


@pytest.mark.parametrize("without", [("flock",), ("grep",), ("setsid",)], ids=lambda name: name[0])
async def test_a_host_may_lack_what_is_not_of_coreutils(
    tmp_path: Path, without: tuple[str, ...]
) -> None:
    bench = await opened(tmp_path, "dash", without=without)
    try:
        await bench.agent.start(shell(RUN, "echo $$ >pid; sleep 600"))
        await bench.pid_of("pid")
        outcome = await bench.agent.stop(RUN, int_s=5.0, term_s=5.0)
        told = {p.name: p.read_text().split("\n")[0].strip() for p in bench.folder().iterdir()}
        assert (outcome.record.state, outcome.left) == ("exited", ()), told
    finally:
        await left_alone(bench)


@pytest.mark.parametrize("by", ["busybox", "perl", "timeout"])
async def test_a_job_that_signals_its_group_ends_nobody_else_on_a_host_without_setsid(
    tmp_path: Path, by: str
) -> None:
    place = shutil.which(by)
    if place is None:
        pytest.skip(f"no {by} here")
    more = tmp_path / "more"
    more.mkdir()
    (more / by).symlink_to(Path(place).resolve())
    path = f"{toolbox(('setsid', 'timeout'))}:{more}"
    bench = await opened(tmp_path, "dash", env={"PATH": path})
    try:
        await bench.agent.start(shell("sh-other", "echo $$ >other; exec sleep 600"))
        other = await bench.pid_of("other")
        await bench.agent.start(shell(RUN, "trap 'exit 7' TERM; kill 0; sleep 600"))
        record = await bench.ended()
        assert (record.state, record.code, record.by) == ("exited", 7, "job")
        assert alive(other) and os.getpgid(other) != os.getpgrp()
        outcome = await bench.agent.stop(RunId("sh-other"), int_s=5.0, term_s=5.0)
        assert (outcome.signals, outcome.left) == (("INT",), ())
    finally:
        await left_alone(bench)


async def test_without_anything_that_keeps_a_job_apart_none_is_started(tmp_path: Path) -> None:
    bench = await opened(tmp_path, "dash", without=("setsid", "timeout"))
    try:
        with pytest.raises(LaunchFailed) as refused:
            await bench.agent.start(shell(RUN, "true"))
        assert refused.value.facts["why"] == "no_session"
        assert not list(bench.home.glob(f"**/v1/*/{RUN}"))
    finally:
        await left_alone(bench)


async def test_a_job_goes_on_when_its_agent_is_killed_and_the_next_one_knows_its_end(
    bench: Bench,
) -> None:
    await bench.agent.start(shell(RUN, "while [ ! -e go ]; do sleep 0.05; done; exit 7"))
    bench.transport.kill()
    with pytest.raises(LinkLost):
        await bench.agent.status(RUN)
    await bench.new_agent()
    assert (await bench.agent.status(RUN)).state == "running"
    (bench.home / "go").touch()
    assert (await bench.ended()).code == 7


async def test_a_second_start_finds_the_first(bench: Bench) -> None:
    await bench.agent.start(shell(RUN, "echo once >>count; exit 3"))
    await bench.ended()
    await bench.new_agent()
    again = await bench.agent.start(shell(RUN, "echo twice >>count"))
    assert again.existed and again.record.code == 3
    assert (bench.home / "count").read_text() == "once\n"


async def test_an_order_that_was_cut_short_starts_nothing(dash: Bench) -> None:
    channel = dash.transport.channels[0]
    await channel.write(b'start 99 cut-1\nS {"run":"cut-1"\nC ~\nN 0\nclaim\nW true\n')
    await until(lambda: list(dash.home.glob("**/v1/*/cut-1")), "the claim")
    await channel.write_eof()
    await channel.process.wait()
    assert not list(dash.home.glob("**/v1/*/cut-1"))


async def test_a_python_that_comes_later_reads_the_same_run(bench: Bench) -> None:
    await bench.agent.start(shell(RUN, "echo hello; exit 5", tags=("x",)))
    await bench.ended()
    python = PipeTransport(bench.home)
    agent = python.agent()
    hello = await agent.open()
    try:
        assert hello.root == str(bench.folder().parent)
        record = await agent.status(RUN)
        assert (record.state, record.code, record.tags, record.log_bytes) == (
            "exited",
            5,
            ("x",),
            6,
        )
    finally:
        await agent.close()


async def test_a_run_of_a_python_that_went_is_read_by_the_shell(dash: Bench) -> None:
    python = PipeTransport(dash.home)
    agent = python.agent()
    await agent.open()
    await agent.start(shell(RUN, "echo hello; exit 6"))
    await until(lambda: b'"code"' in (dash.folder() / "exit").read_bytes(), "its end")
    await agent.close()
    record = await dash.agent.status(RUN)
    assert (record.state, record.code, record.degraded) == ("exited", 6, None)
    assert [each.run for each in await dash.agent.list()] == [RUN]


async def test_a_log_of_a_python_that_went_ends_when_its_run_does(dash: Bench) -> None:
    python = PipeTransport(dash.home)
    agent = python.agent()
    await agent.open()
    await agent.start(shell(RUN, "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two"))
    await agent.close()
    frames = dash.agent.tail(RUN)
    assert await anext(frames) == Data(0, b"one\n")
    (dash.home / "go").touch()
    assert await anext(frames) == Data(4, b"two\n")
    end = await anext(frames)
    assert isinstance(end, End) and (end.record.code, end.record.by) == (0, "job")
    await frames.aclose()


async def test_a_hook_of_a_python_that_went_is_no_running_job(dash: Bench) -> None:
    python = PipeTransport(dash.home)
    agent = python.agent()
    await agent.open()
    await agent.start(shell(RUN, "echo job", before="echo $$ >$HOME/hook; exec sleep 600"))
    hook = await dash.pid_of("hook")
    await agent.close()
    supervisor = json.loads((dash.folder() / "sup.json").read_text())["pid"]
    os.kill(supervisor, signal.SIGKILL)
    await until(lambda: not alive(supervisor))
    record = await dash.agent.status(RUN)
    assert (record.state, record.degraded) == ("starting", "supervisor_died")
    os.killpg(os.getpgid(hook), signal.SIGKILL)
    record = await dash.ended()
    assert (record.state, record.reason) == ("lost", "hook_cut_off")


# -- states ------------------------------------------------------------------------------------


async def test_a_shim_that_is_killed_leaves_a_run_that_lives_and_then_is_lost(bench: Bench) -> None:
    await bench.agent.start(shell(RUN, "echo $$ >pid; sleep 600"))
    pid = await bench.pid_of("pid")
    shim = json.loads((bench.folder() / "sup.json").read_text())["job_pid"]
    os.kill(shim, signal.SIGKILL)
    await until(lambda: not alive(shim), "the sh is gone")
    assert (await bench.agent.status(RUN)).state == "running"
    os.killpg(os.getpgid(pid), signal.SIGKILL)
    record = await bench.ended()
    assert (record.state, record.reason, record.code) == ("lost", "killed_without_record", None)


async def test_a_host_that_restarted_has_lost_its_run(dash: Bench) -> None:
    await dash.agent.start(shell(RUN, "kill -9 $PPID"))
    await dash.ended()
    path = dash.folder() / "sup.json"
    told = json.loads(path.read_text())
    write_record(path, {**told, "pid1_start": told["pid1_start"] + 1})
    record = await dash.agent.status(RUN)
    assert (record.state, record.reason) == ("lost", "host_restarted")


async def test_an_unknown_run_is_unknown(dash: Bench) -> None:
    with pytest.raises(RunUnknown):
        await dash.agent.status(RunId("no-such"))


# -- stopping ----------------------------------------------------------------------------------


async def test_a_stop_ends_a_stubborn_job_its_worker_elsewhere_and_nobody_else(
    bench: Bench,
) -> None:
    worker = "trap '' INT TERM; echo \\$\\$ >worker; while :; do sleep 1; done"
    script = f'trap "" INT TERM; setsid sh -c "{worker}" & echo $$ >pid; while :; do sleep 1; done'
    with bystander() as other:
        await bench.agent.start(shell(RUN, script))
        pids = [await bench.pid_of("pid"), await bench.pid_of("worker")]
        outcome = await bench.agent.stop(RUN, int_s=0.2, term_s=0.2)
        assert outcome.signals == ("INT", "TERM", "KILL")
        assert (outcome.record.signal, outcome.record.by, outcome.left) == (9, "cockpit", ())
        assert not any(map(alive, pids)) and other.poll() is None


async def test_a_job_that_heeds_int_is_sent_no_more(bench: Bench) -> None:
    await bench.agent.start(
        shell(RUN, "trap 'exit 9' INT; echo $$ >pid; while :; do sleep 0.1; done")
    )
    await bench.pid_of("pid")
    outcome = await bench.agent.stop(RUN)
    assert outcome.signals == ("INT",)
    assert (outcome.record.code, outcome.record.by) == (9, "cockpit")


async def test_a_ladder_ends_what_it_began_when_the_link_is_cut(dash: Bench) -> None:
    await dash.agent.start(shell(RUN, "trap '' INT; echo $$ >pid; while :; do sleep 0.1; done"))
    pid = await dash.pid_of("pid")
    stopping = asyncio.ensure_future(dash.agent.stop(RUN, int_s=1.0, term_s=5.0))
    await until(lambda: b"INT" in (dash.folder() / "hb").read_bytes(), "INT was sent")
    dash.transport.kill()
    with pytest.raises(LinkLost):
        await stopping
    await until(lambda: not alive(pid), "it ends")
    await until(lambda: b"TERM" in (dash.folder() / "exit").read_bytes(), "the ladder noted it")
    await dash.new_agent()
    record = await dash.ended()
    assert (record.signal, record.by, record.signals) == (15, "cockpit", ("INT", "TERM"))


async def test_a_signal_reaches_the_process_that_was_meant_and_no_other(dash: Bench) -> None:
    with bystander() as process:
        start = start_of(process.pid)
        assert not await dash.agent.signal(process.pid, start + 1, "KILL")
        assert process.poll() is None
        assert await dash.agent.signal(process.pid, start, "TERM")
        assert process.wait(10) == -signal.SIGTERM


# -- the log -----------------------------------------------------------------------------------


async def test_a_log_is_exact_over_cuts(dash: Bench) -> None:
    noise = os.urandom(1 << 20)
    (dash.home / "noise").write_bytes(noise + b"\r\x1b[31m\xe4\xb8\xad" * 50_000 + b"x" * (1 << 20))
    script = "for i in 1 2 3 4; do dd if=noise bs=77777 2>/dev/null; done"
    await dash.agent.start(shell(RUN, script))
    got, cuts = b"", 0
    ended = False
    while not ended:
        try:
            async with aclosing(dash.agent.tail(RUN, len(got))) as frames:
                async for frame in frames:
                    ended = isinstance(frame, End)
                    got += frame.data if isinstance(frame, Data) else b""
                    if cuts < 6 and len(got) > (cuts + 1) * 1_200_000:
                        cuts += 1
                        dash.transport.kill()
        except LinkLost:
            await dash.new_agent()
    log = (dash.folder() / "log").read_bytes()
    assert cuts == 6 and len(log) > 8 << 20
    assert hashlib.sha256(got).digest() == hashlib.sha256(log).digest()


async def test_a_log_that_is_cut_begins_anew(dash: Bench) -> None:
    await dash.agent.start(shell(RUN, "echo first line; while [ ! -e go ]; do sleep 0.05; done"))
    frames = dash.agent.tail(RUN)
    assert await anext(frames) == Data(0, b"first line\n")
    os.truncate(dash.folder() / "log", 0)
    assert await anext(frames) == Truncated(0)
    (dash.home / "go").touch()
    assert isinstance(await anext(frames), End)
    await frames.aclose()


# -- hostile input and secrets -----------------------------------------------------------------

NASTY = [
    "a b",
    "'",
    '"',
    "$(touch evil)",
    "`touch evil`",
    "\n+x\n",
    "\\",
    "-n",
    "*",
    "",
    "\udcff\udc80",
    "go",
    "中",
]


async def test_words_and_values_arrive_as_they_are(bench: Bench) -> None:
    show = 'for word; do printf "%s\\0" "$word"; done; printf "%s\\0" "$NASTY"'
    value = "".join(NASTY)
    await bench.agent.start(spec(RUN, "sh", "-c", show, "x", *NASTY, env={"NASTY": value}))
    await bench.ended()
    told = (await log_of(bench.agent)).split(b"\0")[:-1]
    assert told == [word.encode("utf-8", "surrogateescape") for word in (*NASTY, value)]
    assert not (bench.home / "evil").exists()


async def test_a_script_is_kept_and_given_to_the_command(dash: Bench) -> None:
    await dash.agent.start(spec(RUN, "sh", script="echo one\n+echo two\nexit 4"))
    assert (await dash.ended()).code == 4
    assert (dash.folder() / "script").read_text() == "echo one\n+echo two\nexit 4"


async def test_a_secret_is_in_the_environment_of_the_job_alone(bench: Bench) -> None:
    secret = "s3cret-'\"$(x)\n-value"
    await bench.agent.start(
        shell(RUN, "echo $$ >pid; sleep 600", secrets={"TOKEN": secret}, env={"PLAIN": "1"})
    )
    pid = await bench.pid_of("pid")
    assert f"TOKEN={secret}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    needle = b"s3cret"
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert needle not in place.read_bytes(), place
        except OSError:
            continue
    for path in bench.home.rglob("*"):
        assert not path.is_file() or needle not in path.read_bytes(), path
    await bench.agent.stop(RUN, int_s=0.0, term_s=0.0)


async def test_defaults_give_way_to_the_host_and_cards_are_chosen(tmp_path: Path) -> None:
    bench = await opened(tmp_path, "dash", env={"COLUMNS": "77", "LC_ALL": "C.UTF-8"})
    try:
        cards = GpuRequest(cards=(Card(3, "GPU-x"), Card(1, "GPU-y"), Card(0, "GPU-z")), count=2)
        show = 'echo "$COLUMNS|$LC_ALL|$MINE|$CUDA_VISIBLE_DEVICES|$PATH|$(umask)"'
        job = shell(RUN, show, env_defaults={"MINE": "m"}, gpus=cards, path_first=("~/bin",))
        await bench.agent.start(job)
        record = await bench.ended()
        path = f"{tmp_path}/bin:{bench.transport.env['PATH']}"
        told = (await log_of(bench.agent)).decode().strip().rpartition("|")
        assert told[0] == f"77|C.UTF-8|m|3,1|{path}" and int(told[2], 8) == os.umask(os.umask(0o22))
        assert record.gpus == (3, 1)
    finally:
        await left_alone(bench)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"restart": RestartPolicy(on="always")}, "sh_only"),
        ({"before": "true"}, "sh_only"),
        ({"env": {"UID": "5"}}, "sh_only_name"),
        ({"env": {"a b": "5"}}, "bad_spec"),
        ({"cwd": "/no/such/folder"}, "no_cwd"),
        ({"disk_free_mib": 1 << 40}, "disk_full"),
    ],
    ids=["restart", "hook", "name", "no-name", "cwd", "disk"],
)
async def test_what_a_shell_cannot_do_is_refused_and_leaves_nothing(
    dash: Bench, more: dict[str, Any], why: str
) -> None:
    with pytest.raises(LaunchFailed) as caught:
        await dash.agent.start(shell(RUN, "true", **more))
    assert caught.value.facts["why"] == why
    assert not list(dash.home.glob(f"**/v1/*/{RUN}"))
    await dash.agent.start(shell(RUN, "exit 8"))  # and the wire is still in step
    assert (await dash.ended()).code == 8


def test_names_that_are_refused_are_kept_by_a_shell() -> None:
    kept = set()
    for name in SHELL_NAMES:
        for argv in SHELLS.values():
            script = f"export '{name}=my value'; exec env"
            done = subprocess.run(
                [*argv, "-c", script], capture_output=True, env={"PATH": os.environ["PATH"]}
            )
            kept |= set() if f"{name}=my value\n".encode() in done.stdout else {name}
    assert {"UID", "PPID", "OPTIND", "SHELLOPTS"} & kept and kept <= SHELL_NAMES


# -- places ------------------------------------------------------------------------------------


async def test_a_full_disk_keeps_the_exit_code(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs a file system of its own")
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount")
    bench = await opened(tmp_path, "dash")
    try:
        script = f"dd if=/dev/zero of={small}/filler bs=65536 2>/dev/null; exit 33"
        await bench.agent.start(shell(RUN, script, run_root=str(small / "runs")))
        assert (await bench.ended()).code == 33
        await bench.new_agent()  # that is told nothing of the folder
        assert [record.run for record in await bench.agent.list()] == [RUN]
    finally:
        await left_alone(bench)
        subprocess.run(["umount", str(small)], check=True)


async def test_many_runs_are_listed_with_their_ends_and_asked_for_once(dash: Bench) -> None:
    for number in range(6):
        await dash.agent.start(shell(f"r-{number}", f"exit {number}"))
    for number in range(6):
        await dash.ended(f"r-{number}")
    first = await dash.agent.list()
    assert {record.run: record.code for record in first} == {f"r-{n}": n for n in range(6)}
    before = dash.transport.channels[0].received
    assert [record.run for record in await dash.agent.list()] == [record.run for record in first]
    assert dash.transport.channels[0].received - before < 1000
