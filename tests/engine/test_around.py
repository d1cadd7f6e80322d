"""What a profile wants beside its run: hooks and messages at its end, a budget that is kept, after a restart too."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.budget import Limits, Price
from cockpit.domain.incidents import Finding
from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView
from cockpit.engine.budget import BudgetParts, Budgets
from cockpit.engine.notify import Message
from cockpit.errors import LinkLost
from tests.builders.runs import HERE, Bench, make_bench, until
from tests.remote.supervised import of_home

TOKEN = "tok-1234567890"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = wired(make_bench(tmp_path))
    bench.connect()
    yield bench
    await bench.runs.close()
    with suppress(AssertionError):
        await until(lambda: not of_home(bench.host_home), "all is over", 10.0)
    left = of_home(bench.host_home)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], "the test left processes"


def wired(bench: Bench) -> Bench:
    bench.parts.bus.subscribe(bench.runs.heard)
    return bench


def sends(bench: Bench, into: list[tuple[str, Message]]) -> None:
    def send(url: str, message: Message) -> bool:
        into.append((url, message))
        return True

    bench.runs._life.around_runs.herald._send = send


def noted(folder: Path) -> list[str]:
    path = folder / "told"
    return path.read_text().splitlines() if path.exists() else []


def hook(folder: Path) -> str:
    facts = "$COCKPIT_EVENT $COCKPIT_RUN $COCKPIT_HOST $COCKPIT_PROFILE $COCKPIT_FAMILY $COCKPIT_EXIT_CODE"
    return f"printf '%s\\n' \"{facts}\" >> {folder}/told"


def go(bench: Bench) -> str:
    return f"while [ ! -e {bench.folder}/go ]; do sleep 0.05; done"


async def test_an_end_runs_its_hook_and_sends_its_message_once(bench: Bench) -> None:
    sent: list[tuple[str, Message]] = []
    sends(bench, sent)
    more = f"[hooks]\non_end = '''{hook(bench.folder)}'''\n[notify]\nurls = ['ntfy://{TOKEN}']\n"
    view = await bench.launched("ends", f"{go(bench)}; exit 7", more)
    (bench.folder / "go").touch()
    await bench.ended(view)
    await until(lambda: noted(bench.folder) and sent, "it is told")
    await bench.runs.settled(view.run, 10.0)
    assert noted(bench.folder) == [f"on_end {view.run} here ends  7"]
    assert [url for url, _message in sent] == [f"ntfy://{TOKEN}"]
    assert "ended with code 7" in sent[0][1].title and sent[0][1].kind == "failure"
    steps = [(code, text) for _at_s, code, text in bench.runs.around(view.run).steps]
    assert sorted(steps) == [("hook_ran", "on_end"), ("notified", "ntfy")]


async def test_an_incident_runs_its_hook_and_one_that_comes_and_goes_does_not_flood(
    bench: Bench,
) -> None:
    more = f"[hooks]\non_incident = '''{hook(bench.folder)}'''\n"
    view = await bench.launched("oom", go(bench), more)
    finding = Finding("gpu_oom", "torch", "fatal", {"tried_mib": 1792})
    desk = bench.parts.incidents
    for _ in range(4):
        desk.report(finding, host=HERE, run=view.run, profile="oom")
        desk.settle(f"run:{view.run}/gpu_oom/torch", "recovered")
    await until(lambda: noted(bench.folder), "the hook ran")
    await bench.runs.settled(view.run, 10.0)
    assert noted(bench.folder) == [f"on_incident {view.run} here oom gpu_oom "]
    (bench.folder / "go").touch()
    await bench.ended(view)


async def test_a_hook_that_fails_is_a_step_and_the_run_is_none_the_worse(bench: Bench) -> None:
    more = "[hooks]\non_end = 'echo no room >&2; exit 3'\n"
    view = await bench.launched("bad", "exit 0", more)
    assert (await bench.ended(view)).code == 0
    await until(lambda: bench.runs.around(view.run).steps, "the hook failed")
    ((_at_s, code, text),) = bench.runs.around(view.run).steps
    assert code == "hook_failed" and text == "on_end: exit 3, no room"


async def test_a_run_that_ended_while_no_cockpit_looked_is_told_of_by_the_next_one(
    bench: Bench,
) -> None:
    more = f"[hooks]\non_end = '''{hook(bench.folder)}'''\n"
    view = await bench.launched("later", f"{go(bench)}; exit 2", more)
    await bench.runs.past.history.flush()
    bench.cut()
    await bench.runs.close()
    (bench.folder / "go").touch()
    for _ in range(2):
        again = wired(make_bench(bench.folder))
        await again.runs.past.load()
        again.connect()
        await again.ended(view)
        await again.runs.settled(view.run, 10.0)
        again.cut()
        await again.runs.close()
    assert noted(bench.folder) == [f"on_end {view.run} here later  2"]


async def test_a_run_over_its_hours_is_stopped_and_that_is_an_incident(bench: Bench) -> None:
    more = "[stop]\nint = '5s'\n[budget]\nmax_hours = 0.0001\naction = 'stop'\n"
    view = await bench.launched("dear", "sleep 600", more)
    ended = await bench.ended(view)
    assert ended.by == "cockpit"
    (reached,) = [
        one.incident
        for one in bench.incidents()
        if one.incident.finding.signature == "budget-reached"
    ]
    assert reached.family == "cost" and reached.run == view.run
    assert reached.finding.facts["max_hours"] == 0.0001


async def test_a_budget_goes_on_counting_after_a_restart_of_cockpit(bench: Bench) -> None:
    view = await bench.launched("long", "sleep 600", "[budget]\nmax_hours = 1000\n")
    await bench.runs.past.history.flush()
    bench.cut()
    await bench.runs.close()
    again = wired(make_bench(bench.folder))
    await again.runs.past.load()
    again.connect()
    around = again.runs._life.around_runs
    await until(lambda: view.run in around._budgets._tasks, "its budget is watched")
    seconds = around._seconds(replace(view, started_s=view.started_s))
    assert seconds is not None and seconds >= 0
    await again.runs.stop(view.run)
    await again.ended(view)
    await again.runs.close()


class Ledger:
    """A run whose seconds a test sets."""

    def __init__(self) -> None:
        self.view: RunView = RunView(RunId("r"), "p", "command", HostName("h"), "running")
        self.seconds = 0.0
        self.found: list[str] = []
        self.stops = 0
        self.failures = 0
        self.budgets = Budgets(
            BudgetParts(
                lambda _run: self.view,
                lambda _view: self.seconds,
                lambda _view, finding: self.found.append(finding.signature),
                self.stop,
                lambda *_words: None,
            )
        )

    async def stop(self, _run: RunId) -> object:
        self.stops += 1
        if self.stops <= self.failures:
            raise LinkLost(host="h")
        self.view = replace(self.view, state="exited")
        return None


async def test_each_mark_is_told_once_and_a_stop_over_a_lost_link_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cockpit.engine.budget.TRY_STOP_AGAIN_S", 0.01)
    monkeypatch.setattr("cockpit.engine.budget.LOOK_AT_LEAST_EVERY_S", 0.01)
    ledger = Ledger()
    ledger.failures = 2
    ledger.budgets.watch(ledger.view.run, Limits(max_hours=1, stops=True), Price())
    await asyncio.sleep(0)
    ledger.seconds = 3000.0
    await until(lambda: ledger.found == ["budget-near"], "the notice")
    ledger.seconds = 3600.0
    await until(lambda: ledger.view.ended, "it is stopped")
    assert ledger.found == ["budget-near", "budget-reached"] and ledger.stops == 3
    await ledger.budgets.close()


async def test_runs_of_another_computer_have_no_hooks_here(bench: Bench) -> None:
    more = f"[hooks]\non_end = '''{hook(bench.folder)}'''\n"
    view = await bench.launched("theirs", f"{go(bench)}; exit 1", more)
    bench.cut()
    await bench.runs.close()
    for each in bench.parts.home.root.glob("cockpit.db*"):
        each.unlink()
    stranger = wired(make_bench(bench.folder))
    await stranger.runs.past.load()
    stranger.connect()
    await until(lambda: stranger.runs.book.get(view.run), "it is listed")
    (bench.folder / "go").touch()
    await stranger.ended(view)
    await stranger.runs.settled(view.run, 10.0)
    await stranger.runs.close()
    assert noted(bench.folder) == []
