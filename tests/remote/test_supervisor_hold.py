"""A run that is held: its cards are taken, nothing of it begins before the call, and nobody waits for ever."""

from __future__ import annotations

import asyncio

from cockpit.domain.models import RunId
from cockpit.engine.agent_care import go
from tests.remote.supervised import Runs, shell

RUN = RunId("a-1")


async def test_a_held_run_begins_when_it_is_called(runs: Runs) -> None:
    reply = await runs.agent.start(shell("a-1", "echo on; exit 3", hold_s=60.0))
    assert (reply.record.state, reply.record.started_s) == ("starting", None)
    await asyncio.sleep(0)
    assert (runs.folder("a-1") / "log").read_bytes() == b""
    await go(runs.agent, RUN)
    assert (await runs.ended("a-1")).code == 3
    assert (runs.folder("a-1") / "log").read_bytes() == b"on\n"


async def test_a_call_that_never_comes_ends_it(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", "echo on", hold_s=0.2))
    record = await runs.ended("a-1")
    assert (record.code, record.reason, record.by) == (None, "not_called", "cockpit")
    assert (runs.folder("a-1") / "log").read_bytes() == b""


async def test_a_held_run_is_let_go_of_by_a_stop(runs: Runs) -> None:
    await runs.agent.start(shell("a-1", "echo on", hold_s=600.0))
    outcome = await runs.agent.stop(RUN)
    assert outcome.record.reason == "cancelled" and outcome.left == ()
    assert (runs.folder("a-1") / "log").read_bytes() == b""
