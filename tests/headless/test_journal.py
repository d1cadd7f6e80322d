"""`cockpit journal HOST`: what this computer remembers of a host."""

from __future__ import annotations

from cockpit.config.paths import Home
from cockpit.domain.incidents import Finding, Incident
from cockpit.domain.models import HostName, RunId
from cockpit.domain.past_runs import PastRun
from cockpit.domain.runs import RunView
from cockpit.engine.store import Database
from tests.desk import Desk

HERE, OTHER = HostName("here"), HostName("other")


def remembered(desk: Desk, host: HostName) -> None:
    run = RunId("train-20231114-221000-a1b2" if host == HERE else "else-20231114-221000-a1b2")
    view = RunView(
        run=run, profile=run[:5], kind="command", host=host, state="exited", code=1,
        started_s=1_700_000_000.0, ended_s=1_700_000_100.0,
    )  # fmt: skip
    finding = Finding("gpu_oom", "torch-oom", "fatal", facts={"tried_mib": 1792}, offset=5)
    incident = Incident(
        f"{run}/gpu_oom", finding, 1_700_000_050.0, 1_700_000_050.0, host=host, run=run,
        profile=view.profile, recording="x.cockpit.gz",
    )  # fmt: skip
    database = Database(Home(desk.home).db)
    database.save_runs([PastRun(view, 1_700_000_100.0)])
    database.save_incidents([incident])
    database.close()


async def test_runs_and_incidents_of_one_host_by_time(desk: Desk) -> None:
    for host in (HERE, OTHER):
        remembered(desk, host)
    done = await desk.call("journal", "here", "--json")
    assert done.code == 0, done.err
    assert done.names == ["run.started", "incident", "run.exited"]
    assert {one["host"] for one in done.events} == {"here"}
    assert done.events[1]["recording"] == "x.cockpit.gz" and done.events[2]["code"] == 1
    done = await desk.call("journal", "here", "--json")
    assert [one["at_s"] - 1_700_000_000 for one in done.events] == [0, 50, 100]


async def test_in_words(desk: Desk) -> None:
    remembered(desk, HERE)
    done = await desk.call("journal", "here", env={"TZ": "UTC"})
    lines = done.out.decode().splitlines()
    assert [line[:19] for line in lines] == [
        "2023-11-14 22:13:20", "2023-11-14 22:14:10", "2023-11-14 22:15:00",
    ]  # fmt: skip
    assert "gpu_oom" in lines[1] and "code 1" in lines[2]


async def test_a_host_that_was_removed_is_remembered_and_one_that_never_was_is_not(
    desk: Desk,
) -> None:
    remembered(desk, OTHER)
    assert (await desk.call("journal", "other")).code == 0
    assert (await desk.call("journal", "nowhere")).code == 64
    done = await desk.call("journal", "here")
    assert done.code == 0 and b"Nothing is remembered of here." in done.out
