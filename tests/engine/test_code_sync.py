"""Code on its way to a host: what is sent, what is never touched, and what a broken link leaves."""

from __future__ import annotations

import asyncio
import json
import os
import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.code_files import CodePlan
from cockpit.engine.code_list import CodeWish, plan_code
from cockpit.engine.code_pack import hashed
from cockpit.engine.code_sync import CodeSync
from cockpit.errors import CockpitError, LaunchFailed, LinkLost, ProtocolError
from cockpit.i18n.messages import explain
from cockpit.transport.base import ByteChannel
from tests.engine.code_hosts import CodeHost, put

PYTHONS = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python"))
NO_RSYNC = {"PATH": "/nowhere"}


@pytest.fixture
def host(tmp_path: Path) -> CodeHost:
    return CodeHost(tmp_path, environ=NO_RSYNC)


def random_text(size: int, seed: int = 1) -> str:
    return random.Random(seed).randbytes(size // 2).hex()


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parent.parent.name)
async def test_code_arrives_whole_and_then_only_what_changed(tmp_path: Path, python: Path) -> None:
    host = CodeHost(tmp_path, str(python), {**NO_RSYNC, "LC_ALL": "C"})
    put(host.root, "train.py", "one")
    put(host.root, "pkg/模型.py", "two")
    put(host.root, "pkg/copy", "one")
    put(host.root, "empty", "")
    put(host.root, "big.bin", random_text(900_000))
    put(host.root, "run.sh", "#!/bin/sh").chmod(0o755)
    (host.root / "link").symlink_to("pkg/模型.py")
    odd = os.path.join(os.fsencode(host.root), b"\xff\n'\"-odd")
    Path(os.fsdecode(odd)).write_text("odd")
    first = await host.send()
    assert (first.files, first.new_files, first.by) == (
        8,
        6,
        "tar",
    )  # no link, and equal content once
    there = host.there()
    assert there["pkg/模型.py"] == "two" and there["pkg/copy"] == "one" and there["empty"] == ""
    assert there["link"] == "-> pkg/模型.py" and there[os.fsdecode(b"\xff\n'\"-odd")] == "odd"
    assert there["big.bin"] == random_text(900_000)
    assert os.access(host.folder / "run.sh", os.X_OK)
    assert not os.access(host.folder / "train.py", os.X_OK)
    assert host.progress[-1][0] == host.progress[-1][1] > 900_000 and host.staged() == []
    again = await host.send()
    assert (again.new_files, again.new_bytes, again.by) == (0, 0, "")
    put(host.root, "train.py", "changed")
    edited = await host.send()
    assert (edited.new_files, edited.new_bytes) == (1, 7) and edited.wire_bytes < 3000
    assert host.there()["train.py"] == "changed"


async def test_a_mode_alone_is_put_right(host: CodeHost) -> None:
    put(host.root, "run.sh").chmod(0o644)
    await host.send()
    (host.root / "run.sh").chmod(0o755)
    assert (await host.send()).new_files == 0
    assert os.access(host.folder / "run.sh", os.X_OK)


async def test_what_is_gone_here_goes_there_and_nothing_else_does(host: CodeHost) -> None:
    for name in ("a.py", "old/b.py", "old/deep/c.py", "edited.py"):
        put(host.root, name)
    await host.send()
    put(host.folder, "theirs/data.bin", "keep")
    put(host.folder, "old/notes.txt", "keep")
    put(host.folder, "edited.py", "edited there")
    for name in ("old/b.py", "old/deep/c.py", "edited.py"):
        (host.root / name).unlink()
    sent = await host.send()
    assert sent.removed == 2
    assert host.there() == {
        "a.py": "x", "edited.py": "edited there", "old/notes.txt": "keep", "theirs/data.bin": "keep",
    }  # fmt: skip
    assert not (host.folder / "old" / "deep").exists()


async def refused(work: object) -> CockpitError:
    with pytest.raises(CockpitError) as caught:
        await work  # type: ignore[misc]
    assert "{" not in explain(caught.value.code, caught.value.facts).text
    return caught.value


async def test_a_file_that_was_edited_there_stops_everything(host: CodeHost) -> None:
    put(host.root, "a.py", "one")
    put(host.root, "b.py", "one")
    await host.send()
    put(host.folder, "a.py", "fix")
    put(host.root, "a.py", "two")
    put(host.root, "b.py", "two")
    error = await refused(host.send())
    assert error.code == "code_conflict" and error.facts["names"] == "a.py (changed there)"
    assert host.there() == {"a.py": "fix", "b.py": "one"}
    put(host.folder, "a.py", "two")  # the same change on both sides is none
    await host.send()
    assert host.there() == {"a.py": "two", "b.py": "two"}


