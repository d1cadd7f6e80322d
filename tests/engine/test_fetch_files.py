"""Results on their way back: whole, never over a file that is here, and only below their own folder."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from cockpit.engine import fetch_disk, fetch_files
from cockpit.engine.fetch_files import Fetched, Fetching
from cockpit.engine.fetch_store import FetchWish
from cockpit.errors import CockpitError, LinkLost, ProtocolError
from cockpit.i18n.messages import explain
from cockpit.transport.base import ByteChannel, HostTransport
from tests.agents import PipeChannel
from tests.engine.code_hosts import CodeHost, put
from tests.engine.test_code_sync import PYTHONS, Liar, random_text, told


class CutReading(PipeChannel):
    """A connection that breaks when so many bytes have come over it; it says so before."""

    def __init__(
        self, process: asyncio.subprocess.Process, left: int | None, call: Callable[[], object]
    ) -> None:
        super().__init__(process)
        self._left = left
        self._call = call

    async def read(self, limit: int = 65536) -> bytes:
        data = await super().read(limit)
        if self._left is not None and self.received > self._left:
            self._left = None
            self._call()
            self.process.kill()
        return data


class ResultsHost(CodeHost):
    """A host with a run's folder, `there`; results come to `here/fetched/run`."""

    def wish(self, *globs: str, most: int = 1 << 30) -> FetchWish:
        return FetchWish(str(self.folder), globs, "always", str(self.target), most)

    @property
    def target(self) -> Path:
        return self.root / "fetched" / "run"

    call: Callable[[], object] | None = None

    async def open(self, transport: object = None, python: object = None) -> ByteChannel:
        channel = cast(PipeChannel, await super().open())
        if self.call is None:
            return channel
        call, self.call = self.call, None
        return CutReading(channel.process, 600_000, call)

    async def fetch(self, *globs: str, most: int = 1 << 30) -> Fetched:
        fetching = Fetching(cast(HostTransport, self), None, self.open)
        told = self.progress
        return await asyncio.wait_for(
            fetching.fetch(self.wish(*globs, most=most), lambda a, b: told.append((a, b))), 60
        )

    def here(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.target)): path.read_text()
            for path in sorted(self.target.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def host(tmp_path: Path) -> ResultsHost:
    return ResultsHost(tmp_path)


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parent.parent.name)
async def test_what_matches_comes_whole(tmp_path: Path, python: Path) -> None:
    host = ResultsHost(tmp_path, str(python), {"LC_ALL": "C"})
    big = random_text(700_000)
    put(host.folder, "out/deep/模型.st", big)
    put(host.folder, "out/empty.st", "")
    put(host.folder, "out/other.txt")
    put(host.folder, "out/run.st").chmod(0o755)
    put(host.folder, ".cockpit-code/x.st")
    (host.folder / "out" / "link.st").symlink_to("/etc/passwd")
    (host.folder / "out" / "folder").symlink_to("/etc")
    fetched = await host.fetch("out/**/*.st", "**/*.st")
    assert host.here() == {"out/deep/模型.st": big, "out/empty.st": "", "out/run.st": "x"}
    assert (fetched.files, fetched.total_bytes, fetched.links) == (3, 700_001, 1)
    assert not os.access(host.target / "out" / "run.st", os.X_OK)
    assert host.progress[-1] == (700_001, 700_001)
    assert (host.root / "fetched" / ".gitignore").read_text() == "*\n"


async def test_nothing_that_matches_leaves_nothing(host: ResultsHost) -> None:
    put(host.folder, "a")
    assert (await host.fetch("out/*")).files == 0
    assert not host.target.exists()


async def test_a_second_time_nothing_is_sent_and_nothing_is_written_over(
    host: ResultsHost,
) -> None:
    put(host.folder, "a", "one")
    put(host.folder, "b", "two")
    await host.fetch("*")
    again = await host.fetch("*")
    assert (again.files, again.new_bytes) == (2, 0)
    put(host.folder, "a", "1ne")
    put(host.target, "b", "mine, and longer")
    third = await host.fetch("*")
    assert third.beside == 2
    assert host.here() == {"a": "one", "a.1": "1ne", "b": "mine, and longer", "b.1": "two"}


async def test_a_broken_link_is_gone_on_from(host: ResultsHost) -> None:
    big = random_text(3_000_000)
    put(host.folder, "big", big)
    host.call = lambda: None
    with pytest.raises(LinkLost):
        await host.fetch("big")
    assert [name for name in host.here() if not name.startswith(".cockpit-parts/")] == []
    fetched = await host.fetch("big")
    assert host.here() == {"big": big} and fetched.new_bytes < 2_900_000


async def test_a_part_of_another_version_is_not_gone_on_from(host: ResultsHost) -> None:
    put(host.folder, "big", random_text(3_000_000))
    host.call = lambda: None
    with pytest.raises(LinkLost):
        await host.fetch("big")
    other = random_text(3_000_000, seed=2)
    put(host.folder, "big", other)
    await host.fetch("big")
    assert host.here() == {"big": other}


async def test_a_spoilt_part_is_fetched_anew(host: ResultsHost) -> None:
    big = random_text(3_000_000)
    put(host.folder, "big", big)
    host.call = lambda: None
    with pytest.raises(LinkLost):
        await host.fetch("big")
    (part,) = (host.target / ".cockpit-parts").iterdir()
    part.write_bytes(b"#" * part.stat().st_size)
    await host.fetch("big")
    assert host.here() == {"big": big}


