"""Runs of a host over real agents: links and agents that die, many runs at once, folders that vanish."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_spec import RunSpec
from cockpit.engine.agent import RunAgent
from cockpit.engine.agent_replies import StartReply
from cockpit.engine.host_runs import ANOTHER_MACHINE, MACHINE_NOTE
from cockpit.errors import (
    HostUnreachable,
    LinkLost,
    NoPython,
    RunError,
    RunUnknown,
    StorageError,
    UsageError,
)
from cockpit.transport.base import HostTransport
from tests.builders.runs import HERE, Bench, Pipes, make_bench, until
from tests.remote.supervised import of_home

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of"
    " 23.64 GiB of which 808.00 MiB is free."
)


async def bench_in(folder: Path, *, follow_live: bool = True) -> AsyncIterator[Bench]:
    bench = make_bench(folder, follow_live=follow_live)
    bench.connect()
    yield bench
    await bench.runs.close()
    with suppress(AssertionError):
        await until(lambda: not of_home(bench.host_home), "all is over", 10.0)
    left = of_home(bench.host_home)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], "the test left processes"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async for made in bench_in(tmp_path):
        yield made


@pytest.fixture
async def lazy(tmp_path: Path) -> AsyncIterator[Bench]:
    """An engine that follows what it is asked for, and nothing else."""
    async for made in bench_in(tmp_path, follow_live=False):
        yield made


def go(bench: Bench) -> str:
    return f"while [ ! -e {bench.folder}/go ]; do sleep 0.05; done"


async def test_forty_runs_at_once_all_end_with_their_own_code_and_their_whole_log(
    bench: Bench,
) -> None:
    script = f"{go(bench)}; echo $COCKPIT_RUN; exit "
    views = [await bench.launched(f"r{number}", f"{script}{number}") for number in range(40)]
    (bench.folder / "go").touch()
    codes = [(await bench.ended(view)).code for view in views]
    assert codes == list(range(40))
    for view in views:
        log = bench.runs.log(view.run)
        await until(lambda log=log: log.ended, "its log is here")  # type: ignore[misc]
        assert log.line(0).text == view.run
        log.close()
    assert len(bench.runs.of_host(HERE).followers) == 0


async def test_closing_tells_nothing_of_runs_that_go_on(bench: Bench) -> None:
    view = await bench.launched("long", go(bench))
    await bench.runs.close()
    bench.runs.host_down(HERE)
    assert bench.states(view) == ["running"]
    (bench.folder / "go").touch()


async def test_a_lost_link_is_no_end_and_the_log_goes_on_after_it(bench: Bench) -> None:
    view = await bench.launched("cut", f"echo one; {go(bench)}; echo two; exit 3")
    log = bench.runs.log(view.run)
    await until(lambda: log.total_lines == 1, "the first line")
    bench.cut()
    assert bench.states(view) == ["running", "unreachable"]
    (bench.folder / "go").touch()
    bench.connect()
    assert (await bench.ended(view)).code == 3
    await until(lambda: log.ended, "the log's end")
    assert [log.line(at).text for at in range(len(log))] == ["one", "two"]
    log.close()


async def test_an_agent_that_dies_on_a_good_link_is_replaced_and_nothing_is_told(
    bench: Bench,
) -> None:
    view = await bench.launched("agents", f"echo one; {go(bench)}; echo two; exit 4")
    link, log = bench.transports[0], bench.runs.log(view.run)
    for count in (1, 2):
        await until(lambda count=count: len(link.channels) == count, "an agent")  # type: ignore[misc]
        await bench.runs.of_host(HERE).agent()
        link.kill()
    (bench.folder / "go").touch()
    assert (await bench.ended(view)).code == 4
    assert bench.states(view) == ["running", "exited"]
    await until(lambda: log.ended, "the log's end")
    mirror = bench.parts.home.root / "runs" / "here" / view.run / "log"
    assert mirror.read_bytes() == b"one\ntwo\n"
    log.close()


async def test_a_host_without_python_says_so_and_is_asked_again(bench: Bench) -> None:
    def none(spec: HostSpec, transport: HostTransport) -> RunAgent:
        raise NoPython(host="here", looked_for="python3")

    bench.make_agent.append(none)
    bench.cut()
    bench.connect()
    with pytest.raises(NoPython):
        await bench.runs.of_host(HERE).agent()
    bench.make_agent.pop()
    await until(lambda: bench.runs.of_host(HERE).failure is None, "it has a Python by now")
    assert (await bench.ended(await bench.launched("after", "exit 6"))).code == 6


async def test_a_lost_reply_starts_nothing_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, losses = RunAgent.start, [LinkLost(host="here"), LinkLost(host="here")]

    async def losing(agent: RunAgent, spec: RunSpec) -> StartReply:
        reply = await start(agent, spec)
        if losses:
            raise losses.pop()
        return reply

    monkeypatch.setattr(RunAgent, "start", losing)
    count = bench.folder / "count"
    view = await bench.launched("once", f"echo x >> {count}")
    await bench.ended(view)
    assert count.read_text() == "x\n"


async def test_a_folder_that_was_removed_is_a_lost_run(bench: Bench) -> None:
    view = await bench.launched("removed", go(bench))
    (folder,) = bench.host_home.glob(f"**/v1/*/{view.run}")
    shutil.rmtree(folder)
    ended = await bench.ended(view)
    assert (ended.state, ended.reason, ended.exit_status) == ("lost", "run_dir_gone", None)
    (bench.folder / "go").touch()


async def test_a_run_of_the_machine_that_was_there_before_is_not_called_lost(bench: Bench) -> None:
    """An address that is rented again: what ran behind it may well go on, somewhere else."""
    view = await bench.launched("moved", go(bench))
    assert dict(view.notes)[MACHINE_NOTE] == bench.runs.of_host(HERE).machine != ""
    bench.runs.of_host(HERE).machine = "another-box-0123456789"
    (folder,) = bench.host_home.glob(f"**/v1/*/{view.run}")
    hidden = folder.rename(folder.parent.parent / view.run)
    await until(lambda: bench.runs.book.find(view.run).state == "unreachable", "it is out of reach")
    assert (
        bench.runs.book.find(view.run).reason == ANOTHER_MACHINE
        and not bench.runs.book.find(view.run).ended
    )
    hidden.rename(folder)
    await until(lambda: bench.runs.book.find(view.run).state == "running", "it is back")
    (bench.folder / "go").touch()
    assert (await bench.ended(view)).code == 0


async def test_an_oom_is_one_incident_however_often_its_log_is_read(bench: Bench) -> None:
    view = await bench.launched("oom", f'echo "{OOM}"; exit 1')
    await bench.ended(view)
    for _ in range(2):
        log = bench.runs.log(view.run)
        await until(lambda log=log: log.ended, "its log is here")  # type: ignore[misc]
        assert log.line(0).severity == "fatal"
        log.close()
    (opened,) = bench.incidents()
    assert (opened.incident.family, opened.incident.count) == ("gpu_oom", 1)
    assert opened.incident.run == view.run and opened.incident.profile == "oom"


async def test_a_run_that_dies_at_once_is_told_all_the_same(bench: Bench) -> None:
    await bench.runs.of_host(HERE).agent()
    await until(bench.runs.of_host(HERE).listed.is_set, "the first list")
    view = await bench.launched("quick", f'echo "{OOM}"; exit 1')
    await bench.ended(view)
    await until(bench.incidents, "its OOM is told")


async def test_what_ended_while_nobody_looked_is_told_when_somebody_does(
    bench: Bench, tmp_path: Path
) -> None:
    view = await bench.launched("night", f'echo begun; {go(bench)}; echo "{OOM}"; exit 1')
    log = bench.runs.log(view.run)
    await until(lambda: log.total_lines, "its log is copied")
    await bench.runs.close()
    bench.runs.host_down(HERE)
    (bench.folder / "go").touch()
    await until(lambda: not of_home(bench.host_home), "it has ended")
    morning = make_bench(tmp_path)
    morning.connect()
    await until(morning.incidents, "its OOM is told")
    await morning.runs.close()


async def test_runs_are_followed_when_asked_for_and_not_before(lazy: Bench) -> None:
    view = await lazy.launched("quiet", f"echo said; {go(lazy)}; exit 2")
    await lazy.runs.of_host(HERE).agent()
    assert len(lazy.runs.of_host(HERE).followers) == 0
    log = lazy.runs.log(view.run)
    await until(lambda: log.total_lines, "it is followed")
    (lazy.folder / "go").touch()
    assert (await lazy.ended(view)).code == 2
    log.close()


async def test_ready_needs_its_line_and_its_port_and_comes_again_after_a_cut(bench: Bench) -> None:
    more = '[ready]\nlog = "Application startup complete"\n'
    view = await bench.launched("server", f"echo Application startup complete; {go(bench)}", more)
    await until(lambda: bench.states(view)[-1] == "ready", "it is ready")
    bench.cut()
    bench.connect()
    await until(lambda: bench.states(view)[-1] == "ready", "it is ready again")
    assert bench.states(view) == ["running", "ready", "unreachable", "running", "ready"]
    (bench.folder / "go").touch()
    await bench.ended(view)


async def test_a_start_that_does_not_get_on_is_told_once_and_is_no_failure(bench: Bench) -> None:
    more = '[ready]\nlog = "up"\nno_progress = "0.4s"\n'
    hold = go(bench).replace("go ]", "on ]")
    script = f"echo loading; {go(bench)}; echo up; {hold}"
    view = await bench.launched("slow", script, more)
    await until(bench.incidents, "it is stuck")
    (told,) = bench.incidents()
    assert (told.incident.family, told.incident.severity) == ("hang", "warning")
    (bench.folder / "go").touch()
    await until(lambda: bench.states(view)[-1] == "ready", "it is ready after all")
    (bench.folder / "on").touch()
    assert (await bench.ended(view)).code == 0
    assert bench.states(view) == ["running", "ready", "exited"] and len(bench.incidents()) == 1


async def test_a_port_is_forwarded_while_its_run_lives_and_free_after_it(bench: Bench) -> None:
    for name in ("first", "second"):
        view = await bench.launched(name, go(bench), "[forward]\n18000 = 8000\n")
        link = bench.transports[-1]
        await until(lambda link=link: link.forwarded == [18000], "forwarded")  # type: ignore[misc]
        (bench.folder / "go").touch()
        await bench.ended(view)
        assert link.forwarded == []
        (bench.folder / "go").unlink()


async def test_a_log_is_saved_whole_and_no_file_is_replaced(bench: Bench) -> None:
    view = await bench.launched("save", "head -c 700000 /dev/urandom")
    await bench.ended(view)
    target = bench.folder / "copy"
    assert await bench.runs.save_log(view.run, target) == 700_000
    (on_host,) = bench.host_home.glob(f"**/v1/*/{view.run}/log")
    assert target.read_bytes() == on_host.read_bytes()
    with pytest.raises(StorageError) as caught:
        await bench.runs.save_log(view.run, target)
    assert caught.value.code == "file_exists"
    with pytest.raises(RunUnknown):
        await bench.runs.save_log(RunId("nope"), bench.folder / "other")


async def test_signals_go_to_the_process_that_was_shown_and_to_no_other(bench: Bench) -> None:
    view = await bench.launched("victim", "exec sleep 600")
    (pid,) = [
        pid
        for pid in of_home(bench.host_home)
        if b"sleep\x00600" in Path(f"/proc/{pid}/cmdline").read_bytes()
        and not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sh")
    ]
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    with pytest.raises(RunError) as caught:
        await bench.runs.signal_process(HERE, pid, ticks + 1, "TERM")
    assert caught.value.code == "process_gone"
    with pytest.raises(UsageError):
        await bench.runs.signal_process(HERE, pid, ticks, "STOP")
    await bench.runs.signal_process(HERE, pid, ticks, "TERM")
    assert (await bench.ended(view)).signal == 15


async def test_a_stop_reports_what_it_sent_and_what_is_left(bench: Bench) -> None:
    view = await bench.launched(
        "stop", "trap '' INT; sleep 600 & wait", "[stop]\nint='0.2s'\nterm='5s'\n"
    )
    report = await bench.runs.stop(view.run)
    assert report.signals[:2] == ("INT", "TERM") and report.left == ()
    assert (await bench.ended(view)).by == "cockpit"


async def test_a_host_that_is_not_connected_is_waited_for_and_then_named(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    with pytest.raises(HostUnreachable):
        await bench.runs.of_host(HERE).agent(0.05)
    with pytest.raises(UsageError):
        bench.runs.of_host(HostName("nope"))
    await bench.runs.close()


async def test_removing_a_host_lets_go_of_its_runs(bench: Bench) -> None:
    view = await bench.launched("kept", go(bench))
    bench.runs.host_removed(HERE)
    await asyncio.sleep(0)
    (bench.folder / "go").touch()
    assert isinstance(bench.transports[0], Pipes)
    await until(lambda: not of_home(bench.host_home), f"{view.run} ends by itself")