async def test_an_edit_that_hides_its_time_is_seen(host: CodeHost) -> None:
    put(host.root, "a.py", "one")
    await host.send()
    before = (host.folder / "a.py").stat()
    put(host.folder, "a.py", "0ne")
    os.utime(host.folder / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    put(host.root, "a.py", "two")
    assert (await refused(host.send())).code == "code_conflict"


async def test_a_file_that_we_never_sent_is_not_ours(host: CodeHost) -> None:
    put(host.folder, "same.py", "same")
    put(host.folder, "other.py", "theirs")
    put(host.root, "same.py", "same")
    put(host.root, "other.py", "ours!!")
    error = await refused(host.send())
    assert error.facts["names"] == "other.py (not sent by us)"
    (host.root / "other.py").unlink()
    await host.send()
    (host.root / "same.py").unlink()
    put(host.root, "new.py")
    await host.send()
    assert host.there() == {"same.py": "same", "other.py": "theirs", "new.py": "x"}


async def test_replacing_keeps_what_gave_way(host: CodeHost) -> None:
    put(host.folder, "a.py", "theirs")
    put(host.folder, "b.py/inside", "a folder")
    put(host.folder, "elsewhere/x", "not touched")
    (host.folder / "c").symlink_to("elsewhere")
    for name in ("a.py", "b.py", "c/d.py"):
        put(host.root, name, "ours")
    names = (await refused(host.send())).facts["names"]
    assert names == "a.py (not sent by us), b.py (a folder there), c/d.py (below a link)"
    sent = await host.send(replaces=True)
    assert sent.kept == 3
    there = host.there()
    assert (there["a.py"], there["b.py"], there["c/d.py"]) == ("ours", "ours", "ours")
    assert there["elsewhere/x"] == "not touched"
    (kept,) = (host.folder / ".cockpit-code" / "kept").iterdir()
    assert (kept / "a.py").read_text() == "theirs"
    assert (kept / "b.py" / "inside").read_text() == "a folder"
    assert os.readlink(kept / "c") == "elsewhere"


async def test_two_projects_in_one_folder_leave_each_other_alone(host: CodeHost) -> None:
    other = host.base / "other"
    put(host.root, "a.py", "a")
    put(host.root, "both.py", "a")
    put(other, "b.py", "b")
    await host.send()
    await host.send(root=other)
    assert set(host.there()) == {"a.py", "both.py", "b.py"}
    put(other, "both.py", "b")
    assert (await refused(host.send(root=other))).code == "code_conflict"


async def test_files_folders_and_links_may_change_places(host: CodeHost) -> None:
    put(host.root, "a", "file")
    put(host.root, "b/c", "inside")
    (host.root / "l").symlink_to("a")
    await host.send()
    (host.root / "a").unlink()
    put(host.root, "a/x", "inside")
    (host.root / "b" / "c").unlink()
    (host.root / "b").rmdir()
    put(host.root, "b", "file")
    (host.root / "l").unlink()
    put(host.root, "l/y", "inside")
    await host.send()
    assert host.there() == {"a/x": "inside", "b": "file", "l/y": "inside"}
    (host.root / "l" / "y").unlink()
    (host.root / "l").rmdir()
    (host.root / "l").symlink_to("b")
    await host.send()
    assert host.there()["l"] == "-> b"


async def test_a_broken_link_changes_nothing_and_the_next_try_goes_on(host: CodeHost) -> None:
    put(host.root, "a.py", "one")
    await host.send()
    put(host.root, "a.py", "two")
    put(host.root, "big", random_text(4_000_000))
    host.cut_after_bytes = 1_200_000
    with pytest.raises(LinkLost):
        await host.send()
    assert host.there() == {"a.py": "one"}
    (host.folder / ".cockpit-code" / "lock").stat()
    sent = await host.send()
    assert host.there() == {"a.py": "two", "big": random_text(4_000_000)}
    assert sent.new_bytes < 4_000_000 and host.staged() == []


async def test_a_stop_in_the_middle_of_placing_is_no_conflict(host: CodeHost) -> None:
    put(host.root, "a.py", "one")
    await host.send()
    (notes,) = (host.folder / ".cockpit-code").glob("sent-*.json")
    old = notes.read_text()
    put(host.root, "a.py", "two")
    await host.send()
    rows = json.loads(old)
    rows["placing"] = {"a.py": json.loads(notes.read_text())["files"]["a.py"][0]}
    notes.write_text(json.dumps(rows))
    put(host.root, "a.py", "three")
    await host.send()
    assert host.there() == {"a.py": "three"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": {"a.py": 3}}', '{"files": 1}'])
async def test_spoilt_notes_make_nothing_ours(host: CodeHost, text: str) -> None:
    put(host.root, "a.py", "one")
    await host.send()
    (notes,) = (host.folder / ".cockpit-code").glob("sent-*.json")
    notes.write_text(text)
    assert (await host.send()).new_files == 0
    notes.write_text(text)
    put(host.root, "a.py", "two")
    assert (await refused(host.send())).facts["names"] == "a.py (not sent by us)"


async def test_two_launches_into_one_folder_wait_for_each_other(host: CodeHost) -> None:
    put(host.root, "a.py")
    await host.send()
    first = await host.courier()
    plan = plan_code(CodeWish(host.root, str(host.folder), by_git=False))
    from cockpit.engine.code_pack import listing

    await first.ask(
        "code",
        {"cwd": plan.cwd, "source": plan.source},
        listing(hashed(plan)),
        most_bytes=10_000,
    )
    put(host.root, "a.py", "two")
    second = asyncio.ensure_future(host.send())
    done, _waiting = await asyncio.wait({second}, timeout=1.0)
    assert not done
    await first.close()
    assert (await second).new_files == 1


async def test_the_folder_is_kept_until_what_was_sent_is_started(host: CodeHost) -> None:
    put(host.root, "a.py")
    host.lets_go = False
    await host.send()
    first = host.last
    put(host.root, "a.py", "two")
    second = asyncio.ensure_future(host.send())
    done, _waiting = await asyncio.wait({second}, timeout=1.0)
    assert not done and host.there() == {"a.py": "x"} and first is not None
    await first.let_go()
    assert (await second).new_files == 1 and host.last is not None
    await host.last.let_go()


async def test_a_file_that_changes_while_it_is_sent_starts_nothing(host: CodeHost) -> None:
    put(host.root, "a.py", "one")
    files = hashed(plan_code(CodeWish(host.root, str(host.folder), by_git=False)))
    put(host.root, "a.py", "two")
    assert (await refused(host.send(files))).code == "code_changed_here"
    put(host.root, "a.py", "o")
    assert (await refused(host.send(files))).code == "code_changed_here"
    (host.root / "a.py").unlink()
    put(host.root, "b.py")
    assert (await refused(host.send(files))).code == "code_changed_here"
    assert host.there() == {}


@pytest.mark.parametrize("what", ["words", "fifo", "folder", "link"])
async def test_the_file_that_changed_is_the_one_that_is_named(host: CodeHost, what: str) -> None:
    for name in ("a.py", "b.py", "c.py"):
        put(host.root, name, name)
    files = hashed(plan_code(CodeWish(host.root, str(host.folder), by_git=False)))
    changed = host.root / "b.py"
    changed.unlink()
    if what == "words":
        put(host.root, "b.py", "B.py")
    elif what == "fifo":
        os.mkfifo(changed)
    elif what == "folder":
        changed.mkdir()
    else:
        changed.symlink_to("a.py")
    error = await refused(host.send(files))
    assert (error.code, error.facts["path"]) == ("code_changed_here", "b.py")
    assert host.there() == {}


async def test_a_folder_that_is_not_ours_alone_is_refused(host: CodeHost) -> None:
    put(host.root, "a.py")
    (host.folder / ".cockpit-code").mkdir(parents=True)
    (host.folder / ".cockpit-code").chmod(0o777)
    error = await refused(host.send())
    assert error.code == "code_host_failed" and error.facts["text"] == "unsafe folder"
    (host.folder / ".cockpit-code").rmdir()
    (host.folder / ".cockpit-code").symlink_to("/tmp")
    assert (await refused(host.send())).code == "code_host_failed"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_may_not_be_written_to_is_seen_before(host: CodeHost) -> None:
    put(host.root, "a.py", "one")
    put(host.root, "pkg/deep/b.py", "one")
    put(host.folder, "pkg/theirs")
    (host.folder / "pkg").chmod(0o555)
    error = await refused(host.send())
    (host.folder / "pkg").chmod(0o755)
    assert "pkg/deep/b.py (in a folder that you may not write to)" in str(error.facts["names"])
    assert host.there() == {"pkg/theirs": "x"}


async def test_a_failure_while_placing_says_that_it_had_begun(host: CodeHost) -> None:
    placing = told({"error": "io", "facts": {"text": "No"}})
    error = await lied_to(host, told({}, NOTHING), placing)
    assert error.facts["why"] == "placing"
    assert "next start puts in the rest" in explain(error.code, error.facts).text


async def test_a_working_folder_that_is_a_file_is_told(host: CodeHost) -> None:
    put(host.root, "a.py")
    put(host.base, "there", "a file")
    assert (await refused(host.send())).code == "code_host_failed"


# -- a host that does not keep to the form ---------------------------------------------------


class Liar:
    """Answers with what it is told to, whatever is asked."""

    noise = b""
    signal = None

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)

    async def read(self, limit: int = 65536) -> bytes:
        return self._answers.pop(0) if self._answers else b""

    async def write(self, data: bytes) -> None: ...

    async def write_eof(self) -> None: ...

    def stderr_tail(self) -> bytes:
        return b"\x1b]0;title\x07bye"

    async def wait(self) -> int | None:
        return None

    async def close(self) -> None: ...


def told(fields: dict[str, object], body: object = None) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    return json.dumps({**fields, "bytes": len(data)}).encode() + b"\n" + data


def plan_of(host: CodeHost) -> CodePlan:
    put(host.root, "a.py")
    return replace(plan_code(CodeWish(host.root, "/there", by_git=False)))


async def lied_to(host: CodeHost, *answers: bytes) -> CockpitError:
    plan = plan_of(host)

    async def open_liar(_transport: object, _python: object) -> ByteChannel:
        return Liar(*answers)

    sync = CodeSync(host, None, open_liar)  # type: ignore[arg-type]
    return await refused(sync.send(plan, hashed(plan), lambda _done, _total: None))


NOTHING: dict[str, object] = {"need": [], "conflicts": []}


@pytest.mark.parametrize(
    "answer",
    [
        told({}, {"need": [[1, 0]], "conflicts": []}),
        told({}, {"need": [[-1, 0]], "conflicts": []}),
        told({}, {"need": [[True, 0]], "conflicts": []}),
        told({}, {"need": [[0, -1]], "conflicts": []}),
        told({}, {"need": [[0, 99]], "conflicts": []}),
        told({}, {"need": 7}),
        told({}, [1]),
        told({}, {"conflicts": [[5, "x"]], "need": []}),
        b"[]\n",
        b"nonsense\n",
        b'{"bytes": -1}\n',
        b'{"bytes": 99999999}\n',
        b'{"bytes": "many"}\n',
        b"x" * 70_000,
        b"[" * 60_000 + b"\n",
    ],
    ids=range(15),
)
async def test_nonsense_of_a_host_is_a_protocol_error(host: CodeHost, answer: bytes) -> None:
    error = await lied_to(host, answer)
    assert isinstance(error, ProtocolError), error


async def test_what_a_host_says_is_shown_harmless_and_short(host: CodeHost) -> None:
    facts = {"text": "\x1b]52;c;aGk=\x07" + "x" * 9000, "errno": "28"}
    error = await lied_to(host, told({"error": "io\x1b[2J" * 99, "facts": facts}))
    assert isinstance(error, LaunchFailed) and error.code == "code_host_failed"
    words = explain(error.code, error.facts).text
    assert "\x1b" not in words and len(words) < 1000
    gone = await lied_to(host)
    assert isinstance(gone, LinkLost) and "\x1b" not in str(gone.facts["text"])


async def test_a_full_disk_is_seen_before_and_told_after(host: CodeHost) -> None:
    need = {"need": [[0, 0]], "conflicts": []}
    before = await lied_to(host, told({"free": 5}, need))
    assert before.code == "code_host_full" and before.facts["needed"] == "1 B"
    full = told({"error": "io", "facts": {"errno": 28}})
    after = await lied_to(host, told({}, need), full)
    assert after.code == "code_host_full"


async def test_beats_are_no_answer(host: CodeHost) -> None:
    beats = b'{"beat": 1}\n' * 3
    error = await lied_to(host, beats + told({"error": "busy"}))
    assert error.code == "code_busy"
    assert struct.calcsize(">I") == 4
