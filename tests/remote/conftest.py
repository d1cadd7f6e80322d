"""A home of its own for every test of the supervisor, and proof that nothing of it outlives the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agents import PipeTransport
from tests.remote.supervised import Runs, assert_nothing_left


@pytest.fixture
async def runs(tmp_path: Path) -> AsyncIterator[Runs]:
    transport = PipeTransport(tmp_path)
    agent = transport.agent()
    await agent.open()
    bench = Runs(transport, agent)
    yield bench
    await bench.agent.close()
    await assert_nothing_left(bench)
