"""A laptop for each test, and the transports that it opened closed at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cockpit.transport.base import HostTransport
from tests.servers import Laptop


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path / "laptop")


@pytest.fixture
async def closing() -> AsyncIterator[list[HostTransport]]:
    """Transports put in here are closed when the test is over, passed or not."""
    opened: list[HostTransport] = []
    yield opened
    for transport in opened:
        await transport.close()


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test may reach the agent of whoever runs it."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    yield
