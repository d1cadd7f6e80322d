"""`cockpit run` with [code] and [fetch] over a real sshd: sent once, then what changed; fetched once, whole."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.desk import Desk, Done, until
from tests.rented import Rented, rented_box
from tests.servers import Identity, openssh

pytestmark = [
    pytest.mark.sshd,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

SENT = re.compile(
    r"Code sent: .*?(?P<new>\d+) of (?P<all>\d+) files, (?P<size>[\d.]+ \S+) as (?P<wire>[\d.]+ \S+) by (?P<by>\w+)"
)
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


@pytest.fixture
async def rented(tmp_path: Path) -> AsyncIterator[Rented]:
    async with rented_box(tmp_path) as made:
        yield made


def git(folder: Path, *args: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *identity, *args], cwd=folder, env=environ, check=True, timeout=60)


def project(rented: Rented, script: str, more: str = "") -> Path:
    """A repository with a profile in it; returns its folder."""
    root = rented.desk.folder / "repo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text("*.bin\n")
    (root / "data.bin").write_text("not sent")
    (root / "train.py").write_text("print('one')\n")
    (root / "weights.txt").write_text(random.Random(1).randbytes(1_000_000).hex())
    git(root, "add", "train.py", "weights.txt", ".gitignore")
    git(root, "commit", "-qm", "one")
    (root / "run.toml").write_text(
        f'name = "job"\nkind = "command"\ncwd = "~/job"\n[command]\nscript = {json.dumps(script)}\n'
        f'[code]\npath = "."\n{more}'
    )
    return root


def sent(done: Done) -> dict[str, str]:
    found = SENT.search(done.err)
    assert found is not None, done.err
    return found.groupdict()


def size(text: str) -> float:
    number, unit = text.split()
    return float(number) * UNITS[unit]


async def run(rented: Rented, root: Path, *more: str) -> Done:
    return await rented.desk.call("run", str(root / "run.toml"), *more)


async def edited_run(rented: Rented, root: Path) -> tuple[dict[str, str], Done]:
    """A first run sends everything, one after an edit what changed."""
    first = await run(rented, root)
    assert (first.code, first.out) == (0, b"one\n"), first.err
    assert sent(first)["new"] == sent(first)["all"] == "4"
    text = (root / "weights.txt").read_text()
    (root / "weights.txt").write_text(text[:1_000_000] + "edit" + text[1_000_000:])
    (root / "train.py").write_text("print('two')\n")
    second = await run(rented, root)
    assert (second.code, second.out) == (0, b"two\n"), second.err
    assert sent(second)["new"] == "2"
    third = await run(rented, root)
    assert "all 4 files were there" in third.err
    home = rented.sshd.folder / "home" / "job"
    assert {path.name for path in home.iterdir()} == {
        ".cockpit-code", ".gitignore", "run.toml", "train.py", "weights.txt",
    }  # fmt: skip
    assert (home / "weights.txt").read_bytes() == (root / "weights.txt").read_bytes()
    return sent(second), third


@pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")
async def test_with_rsync_on_both_ends_an_edit_travels_as_an_edit(rented: Rented) -> None:
    root = project(rented, "exec python3 train.py")
    told, _third = await edited_run(rented, root)
    assert told["by"] == "rsync" and size(told["wire"]) < 40_000


async def test_without_rsync_there_changed_files_travel_as_a_tar(tmp_path: Path) -> None:
    """An sshd whose PATH has Python and no rsync."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("python3", "sh", "uname", "head", "cat"):
        (tools / name).symlink_to(shutil.which(name, path="/usr/bin:/bin") or "/bin/sh")
    key = Identity.make(tmp_path / "id_test")
    options = [f'SetEnv PATH="{tools}"']
    async with openssh(tmp_path / "sshd", authorized=[key], options=options) as sshd:
        rented = Rented(Desk(tmp_path / "desk"), sshd, key)
        rented.desk = rented.desk_of(tmp_path / "desk")
        root = project(rented, "exec python3 train.py")
        told, _third = await edited_run(rented, root)
        assert told["by"] == "tar" and size(told["wire"]) < 1_500_000
        assert await rented.desk.clear() == []


async def test_a_link_that_is_cut_on_the_way_loses_nothing(rented: Rented) -> None:
    root = project(rented, "cat big | sha256sum; exec python3 train.py")
    data = random.Random(3).randbytes(60_000_000)
    (root / "big").write_bytes(data)
    process = await rented.desk.start("run", str(root / "run.toml"))
    stage = rented.sshd.folder / "home" / "job" / ".cockpit-code" / "stage"

    def is_under_way() -> bool:
        return stage.exists() and any(path.stat().st_size > 1_000_000 for path in stage.iterdir())

    await until(is_under_way, "the code is on its way")
    assert not (stage.parent.parent / "train.py").exists()
    rented.sshd.kill_connections()
    done = await rented.desk.end_of(process)
    assert done.code == 0, done.err
    assert done.out.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert list(stage.iterdir()) == []


async def test_where_the_code_came_from_is_kept_and_secrets_are_covered(rented: Rented) -> None:
    root = project(rented, "exec python3 train.py", '[env]\nsecrets = ["TOKEN"]\n')
    (root / "train.py").write_text("print('changed')  # hush-hush-value\n")
    done = await rented.desk.call("run", str(root / "run.toml"), env={"TOKEN": "hush-hush-value"})
    assert done.code == 0, done.err
    (diff,) = rented.desk.home.glob("runs/box/*/code.diff")
    text = diff.read_text()
    assert "-print('one')" in text and "+print('changed')" in text and "?? run.toml" in text
    assert "hush-hush-value" not in text and diff.stat().st_mode & 0o077 == 0
    (folder,) = rented.runs("job")
    notes = json.loads((folder / "spec.json").read_text())["notes"]
    assert len(notes["git_commit"]) == 40 and notes["git_branch"] == "main"
    assert notes["git_dirty"] == "yes" and len(notes["code_diff"]) == 64
    assert "hush-hush-value" not in json.dumps(notes)


