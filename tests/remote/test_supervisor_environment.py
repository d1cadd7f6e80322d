"""What a job finds in its environment: the platform's variables, caches where there is room, a Python by its path."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cockpit.domain.models import RunId
from cockpit.errors import LaunchFailed
from tests.remote.probing import REMOTE
from tests.remote.supervised import Runs, shell


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module as its own imports find it."""
    monkeypatch.syspath_prepend(str(REMOTE))
    before = set(sys.modules)
    yield __import__("supervisor_environment")
    for name in set(sys.modules) - before:
        if name.startswith("supervisor"):
            del sys.modules[name]


def laid(root: Path, files: dict[str, bytes]) -> str:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(root)


# -- the platform's variables -------------------------------------------------------------------


def test_assignments_are_read_and_never_run(module: ModuleType, tmp_path: Path) -> None:
    text = (
        b'export HF_HOME="/workspace/hf"\n'
        b"PLAIN=a b # a remark\n"
        b"SINGLE='$HOME `id`'\n"
        b'QUOTED="say \\"hi\\" for \\$5"\n'
        b'RUN="$(touch ' + os.fsencode(tmp_path / "ran") + b')"\n'
        b"TICKS=`id`\n"
        b"LATER=$HOME/x\n"
        b"not a line\n1BAD=x\nEMPTY=\n\xff\xfe=x\n"
    )
    assert module.assignments(text) == {
        b"HF_HOME": b"/workspace/hf",
        b"PLAIN": b"a b",
        b"SINGLE": b"$HOME `id`",
        b"QUOTED": b'say "hi" for $5',
        b"EMPTY": b"",
    }
    assert not (tmp_path / "ran").exists()


