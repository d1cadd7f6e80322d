"""Cards: no two runs hold one unless both share, whoever waits is served in order."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.domain.models import RunId
from cockpit.domain.run_spec import Card, GpuRequest, RunSpec
from cockpit.errors import NotNow
from tests.remote.supervised import Runs, alive, shell, until

HOLD = "echo $$ > $HOME/job; exec sleep 600"


@pytest.fixture
def cards() -> Iterator[tuple[Card, Card]]:
    """Two cards that no other test and no real run knows."""
    pair = tuple(Card(index, f"GPU-{uuid.uuid4()}") for index in (4, 7))
    yield pair[0], pair[1]
    for card in pair:
        lock_of(card).unlink(missing_ok=True)


def lock_of(card: Card) -> Path:
    return Path(f"/dev/shm/cockpit-{os.geteuid()}/gpu-{card.uuid}.lock")


def on(cards: tuple[Card, ...], count: int = 1, **more: float | bool) -> GpuRequest:
    return GpuRequest(cards, count, **more)  # type: ignore[arg-type]


def holding(run: str, request: GpuRequest) -> RunSpec:
    return shell(run, HOLD.replace("job", run), gpus=request)


async def test_a_job_sees_its_cards_and_no_others(runs: Runs, cards: tuple[Card, Card]) -> None:
    script = "echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES"
    await runs.agent.start(shell("a-1", script, gpus=on(cards, 2), env={"CUDA_DEVICE_ORDER": "x"}))
    record = await runs.ended("a-1")
    assert (runs.folder("a-1") / "log").read_bytes() == b"PCI_BUS_ID 4,7\n"
    assert record.gpus == (4, 7) and record.gpu_uuids == (cards[0].uuid, cards[1].uuid)


async def test_six_who_race_for_two_cards(runs: Runs, cards: tuple[Card, Card]) -> None:
    script = 'mkdir "$HOME/on-$CUDA_VISIBLE_DEVICES" || exit 99; sleep 0.1; rmdir "$HOME/on-"*'
    script = script.replace('"$HOME/on-"*', '"$HOME/on-$CUDA_VISIBLE_DEVICES"')
    agents = [runs.transport.agent() for _agent in range(6)]
    await asyncio.gather(*(agent.open() for agent in agents))
    try:
        started = [
            agent.start(shell(f"a-{number}", script, gpus=on(cards, wait_s=60)))
            for number, agent in enumerate(agents)
        ]
        await asyncio.gather(*started)
        ended = [await runs.ended(f"a-{number}") for number in range(6)]
    finally:
        await asyncio.gather(*(agent.close() for agent in agents))
    assert [record.code for record in ended] == [0] * 6
    assert {record.gpus for record in ended} <= {(4,), (7,)}


async def test_six_for_two_cards_begin_in_the_order_in_which_they_came(
    runs: Runs, cards: tuple[Card, Card]
) -> None:
    """Two cards come free at a time: neighbours may be seen in either order, and nobody overtakes further."""
    script = 'echo $COCKPIT_RUN >> "$HOME/order"; while [ ! -e "$HOME/go" ]; do sleep 0.02; done'
    for number in range(6):
        reply = await runs.agent.start(shell(f"a-{number}", script, gpus=on(cards, wait_s=60)))
        assert reply.record.state == ("running" if number < 2 else "queued")
    (runs.home / "go").touch()
    for number in range(6):
        assert (await runs.ended(f"a-{number}")).code == 0
    begun = (runs.home / "order").read_text().split()
    assert sorted(begun) == [f"a-{number}" for number in range(6)]
    assert all(abs(begun.index(f"a-{number}") - number) <= 1 for number in range(6)), begun


async def test_without_a_wait_only_as_many_start_as_there_are_cards(
    runs: Runs, cards: tuple[Card, Card]
) -> None:
    replies = await asyncio.gather(
        *(runs.agent.start(holding(f"a-{number}", on(cards))) for number in range(4)),
        return_exceptions=True,
    )
    refused = [reply for reply in replies if isinstance(reply, NotNow)]
    assert len(refused) == 2
    assert all("a-" in str(error.facts["holders"]) for error in refused)
    records = await runs.agent.list()
    assert [record.state for record in records] == ["running"] * 2
    for record in records:
        await runs.agent.stop(record.run)


async def test_sharers_share_with_each_other_only(runs: Runs, cards: tuple[Card, Card]) -> None:
    one = (cards[0],)
    await runs.agent.start(holding("a-1", on(one, share=True)))
    await runs.agent.start(holding("a-2", on(one, share=True)))
    with pytest.raises(NotNow):
        await runs.agent.start(holding("a-3", on(one)))
    for run in ("a-1", "a-2"):
        await runs.agent.stop(RunId(run))
    await runs.agent.start(holding("a-3", on(one)))
    with pytest.raises(NotNow):
        await runs.agent.start(holding("a-4", on(one, share=True)))
    await runs.agent.stop(RunId("a-3"))


async def test_who_waits_is_served_in_order(runs: Runs, cards: tuple[Card, Card]) -> None:
    await runs.agent.start(holding("a-1", on((cards[0],))))
    reply = await runs.agent.start(holding("a-2", on(cards, 2, wait_s=60)))
    assert reply.record.state == "queued"
    assert reply.record.started_s is None and "a-1" in (reply.record.waiting_for or "")
    reply = await runs.agent.start(holding("a-3", on((cards[1],), wait_s=60)))
    assert reply.record.state == "queued"  # its card is free, and a-2 was first
    with pytest.raises(NotNow):
        await runs.agent.start(holding("a-4", on((cards[1],))))
    await runs.agent.stop(RunId("a-1"))
    assert (await runs.reaches("a-2", "running")).gpus == (4, 7)
    assert (await runs.agent.status(RunId("a-3"))).state == "queued"
    await runs.agent.stop(RunId("a-2"))
    assert (await runs.reaches("a-3", "running")).gpus == (7,)
    await runs.agent.stop(RunId("a-3"))


async def test_whose_turn_it_is_is_known_and_a_dead_waiter_has_none(
    runs: Runs, cards: tuple[Card, Card]
) -> None:
    one = (cards[0],)
    await runs.agent.start(holding("a-1", on(one)))
    turns = [
        (await runs.agent.start(holding(run, on(one, wait_s=600)))).record.position
        for run in ("a-2", "a-3")
    ]
    assert turns == [1, 2]
    os.kill(runs.supervisor_pid("a-2"), signal.SIGKILL)
    assert (await runs.ended("a-2")).state == "lost"
    while (record := await runs.agent.status(RunId("a-3"))).position != 1:
        await asyncio.sleep(0.02)
    assert record.waiting_for == "GPU 4: a-1"
    await runs.agent.stop(RunId("a-1"))
    assert (await runs.reaches("a-3", "running")).position is None
    await runs.agent.stop(RunId("a-3"))


async def test_a_queued_run_is_cancelled_at_once(runs: Runs, cards: tuple[Card, Card]) -> None:
    await runs.agent.start(holding("a-1", on((cards[0],))))
    await runs.agent.start(holding("a-2", on((cards[0],), wait_s=600)))
    outcome = await runs.agent.stop(RunId("a-2"))
    record = outcome.record
    assert (record.state, record.reason, record.by) == ("exited", "cancelled", "cockpit")
    assert record.code is None and outcome.signals == ()
    await runs.agent.stop(RunId("a-1"))


async def test_a_wait_in_vain_ends(runs: Runs, cards: tuple[Card, Card]) -> None:
    await runs.agent.start(holding("a-1", on((cards[0],))))
    await runs.agent.start(holding("a-2", on((cards[0],), wait_s=0.3)))
    record = await runs.ended("a-2")
    assert (record.reason, record.by, record.code) == ("no_free_gpu", "cockpit", None)
    assert record.waiting_for == "GPU 4: a-1"
    await runs.agent.stop(RunId("a-1"))


async def test_a_card_stays_taken_while_the_job_outlives_its_supervisor(
    runs: Runs, cards: tuple[Card, Card]
) -> None:
    await runs.agent.start(holding("a-1", on((cards[0],))))
    job = await runs.pid_of("a-1")
    os.kill(runs.supervisor_pid("a-1"), signal.SIGKILL)
    await until(lambda: not alive(runs.supervisor_pid("a-1")))
    with pytest.raises(NotNow):
        await runs.agent.start(holding("a-2", on((cards[0],))))
    os.kill(job, signal.SIGKILL)
    await runs.ended("a-1")
    await runs.agent.start(holding("a-2", on((cards[0],))))
    await runs.agent.stop(RunId("a-2"))


async def test_a_leftover_that_uses_no_card_keeps_none(
    runs: Runs, cards: tuple[Card, Card]
) -> None:
    script = "setsid sleep 600 & echo $! > $HOME/rest; exit 0"
    await runs.agent.start(shell("a-1", script, gpus=on((cards[0],))))
    await runs.pid_of("rest")
    assert (await runs.ended("a-1")).leftovers
    await runs.agent.start(holding("a-2", on((cards[0],), wait_s=30)))
    await runs.reaches("a-2", "running")
    for run in ("a-1", "a-2"):
        await runs.agent.stop(RunId(run))


async def test_a_lock_file_that_was_deleted_is_locked_again(
    runs: Runs, cards: tuple[Card, Card]
) -> None:
    """logind clears /dev/shm of a user who logs out."""
    await runs.agent.start(holding("a-1", on((cards[0],))))
    path = lock_of(cards[0])
    path.unlink()
    await until(lambda: path.exists() and path.read_text() == "a-1", "the lock is back")
    with pytest.raises(NotNow):
        await runs.agent.start(holding("a-2", on((cards[0],))))
    await runs.agent.stop(RunId("a-1"))


async def test_free_memory_is_asked_of_nvidia_smi_where_there_is_no_binding(
    runs: Runs, cards: tuple[Card, Card]
) -> None:
    smi = runs.home / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\necho '{cards[0].uuid}, 100'\necho '{cards[1].uuid}, 24000'\n")
    smi.chmod(0o700)
    await runs.agent.close()
    runs.transport.env["PATH"] = f"{runs.home}:{runs.transport.env['PATH']}"
    await runs.new_agent()
    script = "echo $CUDA_VISIBLE_DEVICES"
    await runs.agent.start(shell("a-1", script, gpus=on(cards, min_free_mib=20000)))
    assert (await runs.ended("a-1")).gpus == (7,)
    with pytest.raises(NotNow) as refused:
        await runs.agent.start(shell("a-2", script, gpus=on(cards, 2, min_free_mib=20000)))
    assert "100 MiB free" in str(refused.value.facts["holders"])
