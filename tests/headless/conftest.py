"""A desk for each test of a command, with this machine as its host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.desk import Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    made.this_machine()
    yield made
    assert await made.clear() == [], "the test left processes"
