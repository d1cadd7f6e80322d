"""Looking after runs from here: supervisors that died, runs that a host's restart ended, disks that fill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import RunSpec
from cockpit.domain.runs import RunView
from cockpit.engine.events import RunNoted
from tests.builders.runs import HERE, Bench, make_bench, until
from tests.remote.supervised import alive, of_home, write_record

RESTART = "[restart]\non = 'on-lost'\nmax = 2\nbackoff = '1s'\n"


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
    """An engine that lists runs, and follows those alone that it is asked for."""
    async for made in bench_in(tmp_path, follow_live=False):
        yield made


def folder_of(bench: Bench, run: str) -> Path:
    (found,) = bench.host_home.glob(f"**/v1/*/{run}")
    return found


def supervisor_of(bench: Bench, run: str) -> int:
    return int(json.loads((folder_of(bench, run) / "sup.json").read_text())["pid"])


def view_of(bench: Bench, run: RunView | str) -> RunView:
    view = bench.runs.book.get(RunId(run if isinstance(run, str) else run.run))
    assert view is not None
    return view


def notes(bench: Bench) -> list[str]:
    return [told.event.name for told in bench.told if isinstance(told, RunNoted)]


def go(bench: Bench) -> str:
    return f"while [ ! -e {bench.folder}/go ]; do sleep 0.05; done"


async def bereave(bench: Bench, run: str) -> int:
    pid = supervisor_of(bench, run)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not alive(pid), "it is dead")
    return pid


async def test_a_supervisor_that_died_is_replaced_by_whoever_follows_the_run(bench: Bench) -> None:
    view = await bench.launched("care", f"{go(bench)}; exit 42")
    dead = await bereave(bench, view.run)
    bench.runs.of_host(HERE).refresh()
    await until(lambda: supervisor_of(bench, view.run) != dead, "a new one")
    await until(lambda: "adopted" in notes(bench), "it is told")
    await until(lambda: view_of(bench, view).degraded is None, "and not degraded any more")
    assert view_of(bench, view).state == "running"
    (bench.folder / "go").touch()
    assert (await bench.ended(view)).code == 42
    assert bench.states(view) == ["running", "exited"]


async def test_a_list_alone_changes_nothing_on_a_host(lazy: Bench) -> None:
    agent = await lazy.runs.of_host(HERE).agent()
    job = RunSpec(RunId("a-1"), "p", "command", ("sh", "-c", f"{go(lazy)}; exit 3"))
    await agent.start(job)
    dead = await bereave(lazy, "a-1")
    for _list in range(2):
        lazy.runs.of_host(HERE).listed.clear()
        lazy.runs.of_host(HERE).refresh()
        await lazy.runs.of_host(HERE).listed.wait()
    assert view_of(lazy, "a-1").degraded == "supervisor_died"
    assert supervisor_of(lazy, "a-1") == dead
    (lazy.folder / "go").touch()
    lazy.runs.of_host(HERE).refresh()
    assert (await lazy.ended(view_of(lazy, "a-1"))).code == 3


async def test_a_stop_gives_a_run_its_supervisor_first(lazy: Bench) -> None:
    """Whoever only lists stops through a new supervisor too: the hook after the job runs."""
    agent = await lazy.runs.of_host(HERE).agent()
    script = f"echo $$ > {lazy.folder}/job; exec sleep 600"
    job = RunSpec(RunId("a-1"), "p", "command", ("sh", "-c", script), after="echo after")
    await agent.start(job)
    await bereave(lazy, "a-1")
    lazy.runs.of_host(HERE).refresh()
    await until(
        lambda: (view := lazy.runs.book.get(RunId("a-1"))) and view.degraded, "seen as degraded"
    )
    report = await lazy.runs.stop(RunId("a-1"))
    assert (report.signals, report.left) == (("INT",), ())
    assert (folder_of(lazy, "a-1") / "log").read_text() == "after\n"


async def restarted(bench: Bench, view: RunView) -> None:
    """Make it look as if the host had restarted: everything of the run is gone, PID 1 is another."""
    folder = folder_of(bench, view.run)
    bench.cut()
    record = json.loads((folder / "sup.json").read_text())
    await until(lambda: len(of_home(bench.host_home)) > 0)
    for pid in of_home(bench.host_home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await until(lambda: not of_home(bench.host_home), "the host is down")
    write_record(folder / "sup.json", {**record, "pid1_start": record["pid1_start"] + 1})
    bench.connect()


async def test_a_run_that_a_restart_of_its_host_ended_is_started_again(bench: Bench) -> None:
    script = f"echo try $COCKPIT_ATTEMPT; [ $COCKPIT_ATTEMPT = 2 ] && exit 5; {go(bench)}"
    view = await bench.launched("back", script, RESTART)
    log = bench.runs.log(view.run)
    await until(lambda: log.total_lines == 1, "the first attempt's line")
    await restarted(bench, view)
    await until(lambda: view_of(bench, view).state == "exited", "the second attempt's end")
    ended = view_of(bench, view)
    assert (ended.code, ended.attempt, ended.restarts) == (5, 2, 2)
    assert "relaunched" in notes(bench)
    states = bench.states(view)
    assert states[:3] == ["running", "unreachable", "lost"] and states[-1] == "exited"
    await until(lambda: log.total_lines == 2 and log.ended, "one log with both")
    assert [log.line(at).text for at in range(2)] == ["try 1", "try 2"]
    log.close()


@pytest.mark.parametrize("more", ["", RESTART.replace("max = 2", "max = 0")])
async def test_without_a_wish_for_it_a_lost_run_stays_lost(bench: Bench, more: str) -> None:
    view = await bench.launched("stays", go(bench), more)
    await restarted(bench, view)
    await until(lambda: view_of(bench, view).state == "lost", "it is lost")
    await bench.runs.of_host(HERE).agent()
    for _list in range(3):
        bench.runs.of_host(HERE).listed.clear()
        bench.runs.of_host(HERE).refresh()
        await bench.runs.of_host(HERE).listed.wait()
    assert view_of(bench, view).state == "lost" and notes(bench) == ["started"]
    assert not of_run(bench, view)


def of_run(bench: Bench, view: RunView) -> list[int]:
    mark = f"COCKPIT_RUN={view.run}".encode()
    return [p for p in of_home(bench.host_home) if mark in Path(f"/proc/{p}/environ").read_bytes()]


async def test_a_relaunch_that_cannot_be_is_told_and_given_up(bench: Bench) -> None:
    folder = bench.folder / "work"
    folder.mkdir()
    path = bench.profile("gone", go(bench), RESTART)
    Path(path).write_text(f"cwd = '{folder}'\n" + Path(path).read_text())
    view = bench.runs.book.get(await bench.runs.launch(await bench.runs.plan(path)))
    assert view is not None
    folder.rmdir()  # the restart brought an empty disk
    await restarted(bench, view)
    await until(lambda: "relaunch_failed" in notes(bench), "it is told")
    assert view_of(bench, view).state == "lost"
    assert notes(bench).count("relaunch_failed") == 1


async def test_a_full_disk_is_an_incident_until_there_is_room_again(bench: Bench) -> None:
    disk = bench.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        path = bench.profile("full", go(bench))
        Path(path).write_text(f"cwd = '{disk}'\n" + Path(path).read_text())
        view = bench.runs.book.get(await bench.runs.launch(await bench.runs.plan(path)))
        assert view is not None
        bench.runs.of_host(HERE).refresh()
        await until(lambda: bench.parts.incidents.all(), "an incident")
        (incident,) = bench.parts.incidents.all()
        finding = incident.finding
        assert (finding.family, finding.signature, finding.severity, finding.cause) == (
            "disk", "disk-low", "warning", "disk_low",
        )  # fmt: skip
        assert finding.facts["path"] == str(disk) and finding.facts["total_mib"] == 64
        assert (incident.run, incident.state) == (view.run, "open") and finding.remedies
        subprocess.run(["mount", "-o", "remount,size=4g", str(disk)], check=True)
        await until(lambda: bench.parts.incidents.all()[0].state == "recovered", "room again")
        (bench.folder / "go").touch()
        assert (await bench.ended(view)).code == 0
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