async def refused(work: object) -> CockpitError:
    with pytest.raises(CockpitError) as caught:
        await work  # type: ignore[misc]
    assert "{" not in explain(caught.value.code, caught.value.facts).text
    return caught.value


async def test_too_much_is_asked_about_and_nothing_comes(
    host: ResultsHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(host.folder, "big", "x" * 5000)
    put(host.folder, "small")
    error = await refused(host.fetch("*", most=4000))
    assert error.code == "fetch_too_large" and str(error.facts["largest"]).startswith("big 4.9 KiB")
    monkeypatch.setattr(fetch_files, "MOST_FILES", 1)
    assert (await refused(host.fetch("*"))).code == "fetch_too_large"
    monkeypatch.setattr(fetch_files, "MOST_FILES", 20_000)
    monkeypatch.setattr(fetch_disk, "ROOM_BYTES", 1 << 60)
    assert (await refused(host.fetch("*"))).code == "fetch_no_room"
    assert host.here() == {}


async def test_a_folder_that_is_gone_is_told(host: ResultsHost) -> None:
    assert (await refused(host.fetch("*"))).code == "fetch_refused"


async def test_a_link_here_leads_nowhere(host: ResultsHost) -> None:
    put(host.folder, "out/a", "x")
    outside = host.base / "outside"
    outside.mkdir()
    host.target.mkdir(parents=True)
    (host.target / "out").symlink_to(outside)
    assert (await refused(host.fetch("out/*"))).code == "io"
    assert list(outside.iterdir()) == []


# -- a host that does not keep to the form ---------------------------------------------------


def chunk(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


async def lied_to(host: ResultsHost, *answers: bytes, globs: tuple[str, ...] = ("**",)) -> Fetched:
    async def open_liar(_transport: object, _python: object) -> ByteChannel:
        return Liar(*answers)

    fetching = Fetching(cast(HostTransport, host), None, open_liar)
    return await fetching.fetch(host.wish(*globs), lambda _done, _total: None)


async def test_names_that_lead_away_are_never_written(host: ResultsHost) -> None:
    names = [
        "../up", "/etc/cron.d/x", "a/../../b", "", ".", "a\0b", ".git/config", "a\x1b[2Jb", "a//b",
        "not/asked",
    ]  # fmt: skip
    rows = [[name, 1, 1] for name in names]
    fetched = await lied_to(host, told({}, rows), globs=("*", "a/**", "/etc/**", "../*", ".git"))
    assert fetched.files == 0 and fetched.odd_names == len(names)
    assert not host.target.exists()


@pytest.mark.parametrize(
    "answer",
    [
        told({}, {"a": 1}),
        told({}, [["a", -1, 1]]),
        told({}, [["a", "1", 1]]),
        told({}, [["a", 1]]),
        told({}, [[1, 1, 1]]),
        told({}, [["a", 1 << 70, 1]]),
        told({}, 7),
        b'{"bytes": 99999999999}\n',
    ],
    ids=range(8),
)
async def test_a_list_that_makes_no_sense_is_a_protocol_error(
    host: ResultsHost, answer: bytes
) -> None:
    assert isinstance(await refused(lied_to(host, answer)), ProtocolError)


async def test_a_file_that_is_longer_than_it_said_is_cut_off(host: ResultsHost) -> None:
    rows = told({}, [["a", 3, 1]])
    head = told({"size": 3, "mtime_ns": 1})
    error = await refused(lied_to(host, rows, head + chunk(b"x" * 500_000) * 3))
    assert isinstance(error, ProtocolError)
    huge = struct.pack(">I", 1 << 31)
    assert isinstance(await refused(lied_to(host, rows, head + huge)), ProtocolError)


async def test_a_hash_that_does_not_fit_is_not_kept(host: ResultsHost) -> None:
    one = (
        told({"size": 3, "mtime_ns": 1})
        + chunk(b"abc")
        + chunk(b"")
        + told({"sha256": "0" * 64, "changed": False})
    )
    fetched = await lied_to(host, told({}, [["a", 3, 1]]), one + one)
    assert (fetched.files, fetched.changed) == (0, ["a"]) and host.here() == {}


async def test_a_file_that_changes_twice_is_named(host: ResultsHost) -> None:
    sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    foot = told({"sha256": sha, "changed": True})
    one = told({"size": 3, "mtime_ns": 1}) + chunk(b"abc") + chunk(b"") + foot
    fetched = await lied_to(host, told({}, [["a", 3, 1]]), one + one)
    assert fetched.changed == ["a"] and host.here() == {}


async def test_a_file_that_went_away_is_named_and_the_rest_comes(host: ResultsHost) -> None:
    sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    gone = told({"error": "io", "facts": {"text": "No such file"}})
    foot = told({"sha256": sha, "changed": False})
    good = told({"size": 3, "mtime_ns": 1}) + chunk(b"abc") + chunk(b"") + foot
    fetched = await lied_to(host, told({}, [["a", 3, 1], ["b", 3, 1]]), gone + good)
    assert (fetched.failed, fetched.files) == (["a"], 1) and host.here() == {"b": "abc"}


async def test_a_name_that_is_a_folder_elsewhere_stops_it(host: ResultsHost) -> None:
    sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    foot = told({"sha256": sha, "changed": False})
    good = told({"size": 3, "mtime_ns": 1}) + chunk(b"abc") + chunk(b"") + foot
    rows = told({}, [["a", 3, 1], ["a/b", 3, 1]])
    assert (await refused(lied_to(host, rows, good + good))).code == "io"
    assert host.here()["a"] == "abc"
