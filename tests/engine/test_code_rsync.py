"""rsync over our own channel: only what differs travels, and a broken or odd rsync costs nothing but time."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.engine.code_rsync import RELAY, has_rsync
from cockpit.errors import LinkLost
from tests.engine.code_hosts import CodeHost, put

pytestmark = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """rsync is looked for anew, and nothing is left in the folder for passing files."""
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    has_rsync.cache_clear()
    yield folder
    has_rsync.cache_clear()
    left = os.listdir(folder)
    shutil.rmtree(folder)
    assert left == []


@pytest.fixture
def host(tmp_path: Path) -> CodeHost:
    return CodeHost(tmp_path)


def text(size: int) -> str:
    return random.Random(2).randbytes(size // 2).hex()


def fake_rsync(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    put(folder, "bin/rsync", f"#!/bin/sh\n{script}\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")


async def test_of_a_large_file_only_what_differs_travels(host: CodeHost) -> None:
    whole = text(3_000_000)
    put(host.root, "big", whole)
    put(host.root, "twice/big", whole)
    put(host.root, "empty", "")
    put(host.root, "run.sh").chmod(0o755)
    first = await host.send()
    assert first.by == "rsync" and first.wire_bytes > 1_000_000
    assert host.progress[-1] == (3_000_001, 3_000_001) and host.staged() == []
    edited = whole[:1_000_000] + "edit" + whole[1_000_000:]
    put(host.root, "big", edited)
    second = await host.send()
    assert (second.by, second.new_files) == ("rsync", 1) and second.wire_bytes < 30_000
    assert host.there() == {"big": edited, "twice/big": whole, "empty": "", "run.sh": "x"}
    assert os.access(host.folder / "run.sh", os.X_OK)


async def test_without_rsync_there_a_tar_goes(tmp_path: Path) -> None:
    host = CodeHost(tmp_path, environ={"PATH": "/nowhere"})
    put(host.root, "a.py")
    assert (await host.send()).by == "tar"


async def test_a_cut_changes_nothing_and_the_next_try_ends_it(host: CodeHost) -> None:
    put(host.root, "a.py", "one")
    await host.send()
    put(host.root, "a.py", "two")
    put(host.root, "big", text(6_000_000))
    host.cut_after_bytes = 1_500_000
    with pytest.raises(LinkLost):
        await host.send()
    assert host.there() == {"a.py": "one"}
    assert (await host.send()).by == "rsync"
    assert host.there() == {"a.py": "two", "big": text(6_000_000)}


@pytest.mark.parametrize(
    ("script", "by"),
    [
        ("[ $1 = --version ] && echo rsync version 3.9 || exit 12", "tar"),
        ("[ $1 = --version ] && echo openrsync: protocol version 29 || exit 12", "tar"),
        ("[ $1 = --version ] && echo rsync version 2.6.9 || exit 12", "tar"),
        ("exit 1", "tar"),
    ],
    ids=["fails", "another", "old", "broken"],
)
async def test_another_rsync_here_is_left_alone(
    host: CodeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, by: str
) -> None:
    fake_rsync(tmp_path, monkeypatch, script)
    put(host.root, "a.py")
    assert (await host.send()).by == by
    assert host.there() == {"a.py": "x"}


async def test_an_rsync_that_dies_on_the_host_is_replaced_by_tar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "theirs/rsync", "#!/bin/sh\nhead -c 4 >/dev/null\nexit 7\n").chmod(0o755)
    host = CodeHost(tmp_path, environ={"PATH": f"{tmp_path}/theirs:{os.environ['PATH']}"})
    put(host.root, "big", text(900_000))
    assert (await asyncio.wait_for(host.send(), 40)).by == "tar"
    assert host.there() == {"big": text(900_000)}


@pytest.mark.parametrize("what", ["words", "fifo"])
async def test_what_changes_meanwhile_is_not_put_in_place(host: CodeHost, what: str) -> None:
    from cockpit.engine.code_list import CodeWish, plan_code
    from cockpit.engine.code_pack import hashed
    from cockpit.errors import LaunchFailed

    put(host.root, "a.py", "one")
    put(host.root, "b.py", "one more")
    files = hashed(plan_code(CodeWish(host.root, str(host.folder), by_git=False)))
    (host.root / "b.py").unlink()
    if what == "fifo":
        os.mkfifo(host.root / "b.py")
    else:
        put(host.root, "b.py", "another")
    with pytest.raises(LaunchFailed) as caught:
        await host.send(files)
    assert (caught.value.code, caught.value.facts["path"]) == ("code_changed_here", "b.py")
    assert host.there() == {}


def test_the_relay_bears_with_pipes_that_do_not_block(tmp_path: Path) -> None:
    """rsync gives its remote shell such pipes; a full one is no error."""
    data = random.Random(5).randbytes(1 << 20)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        argv = [
            sys.executable,
            "-I",
            "-S",
            str(RELAY),
            str(tmp_path / "s"),
            "box",
            "rsync",
            "--server",
        ]
        relay = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=writing)
        os.close(writing)
        link, _address = server.accept()
        with link, link.makefile("rb") as said:
            assert said.readline() == b'["rsync", "--server"]\n'
            sending = threading.Thread(target=link.sendall, args=(data,))
            sending.start()
            with os.fdopen(reading, "rb") as out:
                assert out.read(len(data)) == data
            sending.join()
        assert relay.wait(30) == 0