def test_a_containers_first_process_lends_what_the_session_lacks(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = laid(
        tmp_path,
        {
            "etc/rp_environment": b'export FROM_FILE="1"\nexport PATH="/opt/cuda/bin:/usr/bin:rel"\n',
            "proc/1/environ": b"RUNPOD_POD_ID=p\0FROM_INIT=2\0HOME=/elsewhere\0SSH_X=y\0GIVEN=theirs\0FROM_FILE=3",
        },
    )
    monkeypatch.setenv("GIVEN", "ours")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    env = module.host_environment(root)
    assert (env[b"FROM_FILE"], env[b"FROM_INIT"], env[b"GIVEN"]) == (b"1", b"2", b"ours")
    assert env[b"PATH"] == b"/usr/bin:/bin:/opt/cuda/bin"
    assert env.get(b"HOME") == os.environb.get(b"HOME") and b"SSH_X" not in env


def test_the_init_of_a_machine_lends_nothing(module: ModuleType, tmp_path: Path) -> None:
    root = laid(tmp_path, {"proc/1/environ": b"FROM_INIT=2\0BOOT_IMAGE=x"})
    assert module.platform_variables(root) == {}
    laid(tmp_path, {".dockerenv": b""})
    assert module.platform_variables(root) == {b"FROM_INIT": b"2", b"BOOT_IMAGE": b"x"}


def test_a_flood_of_variables_is_bounded(module: ModuleType, tmp_path: Path) -> None:
    lines = b"".join(b"V%d=x\n" % number for number in range(5000)) + b"BIG=" + b"y" * 100_000
    root = laid(tmp_path, {"etc/environment": lines})
    found = module.platform_variables(root)
    assert len(found) == module.MAX_VARIABLES and b"BIG" not in found


# -- caches -------------------------------------------------------------------------------------


def test_a_named_data_folder_takes_the_caches_that_nobody_placed(
    module: ModuleType, tmp_path: Path
) -> None:
    env = {b"HOME": os.fsencode(tmp_path), b"VLLM_CACHE_ROOT": b"/mine"}
    folder = module.move_caches(env, str(tmp_path / "data"), "/fallback")
    assert folder == str(tmp_path / "data" / ".cache")
    assert env[b"HF_HOME"] == os.fsencode(tmp_path / "data" / ".cache" / "huggingface")
    assert env[b"VLLM_CACHE_ROOT"] == b"/mine"
    assert set(module.CACHES) <= set(env)


def test_models_that_are_there_stay_where_they_are(module: ModuleType, tmp_path: Path) -> None:
    (tmp_path / ".cache" / "huggingface" / "hub").mkdir(parents=True)
    env = {b"HOME": os.fsencode(tmp_path)}
    module.move_caches(env, str(tmp_path / "data"), "/fallback")
    assert b"HF_HOME" not in env and b"TRITON_CACHE_DIR" in env


def test_a_home_that_takes_nothing_sends_caches_to_the_run_root(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "DATA_DISKS", ())
    env = {b"HOME": os.fsencode(tmp_path / "gone")}
    assert module.move_caches(env, None, "/fallback") == "/fallback/.cache"
    roomy = {b"HOME": os.fsencode(tmp_path)}
    assert module.move_caches(roomy, None, "/fallback") is None and set(roomy) == {b"HOME"}


def test_a_platforms_data_disk_is_used_when_the_home_is_small(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disk = tmp_path / "autodl-tmp"
    disk.mkdir()
    monkeypatch.setattr(module, "DATA_DISKS", (str(disk),))
    env = {b"HOME": os.fsencode(tmp_path)}
    assert module.move_caches(dict(env), None, "/f") is None  # one and the same file system
    monkeypatch.setattr(
        module, "has_more_room", lambda there, here: (there, here) == (str(disk), str(tmp_path))
    )
    assert module.move_caches(env, None, "/f") == f"{disk}/.cache"


def test_a_hub_mirror_turns_the_other_protocol_off(module: ModuleType) -> None:
    env = {b"HF_ENDPOINT": b"https://mirror.example"}
    module.complete(env)
    assert env[b"HF_HUB_DISABLE_XET"] == b"1"
    plain: dict[bytes, bytes] = {}
    module.complete(plain)
    assert plain == {}


# -- a Python environment -------------------------------------------------------------------------


def conda(prefix: Path, **scripts: str) -> Path:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").symlink_to(sys.executable)
    folder = prefix / "etc" / "conda" / "activate.d"
    folder.mkdir(parents=True)
    for name, text in scripts.items():
        (folder / f"{name}.sh").write_text(text)
    return prefix


async def test_a_conda_environments_own_scripts_set_what_they_set(
    runs: Runs, tmp_path: Path
) -> None:
    prefix = conda(
        tmp_path / "conda it's",
        cuda='export CUDA_HOME="$CONDA_PREFIX/cuda"; echo noise; export PATH="$CUDA_HOME/bin:$PATH"\n',
    )
    script = 'printf "%s\\n%s\\n%s\\n" "$CUDA_HOME" "${PATH%%:*}" "$(command -v python)"'
    env = {"CONDA_PREFIX": str(prefix)}
    await runs.agent.start(shell("a-1", script, env=env, path_first=(f"{prefix}/bin",)))
    await runs.ended("a-1")
    assert (runs.folder("a-1") / "log").read_text().splitlines() == [
        f"{prefix}/cuda",
        f"{prefix}/cuda/bin",
        f"{prefix}/bin/python",
    ]


def test_scripts_that_hang_or_fail_cost_their_variables_only(
    module: ModuleType, tmp_path: Path
) -> None:
    for name, text in (("hangs", "sleep 600 & wait\n"), ("fails", "exit 3\n")):
        prefix = conda(tmp_path / name, it=text)
        env = {**os.environb, b"CONDA_PREFIX": os.fsencode(prefix)}
        before = dict(env)
        assert not module.activate(env, limit_s=0.5)
        assert env == before


async def test_an_environment_that_is_not_there_is_named_before_anything_starts(
    runs: Runs,
) -> None:
    env = {"VIRTUAL_ENV": "~/no such/.venv"}
    with pytest.raises(LaunchFailed) as caught:
        await runs.agent.start(shell("a-1", "true", env=env))
    assert caught.value.facts["why"] == "no_environment"
    assert str(caught.value.facts["path"]).endswith("no such/.venv/bin/python")
    assert not list(runs.home.glob("**/v1/*/a-1"))


async def test_a_tilde_in_the_prefix_is_the_hosts_home(runs: Runs) -> None:
    conda(runs.home / "env")
    spec = shell(
        "a-1", 'echo "$VIRTUAL_ENV"', env={"VIRTUAL_ENV": "~/env"}, path_first=("~/env/bin",)
    )
    await runs.agent.start(spec)
    await runs.ended("a-1")
    assert (runs.folder("a-1") / "log").read_text() == f"{runs.home}/env\n"


async def test_moved_caches_are_told_and_a_retry_of_the_start_finds_the_run(runs: Runs) -> None:
    spec = shell("a-1", 'echo "$HF_HOME"', data_dir=str(runs.home / "data"))
    await runs.agent.start(spec)
    await runs.ended("a-1")
    assert (runs.folder("a-1") / "log").read_text() == f"{runs.home}/data/.cache/huggingface\n"
    assert b"caches_moved" in (runs.folder("a-1") / "events.jsonl").read_bytes()
    assert (await runs.agent.status(RunId("a-1"))).state == "exited"
