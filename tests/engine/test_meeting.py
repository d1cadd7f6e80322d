"""The last look at the port where the ranks are to meet, before any of them is called."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import HostName
from cockpit.engine.meeting import Meeting, Way, check_free
from cockpit.errors import LaunchFailed
from cockpit.transport.local import LocalTransport

HERE = HostName("here")


@pytest.fixture
async def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalTransport]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    transport = LocalTransport(HERE)
    await transport.connect()
    yield transport
    await transport.close()


async def test_a_port_that_was_taken_meanwhile_is_told(local: LocalTransport) -> None:
    host = HostSpec(name=HERE, local=True)
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        meeting = Meeting("127.0.0.1", port, (Way(), Way()))
        with pytest.raises(LaunchFailed) as caught:
            await check_free(host, {HERE: local}, meeting)
    assert caught.value.code == "gang_port_taken"
    assert caught.value.facts == {"host": "here", "port": port}
    await check_free(host, {HERE: local}, meeting)
