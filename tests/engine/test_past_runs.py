"""Runs of the past in the book: what is remembered is shown, and what hosts say goes before it."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.domain.models import HostName, RunId
from cockpit.domain.run_spec import RunSpec
from cockpit.domain.runs import RunView
from cockpit.engine.agent import RunAgent
from cockpit.engine.agent_replies import StartReply
from cockpit.engine.api import RunLog
from cockpit.engine.events import OwnTrouble
from cockpit.engine.past_runs import PastRuns
from cockpit.engine.store import Database
from cockpit.errors import (
    LaunchFailed,
    LinkLost,
    ProfileError,
    ProtocolError,
    RunUnknown,
    StorageError,
    UsageError,
)
from tests.builders.runs import HERE, Bench, make_bench, until
from tests.remote.supervised import of_home


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = make_bench(tmp_path)
    bench.parts.bus.subscribe(bench.runs.heard)
    bench.connect()
    yield bench
    await bench.runs.close()
    with suppress(AssertionError):
        await until(lambda: not of_home(bench.host_home), "all is over", 10.0)
    left = of_home(bench.host_home)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], "the test left processes"


async def next_session(bench: Bench) -> Bench:
    """Cockpit is closed and opened again on the same home; nothing is connected yet."""
    bench.cut()
    await bench.runs.close()
    made = make_bench(bench.folder)
    made.parts.bus.subscribe(made.runs.heard)
    await made.runs.past.load()
    return made


def lines_of(log: RunLog) -> list[str]:
    return [log.line(at).text for at in range(len(log))]


async def test_a_run_is_listed_before_its_host_has_spoken_and_believed_after_it(
    bench: Bench,
) -> None:
    view = await bench.launched("seen", "echo one; exit 4")
    await bench.ended(view)
    alive = await bench.launched("alive", f"while [ ! -e {bench.folder}/go ]; do sleep 0.05; done")
    again = await next_session(bench)
    states = {one.run: (one.state, one.code) for one in again.runs.book.all()}
    assert states == {view.run: ("exited", 4), alive.run: ("unreachable", None)}
    past = again.runs.past_run(alive.run)
    assert past is not None and past.view.state in ("starting", "running") and past.has_origin
    assert again.told == []
    again.connect()
    await until(lambda: again.states(alive) == ["running"], "its host speaks")
    (bench.folder / "go").touch()
    assert (await again.ended(alive)).code == 0
    await again.runs.close()


async def test_a_run_that_its_host_lost_meanwhile_is_lost(bench: Bench) -> None:
    go = bench.folder / "go"
    view = await bench.launched("gone", f"while [ ! -e {go} ]; do sleep 0.05; done")
    bench.cut()
    await bench.runs.close()
    go.touch()
    await until(lambda: not of_home(bench.host_home), "it is over")
    import shutil

    shutil.rmtree(next(bench.host_home.glob(f"**/v1/*/{view.run}")))
    again = make_bench(bench.folder)
    await again.runs.past.load()
    again.connect()
    again.runs.of_host(HERE).refresh()
    await until(lambda: again.runs.of_host(HERE).listed.is_set(), "the host answers")
    again.runs.of_host(HERE).refresh()
    ended = await again.ended(view)
    assert (ended.state, ended.reason) == ("lost", "run_dir_gone")
    await again.runs.close()


async def test_a_run_is_planned_again_from_the_text_and_the_changes_of_then(bench: Bench) -> None:
    path = bench.profile("old", "exit 0", "[stop]\nint = '1s'\n")
    plan = await bench.runs.plan(path, overrides=("stop.term=7s",))
    run = await bench.runs.launch(plan)
    Path(path).write_text("this is no profile any more")
    again = await next_session(bench)
    again.connect()
    await until(lambda: again.runs.is_up(HERE), "connected")
    planned = await again.runs.plan_again(run, overrides=("stop.int=2s",))
    stop = planned.profile.stop
    assert (stop.int_s, stop.term_s) == (2.0, 7.0)
    assert planned.origin is not None
    assert planned.origin.overrides == ("stop.term=7s", "stop.int=2s")
    second = await again.runs.launch(planned)
    third = await again.runs.plan_again(second)
    assert third.profile.stop == stop
    with pytest.raises(ProfileError):
        await again.runs.plan_again(run, overrides=("stop.int=never",))
    with pytest.raises(RunUnknown) as unknown:
        await again.runs.plan_again(RunId("from-elsewhere"))
    assert unknown.value.code == "run_not_from_here"
    for each in (run, second):
        view = again.runs.book.get(each)
        assert view is not None
        await again.ended(view)
    await again.runs.close()


async def test_whom_a_run_told_is_read_from_its_file_and_missed_without_it(bench: Bench) -> None:
    path = Path(bench.profile("tells", "exit 0", "[notify]\nurls = ['ntfy://topic-1234']\n"))
    run = await bench.runs.launch(await bench.runs.plan(str(path)))
    with_file = await bench.runs.plan_again(run)
    assert with_file.profile.notify.urls == ("ntfy://topic-1234",)
    path.unlink()
    without = await bench.runs.plan_again(run)
    assert without.profile.notify.urls == ()
    assert "notify_not_kept" in [check.code for check in without.checks]


async def test_a_profile_that_held_a_secret_itself_cannot_be_started_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-value")
    more = "[env]\nsecrets = ['MY_TOKEN']\n"
    path = bench.profile("leaky", "test s3cr3t-value = 1 || exit 0", more)
    run = await bench.runs.launch(await bench.runs.plan(path))
    await bench.runs.past.history.flush()
    with pytest.raises(UsageError) as refused:
        await bench.runs.plan_again(run)
    assert refused.value.code == "origin_masked"
    assert b"s3cr3t" not in b"".join(
        each.read_bytes() for each in bench.parts.home.root.glob("cockpit.db*")
    )


async def test_a_line_about_a_run_outlives_the_session(bench: Bench) -> None:
    view = await bench.launched("noted", "exit 0")
    await bench.ended(view)
    await bench.runs.set_remark(view.run, "the good one\x1b[31m")
    again = await next_session(bench)
    kept = again.runs.book.get(view.run)
    assert kept is not None and kept.remark == "the good one"
    again.connect()
    await until(lambda: again.runs.of_host(HERE).listed.is_set(), "the host answers")
    told = again.runs.book.get(view.run)
    assert told is not None and told.remark == "the good one"
    await again.runs.close()


async def test_the_log_of_a_run_is_shown_from_the_copy_while_its_host_is_silent_or_gone(
    bench: Bench,
) -> None:
    view = await bench.launched("kept", "echo one; echo two")
    watched = bench.runs.log(view.run)
    await bench.ended(view)
    await until(lambda: watched.ended, "its log is here")
    watched.close()
    again = await next_session(bench)
    silent = again.runs.log(view.run)
    await until(lambda: lines_of(silent) == ["one", "two"], "the copy is shown")
    silent.close()
    again.parts.hosts.clear()  # type: ignore[attr-defined]
    gone = again.runs.log(view.run)
    await until(lambda: gone.ended, "all of it")
    assert lines_of(gone) == ["one", "two"]
    gone.close()
    await again.runs.close()


async def test_a_history_that_cannot_be_kept_is_told_once_and_stops_nothing(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    bench.parts.home.db.mkdir()
    bench.parts.bus.subscribe(bench.runs.heard)
    bench.connect()
    view = await bench.launched("fine", "exit 0")
    assert (await bench.ended(view)).code == 0
    with pytest.raises(StorageError) as refused:
        await bench.runs.set_remark(view.run, "x")
    assert refused.value.code == "remark_not_kept"
    troubles = [event.code for event in bench.told if isinstance(event, OwnTrouble)]
    assert troubles == ["history_unwritable"]
    await bench.runs.close()


async def test_a_database_that_breaks_under_us_is_set_aside_and_filled_anew(bench: Bench) -> None:
    first = await bench.launched("first", "exit 0")
    await bench.ended(first)
    await bench.runs.past.history.flush()
    db = bench.parts.home.db
    vandal = sqlite3.connect(db)
    vandal.execute("PRAGMA writable_schema = ON")
    vandal.execute("UPDATE sqlite_master SET rootpage = 9999 WHERE name = 'runs'")
    vandal.execute("PRAGMA schema_version = 4711")
    vandal.commit()
    vandal.close()
    second = await bench.launched("second", "exit 0")
    await bench.ended(second)
    await bench.runs.past.history.flush()
    codes = [event.code for event in bench.told if isinstance(event, OwnTrouble)]
    assert codes == ["history_set_aside"]
    kept = Database(db)
    assert second.run in {one.run for one in kept.newest()}
    kept.close()


def test_a_host_that_speaks_of_another_s_run_changes_nothing_of_it(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    past = PastRuns(bench.parts, bench.runs.book)
    view = RunView(RunId("r-1"), "p", "command", HERE, "running")
    from cockpit.domain.run_record import RunRecord

    past.told(HostName("liar"), RunRecord(view.run, "exited", 1e9), view)
    assert past.get(view.run) is None


# -- a start that was cut off -------------------------------------------------------------------


async def started_and(bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception) -> RunId:
    """A start that its host carried out (unless it refused it) and of which we heard only `error`."""
    start = RunAgent.start
    specs: list[RunSpec] = []

    async def cut_off(agent: RunAgent, spec: RunSpec) -> StartReply:
        specs.append(spec)
        if not isinstance(error, LaunchFailed):
            await start(agent, spec)
        raise error

    path = bench.profile("cut", "exit 4")
    plan = await bench.runs.plan(path)
    with monkeypatch.context() as patch:
        patch.setattr(RunAgent, "start", cut_off)
        with pytest.raises(type(error) if isinstance(error, ProtocolError) else LaunchFailed):
            await bench.runs.launch(plan)
    return specs[0].run


@pytest.mark.parametrize(
    "error",
    [LinkLost(host="here"), ProtocolError(host="here", why="record")],
    ids=["reply-lost", "reply-odd"],
)
async def test_what_a_run_was_started_from_is_kept_when_the_answer_was_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    run = await started_and(bench, monkeypatch, error)
    assert (await bench.runs.past.history.intents()) | {run} == {run}
    again = await next_session(bench)
    again.connect()
    await until(lambda: again.runs.book.get(run), "its host speaks")
    past = again.runs.past_run(run)
    assert past is not None and past.has_origin
    assert (await again.runs.plan_again(run)).profile.name == "cut"
    assert await again.runs.past.history.intents() == frozenset()
    view = again.runs.book.get(run)
    assert view is not None
    await again.ended(view)
    await again.runs.close()


async def test_what_was_refused_for_certain_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = LaunchFailed(why="disk_full", host="here", path="/", free_mib=1, needed_mib=2)
    run = await started_and(bench, monkeypatch, refused)
    assert await bench.runs.past.history.intents() == frozenset()
    assert await bench.runs.past.history.origin(run) is None
    assert bench.runs.book.get(run) is None


async def test_a_host_that_speaks_before_the_history_is_read_hides_no_origin(bench: Bench) -> None:
    view = await bench.launched("early", "exit 0")
    await bench.ended(view)
    bench.cut()
    await bench.runs.close()
    again = make_bench(bench.folder)
    again.connect()
    again.runs.of_host(HERE).refresh()
    await until(lambda: again.runs.past_run(view.run), "its host speaks")
    await again.runs.past.load()
    past = again.runs.past_run(view.run)
    assert past is not None and past.has_origin
    await again.runs.close()