async def test_ctrl_c_while_code_is_on_its_way_starts_nothing(rented: Rented) -> None:
    root = project(rented, "exec python3 train.py")
    (root / "big").write_bytes(random.Random(4).randbytes(60_000_000))
    process = await rented.desk.start("run", str(root / "run.toml"))
    stage = rented.sshd.folder / "home" / "job" / ".cockpit-code" / "stage"
    await until(lambda: stage.exists() and any(stage.iterdir()), "the code is on its way")
    process.send_signal(signal.SIGINT)
    done = await rented.desk.end_of(process)
    assert done.code == 130 and "nothing was started" in done.err, done.err
    assert rented.runs("job") == [] and not (stage.parent.parent / "train.py").exists()


async def test_the_env_file_is_no_code(rented: Rented) -> None:
    root = project(rented, 'ls -a; echo "$KEY"', '[env]\nfile = ".env"\n')
    (root / ".env").write_text("KEY=hush-hush-value\n")
    done = await run(rented, root)
    assert done.code == 0 and b".env" not in done.out.split(), done.err
    assert "Not sent" in done.err and "hush-hush-value" not in done.err
    home = rented.sshd.folder / "home"
    for path in home.rglob("*"):
        if path.is_file() and path.name != "log":
            assert b"hush-hush-value" not in path.read_bytes(), path


async def test_an_edit_on_the_host_starts_nothing_and_says_what_to_do(rented: Rented) -> None:
    root = project(rented, "exec python3 train.py")
    assert (await run(rented, root)).code == 0
    there = rented.sshd.folder / "home" / "job" / "train.py"
    there.write_text("print('fixed there')\n")
    (root / "train.py").write_text("print('two')\n")
    done = await run(rented, root)
    assert done.code == 69 and "train.py (changed there)" in done.err
    assert "code.on_conflict=replace" in done.err and len(rented.runs("job")) == 1
    done = await run(rented, root, "--set", "code.on_conflict=replace")
    assert (done.code, done.out) == (0, b"two\n")
    (kept,) = (there.parent / ".cockpit-code" / "kept").glob("*/train.py")
    assert kept.read_text() == "print('fixed there')\n"


async def test_too_much_is_not_sent_without_asking(rented: Rented) -> None:
    root = project(rented, "exec python3 train.py")
    done = await run(rented, root, "--set", 'code.max_size="1 MiB"')
    assert done.code == 78 and "weights.txt 1.9 MiB" in done.err
    assert '--set code.max_size="1 GiB"' in done.err and rented.runs("job") == []
    dry = await run(rented, root, "--dry-run", "--json", "--set", "code.max_files=2")
    (plan,) = dry.events
    assert plan["code"]["files"] == 4 and plan["code"]["too_large"] is True
    assert "train.py" in plan["code"]["names"] and "data.bin" not in plan["code"]["names"]
    assert plan["code"]["git_branch"] == "main"


FETCH = '[fetch]\nglobs = ["out/**/*.txt", "best"]\n'
MAKE = "mkdir -p out/a best; echo result > out/a/r.txt; echo b > best/model; echo no > out/x.log; "


async def test_results_come_back_at_the_end_and_once(rented: Rented) -> None:
    root = project(rented, MAKE, FETCH)
    done = await run(rented, root)
    assert done.code == 0 and "Fetched: 2 files" in done.err
    (folder,) = (root / "fetched").glob("job-*")
    assert (folder / "out" / "a" / "r.txt").read_text() == "result\n"
    assert (folder / "best" / "model").read_text() == "b\n"
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 2
    again = await rented.desk.call("attach", folder.name)
    assert again.code == 0 and "Fetched" not in again.err
    second = await run(rented, root)
    assert "all 4 files were there" in second.err, "what was fetched is no code"


async def test_a_run_that_failed_keeps_its_results_unless_they_are_wanted(rented: Rented) -> None:
    root = project(rented, MAKE + "exit 3", FETCH)
    done = await run(rented, root)
    assert done.code == 3 and "Fetched" not in done.err and not (root / "fetched").exists()
    done = await run(rented, root, "--set", "fetch.when=always")
    assert done.code == 3 and "Fetched: 2 files" in done.err


async def test_wait_fetches_what_a_detached_run_left(rented: Rented) -> None:
    root = project(rented, MAKE, FETCH)
    started = await run(rented, root, "--detach")
    name = started.out.decode().strip()
    assert started.code == 0 and "Code sent" in started.err
    done = await rented.desk.call("wait", name)
    assert done.code == 0 and "Fetched: 2 files" in done.err
    assert (root / "fetched" / name / "best" / "model").exists()


async def test_a_link_that_is_cut_while_results_come_costs_nothing(rented: Rented) -> None:
    root = project(rented, "head -c 80000000 /dev/urandom > big", '[fetch]\nglobs = ["big"]\n')
    process = await rented.desk.start("run", str(root / "run.toml"))

    def is_under_way() -> bool:
        return any(
            path.stat().st_size > 1_000_000 for path in root.glob("fetched/*/.cockpit-parts/*")
        )

    await until(is_under_way, "results are on their way")
    rented.sshd.kill_connections()
    done = await asyncio.wait_for(rented.desk.end_of(process), 60)
    assert done.code == 0 and "Fetched: 1 files" in done.err, done.err
    (here,) = root.glob("fetched/job-*/big")
    there = rented.sshd.folder / "home" / "job" / "big"
    assert here.read_bytes() == there.read_bytes()
