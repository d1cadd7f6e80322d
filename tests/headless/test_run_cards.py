"""Which cards a run gets, on this machine with the driver's double: choice, holders, queue."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.desk import Desk, until
from tests.nvml.double import Driver, drop_locks, make_driver, own_cards

pytestmark = pytest.mark.nvml

HOLD = "echo on $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES; while [ ! -e {go} ]; do sleep 0.05; done"


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    yield make_driver(tmp_path, own_cards(4))
    drop_locks(tmp_path)


@pytest.fixture
async def desk(tmp_path: Path, driver: Driver) -> AsyncIterator[Desk]:
    made = Desk(
        tmp_path,
        LD_LIBRARY_PATH=str(driver.library),
        NVML_DOUBLE=str(driver.scenario.path),
    )
    made.this_machine()
    yield made
    assert await made.clear() == [], "the test left processes"


def holding(desk: Desk, name: str, gpus: str) -> str:
    return desk.profile(name, HOLD.format(go=desk.folder / f"go-{name}"), f"[gpus]\n{gpus}\n")


def let_go(desk: Desk, name: str) -> None:
    (desk.folder / f"go-{name}").touch()


async def test_the_emptiest_free_cards_are_taken_by_their_own_numbers(
    desk: Desk, driver: Driver
) -> None:
    driver.scenario.say("gpu 0 mem_used 40000", "gpu 0 proc 1 39000 C", "gpu 1 mem_used 3000")
    path = desk.profile(
        "two", "echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES", "[gpus]\ncount = 2\n"
    )
    dry = await desk.call("run", path, "--dry-run")
    done = await desk.call("run", path, "--json")
    named = await desk.call("run", path, "--gpus", "3,1")
    assert [event["text"] for event in done.named("log")] == ["PCI_BUS_ID 2,3"]
    assert done.named("run.started")[0]["gpus"] == [2, 3]
    assert "GPU 2" in dry.out.decode() and "CUDA_VISIBLE_DEVICES=2,3" in dry.out.decode()
    assert named.out == b"PCI_BUS_ID 3,1\n"


async def test_without_a_gpus_table_nothing_is_reserved_and_the_variable_is_left_alone(
    desk: Desk,
) -> None:
    path = desk.profile("none", 'echo "[$CUDA_VISIBLE_DEVICES]"')
    done = await desk.call("run", path, env={"CUDA_VISIBLE_DEVICES": "7"})
    assert done.out == b"[7]\n"


async def test_no_free_card_is_75_and_says_who_holds_them(desk: Desk, driver: Driver) -> None:
    driver.scenario.say("gpu * mem_used 40000", "gpu * proc 1 39000 C")
    path = desk.profile("many", "echo never", "[gpus]\ncount = 1\n")
    done = await desk.call("run", path, "--json")
    assert (done.code, done.out) == (75, b"")
    assert "No card is free" in done.err
    small = await desk.call("run", path, "--set", "gpus.min_free=200 GiB", "--set", "gpus.wait=1h")
    assert small.code == 75  # no card will ever be that large: there is nothing to wait for
    assert desk.runs("many") == []


async def test_two_runs_at_once_never_share_a_card_and_a_third_waits_its_turn(desk: Desk) -> None:
    first = await desk.detached(holding(desk, "first", "count = 2"))
    second = await desk.detached(holding(desk, "second", "count = 2"))
    rows = {row["run"]: row for row in (await desk.call("ps", "--json")).events}
    assert sorted(rows[first]["gpus"] + rows[second]["gpus"]) == [0, 1, 2, 3]
    assert (await desk.call("run", holding(desk, "refused", "count = 1"))).code == 75
    third = await desk.start("run", holding(desk, "third", 'count = 1\nwait = "2m"'), "--json")
    assert third.stdout is not None
    names = []
    while "run.queued" not in names:
        names.append((await asyncio.wait_for(third.stdout.readline(), 60)).decode().split('"')[3])
    assert names == ["run.starting", "run.queued"]
    (queued,) = desk.runs("third")
    listed = {row["run"]: row["state"] for row in (await desk.call("ps", "--json")).events}
    assert listed[queued] == "queued"
    let_go(desk, "first")
    let_go(desk, "third")
    done = await desk.end_of(third)
    assert done.code == 0
    assert done.names == ["run.started", "log", "run.exited"]
    assert done.named("run.started")[0]["gpus"] == rows[first]["gpus"][:1]
    assert done.named("log")[0]["text"] == f"on PCI_BUS_ID {rows[first]['gpus'][0]}"
    let_go(desk, "second")
    await until(lambda: not desk.processes(), "all are over")


async def test_a_wait_that_runs_out_is_75(desk: Desk) -> None:
    await desk.detached(holding(desk, "holder", 'count = "all"'))
    done = await desk.call("run", holding(desk, "late", 'count = 1\nwait = "1s"'), "--json")
    assert done.code == 75
    assert done.names == ["run.starting", "run.queued", "run.exited"]
    ended = done.events[-1]
    assert (ended["code"], ended["reason"], ended["by"]) == (None, "no_free_gpu", "cockpit")
    let_go(desk, "holder")


async def test_ctrl_c_takes_a_run_out_of_the_queue(desk: Desk) -> None:
    await desk.detached(holding(desk, "holder", 'count = "all"'))
    process = await desk.start("run", holding(desk, "late", 'count = 1\nwait = "10m"'), "--json")
    assert process.stdout is not None
    while b"run.queued" not in await asyncio.wait_for(process.stdout.readline(), 60):
        pass
    process.send_signal(signal.SIGINT)
    done = await desk.end_of(process)
    assert done.code == 75 and done.events[-1]["reason"] == "cancelled"
    let_go(desk, "holder")


async def test_a_strangers_card_is_waited_for_until_its_memory_is_free(
    desk: Desk, driver: Driver
) -> None:
    cards = list(driver.scenario.lines)
    driver.scenario.say("gpu * mem_used 40000", "gpu * proc 1 39000 C")
    path = desk.profile(
        "wait", "echo mine $CUDA_VISIBLE_DEVICES", '[gpus]\ncount = 1\nwait = "5m"\n'
    )
    process = await desk.start("run", path, "--json")
    assert process.stdout is not None
    while b"run.queued" not in await asyncio.wait_for(process.stdout.readline(), 60):
        pass
    driver.scenario.write([*cards, "gpu * mem_used 40000", "gpu 2 mem_used 0"])
    done = await desk.end_of(process)
    assert [event["text"] for event in done.named("log")] == ["mine 2"]


async def queued(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """The event that says so; the run is started or over when there is none."""
    assert process.stdout is not None
    while line := await asyncio.wait_for(process.stdout.readline(), 60):
        event: dict[str, Any] = json.loads(line)
        if event["event"] in ("run.queued", "run.started"):
            return event
    raise AssertionError("neither queued nor started")


async def test_who_waits_is_told_for_whom_and_as_which(desk: Desk) -> None:
    holder = await desk.detached(holding(desk, "holder", 'count = "all"'))
    waiting = holding(desk, "waiting", 'count = 1\nwait = "10m"')
    plain = (await desk.call("run", waiting, "--dry-run")).out.decode()
    assert f"here:0 {holder}" in plain and "1 of GPU 0, 1, 2, 3" in plain
    first = await desk.start("run", waiting, "--json")
    told = [await queued(first)]
    second = await desk.start("run", waiting, "--json")
    told.append(await queued(second))
    assert [event["position"] for event in told] == [1, 2]
    assert f"GPU 0: {holder}" in told[0]["waiting_for"]
    assert f"queue: {told[0]['run']}" in told[1]["waiting_for"] and holder in told[1]["waiting_for"]
    for process in (second, first):
        process.send_signal(signal.SIGINT)
        assert (await desk.end_of(process)).code == 75
    late = await desk.call("run", holding(desk, "late", 'count = 1\nwait = "1s"'))
    assert "number 1 in the queue" in late.err and late.err.count(f"GPU 0: {holder}") == 2
    let_go(desk, "holder")


SLOT = """\
mkdir {folder}/on-$CUDA_VISIBLE_DEVICES || exit 99
echo $COCKPIT_RUN >> {folder}/order
while [ ! -e {folder}/go ]; do sleep 0.02; done
rmdir {folder}/on-$CUDA_VISIBLE_DEVICES
"""


async def test_six_launchers_race_for_two_cards_and_nobody_overtakes(
    desk: Desk, driver: Driver
) -> None:
    driver.scenario.say("gpus 2", *driver.scenario.lines[1:3])
    script = SLOT.format(folder=desk.folder)
    path = desk.profile("race", script, '[gpus]\ncount = 1\nwait = "10m"\n')
    racing = [await desk.start("run", path, "--json") for _launcher in range(6)]
    told = await asyncio.gather(*map(queued, racing))
    turns = {e["position"]: e["run"] for e in told if e["event"] == "run.queued"}
    assert sorted(turns) == [1, 2, 3, 4]
    order = desk.folder / "order"
    await until(lambda: len(order.read_text().split()) == 2, "two run")
    (desk.folder / "go").touch()
    ended = await asyncio.gather(*map(desk.end_of, racing))
    assert [done.code for done in ended] == [0] * 6
    begun = order.read_text().split()[2:]
    expected = [turns[turn] for turn in (1, 2, 3, 4)]
    assert sorted(begun) == sorted(expected)
    # two cards come free at a time: neighbours may be seen in either order
    assert all(abs(begun.index(run) - turn) <= 1 for turn, run in enumerate(expected)), begun


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


async def test_a_dry_run_leaves_nothing_on_the_host_but_our_programs(
    desk: Desk, driver: Driver
) -> None:
    path = holding(desk, "dry", "count = 1")
    for more in ((), ("--json",)):
        done = await desk.call("run", path, "--dry-run", *more)
        assert done.code == 0 and desk.runs("dry") == []
    left = {name for name in files(desk.user) if not name.startswith(".cache/cockpit-")}
    assert left == set() and not (desk.home / "runs").exists()
    uuids = [line.split()[-1] for line in driver.scenario.lines if " uuid " in line]
    assert not [
        uuid for uuid in uuids if Path(f"/dev/shm/cockpit-{os.geteuid()}/gpu-{uuid}.lock").exists()
    ]
