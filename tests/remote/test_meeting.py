"""The program by which hosts find each other: over loopback, where every host is this one."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MEETING = Path(__file__).parents[2] / "cockpit" / "remote" / "meeting.py"
NONCE = "0123456789abcdef"


def started(what: str, request: object) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-sSE", str(MEETING), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    return process


def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert isinstance(told, dict)
    return told


@contextmanager
def listening(port: int | None = None) -> Iterator[dict[str, Any]]:
    process = started("listen", {"nonce": NONCE, "port": port})
    with process:
        try:
            yield answer(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(10) == 0, "it ends with its stdin"


def reached(port: int, nonce: str = NONCE, address: str = "127.0.0.1") -> dict[str, Any]:
    with started("reach", {"nonce": nonce, "port": port, "addresses": [address]}) as process:
        (tried,) = answer(process)["tried"]
    assert isinstance(tried, dict)
    return tried


def test_whoever_knows_the_word_gets_through_and_learns_the_way() -> None:
    with listening() as told:
        assert 20000 <= told["port"] < 29000
        assert {"interface": "lo", "address": "127.0.0.1"} in told["addresses"]
        tried = reached(told["port"])
    assert tried == {"address": "127.0.0.1", "interface": "lo", "from": "127.0.0.1"}


def test_a_stranger_is_hung_up_on_and_keeps_nobody_out() -> None:
    with listening() as told:
        assert "why" in reached(told["port"], "f" * 16)
        with socket.create_connection(("127.0.0.1", told["port"])):
            assert "why" not in reached(told["port"]), "after one that says nothing"


def test_somebody_elses_port_does_not_count() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        process = started("reach", {"nonce": NONCE, "port": port, "addresses": ["127.0.0.1"]})
        with process, stranger.accept()[0] as caller:
            assert caller.recv(64) == NONCE.encode()
            caller.sendall(b"HTTP/1.1 400 Bad")
            (tried,) = answer(process)["tried"]
    assert tried == {"address": "127.0.0.1", "why": "somebody else answers there"}


def test_a_port_where_nobody_listens_is_refused() -> None:
    with listening() as told:
        port = told["port"]
    assert "refused" in reached(port)["why"]


def test_a_port_that_is_asked_for_is_opened_again_or_said_to_be_taken() -> None:
    with listening() as told:
        port = told["port"]
    with listening(port) as again:
        assert again["port"] == port
        process = started("listen", {"nonce": NONCE, "port": port})
        with process:
            assert answer(process)["taken"] is True
