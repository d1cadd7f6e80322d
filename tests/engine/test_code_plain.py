"""Code to a host without Python, by its own sh, tar and sha256sum."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from cockpit.domain.models import HostName
from cockpit.engine.code_list import CodeWish, plan_code
from cockpit.engine.code_pack import Hashed, hashed
from cockpit.engine.code_plain import PlainCode
from cockpit.engine.code_sync import CodeSent
from cockpit.errors import CockpitError, ProtocolError
from cockpit.i18n.messages import explain
from cockpit.transport.base import Completed
from cockpit.transport.local import LocalTransport
from tests.engine.code_hosts import CodeHost, put


class PlainHost(CodeHost):
    transport: LocalTransport

    async def send(
        self, files: tuple[Hashed, ...] | None = None, root: Path | None = None, **wish: object
    ) -> CodeSent:
        made = CodeWish(root or self.root, str(self.folder), by_git=False)
        plan = plan_code(replace(made, **wish))  # type: ignore[arg-type]
        sync = PlainCode(self.transport, plan)
        return await sync.send(files or hashed(plan), lambda a, b: self.progress.append((a, b)))


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[PlainHost]:
    made = PlainHost(tmp_path)
    made.transport = LocalTransport(HostName("box"))
    await made.transport.connect()
    yield made
    await made.transport.close()


async def refused(work: object) -> CockpitError:
    with pytest.raises(CockpitError) as caught:
        await work  # type: ignore[misc]
    assert "{" not in explain(caught.value.code, caught.value.facts).text
    return caught.value


async def test_code_arrives_whole_and_then_only_what_changed(host: PlainHost) -> None:
    put(host.root, "train.py", "one")
    put(host.root, "pkg/deep/模型.py", "two")
    put(host.root, "-dash $(x) 'q' \"d\"", "odd")
    put(host.root, "empty", "")
    put(host.root, "big", "x" * 700_000)
    put(host.root, "a" * 120 + "/" + "b" * 120, "long")
    put(host.root, "run.sh").chmod(0o755)
    (host.root / "link").symlink_to("pkg/deep")
    odd = os.path.join(os.fsencode(host.root), b"\xff\xfe")
    Path(os.fsdecode(odd)).write_text("bytes")
    first = await host.send()
    assert (first.new_files, first.by) == (9, "tar")
    there = host.there()
    assert there.pop("link") == "-> pkg/deep"
    assert there == {
        "train.py": "one", "pkg/deep/模型.py": "two", "-dash $(x) 'q' \"d\"": "odd", "empty": "",
        "big": "x" * 700_000, "a" * 120 + "/" + "b" * 120: "long", "run.sh": "x",
        os.fsdecode(b"\xff\xfe"): "bytes",
    }  # fmt: skip
    assert os.access(host.folder / "run.sh", os.X_OK)
    put(host.root, "train.py", "changed")
    edited = await host.send()
    assert edited.new_files == 2 and edited.new_bytes == 7  # the link is put anew
    assert host.there()["train.py"] == "changed" and host.there()["link"] == "-> pkg/deep"
    assert not (host.folder / ".cockpit-code" / "stage").exists()


async def test_what_is_gone_here_goes_there_and_nothing_else_does(host: PlainHost) -> None:
    for name in ("a.py", "old/deep/b.py", "edited.py"):
        put(host.root, name)
    await host.send()
    put(host.folder, "theirs/data", "keep")
    put(host.folder, "edited.py", "edited there")
    (host.root / "old" / "deep" / "b.py").unlink()
    (host.root / "edited.py").unlink()
    assert (await host.send()).removed == 1
    assert host.there() == {"a.py": "x", "edited.py": "edited there", "theirs/data": "keep"}
    assert not (host.folder / "old").exists()


async def test_what_is_not_as_we_sent_it_stops_everything_or_is_kept(host: PlainHost) -> None:
    put(host.folder, "theirs.py", "theirs")
    put(host.folder, "folder.py/x", "inside")
    put(host.folder, "elsewhere/y", "kept")
    (host.folder / "through").symlink_to("elsewhere")
    for name in ("theirs.py", "folder.py", "through/z.py", "new.py"):
        put(host.root, name, "ours")
    error = await refused(host.send())
    assert error.code == "code_conflict" and error.facts["count"] == 3
    for words in (
        "theirs.py (not sent by us)",
        "folder.py (a folder there)",
        "through/z.py (below a link)",
    ):
        assert words in str(error.facts["names"])
    assert "new.py" not in host.there()
    assert (await host.send(replaces=True)).kept == 3
    there = host.there()
    assert [there[name] for name in ("theirs.py", "folder.py", "through/z.py")] == ["ours"] * 3
    (kept,) = (host.folder / ".cockpit-code" / "kept").iterdir()
    assert (kept / "theirs.py").read_text() == "theirs" and there["elsewhere/y"] == "kept"


async def test_an_edit_there_is_seen(host: PlainHost) -> None:
    put(host.root, "a.py", "one")
    await host.send()
    put(host.folder, "a.py", "fix")
    put(host.root, "a.py", "two")
    assert (await refused(host.send())).facts["names"] == "a.py (changed there)"
    put(host.folder, "a.py", "two")
    assert (await host.send()).new_files == 0


async def test_a_stop_in_the_middle_of_placing_is_no_conflict(host: PlainHost) -> None:
    put(host.root, "a.py", "one")
    await host.send()
    (notes,) = (host.folder / ".cockpit-code").glob("sent-*.txt")
    old = notes.read_text()
    put(host.root, "a.py", "two")
    await host.send()
    notes.with_name(notes.name.replace("sent-", "placing-")).write_text(notes.read_text())
    notes.write_text(old)
    put(host.root, "a.py", "three")
    await host.send()
    assert host.there() == {"a.py": "three"}


async def test_what_changes_meanwhile_is_not_put_in_place(host: PlainHost) -> None:
    put(host.root, "a.py", "one")
    files = hashed(plan_code(CodeWish(host.root, str(host.folder), by_git=False)))
    put(host.root, "a.py", "two")
    assert (await refused(host.send(files))).code == "code_changed_here"
    assert host.there() == {}


@pytest.mark.parametrize("name", ["a\nb", "a\\b"], ids=["newline", "backslash"])
async def test_names_that_a_shell_cannot_be_told_are_refused(host: PlainHost, name: str) -> None:
    put(host.root, name)
    assert (await refused(host.send())).code == "code_name_odd"


async def test_a_folder_that_is_not_ours_is_refused(host: PlainHost) -> None:
    put(host.root, "a")
    host.folder.mkdir()
    (host.folder / ".cockpit-code").symlink_to("/tmp")
    assert (await refused(host.send())).code == "code_host_failed"
    (host.folder / ".cockpit-code").unlink()
    host.folder.rmdir()
    put(host.base, "there", "a file")
    assert (await refused(host.send())).code == "code_host_failed"


@pytest.mark.parametrize(
    "done",
    [
        Completed(0, b"", b"", truncated=True),
        Completed(0, b"x y z\n", b""),
        Completed(0, b"f\n" * 9, b""),
    ],
    ids=["long", "words", "lines"],
)
async def test_nonsense_of_a_host_is_a_protocol_error(host: PlainHost, done: Completed) -> None:
    put(host.root, "a")

    async def run(*_args: object, **_more: object) -> Completed:
        return done

    host.transport.run = run  # type: ignore[method-assign]
    assert isinstance(await refused(host.send()), ProtocolError)
