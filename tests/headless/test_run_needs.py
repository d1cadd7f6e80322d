"""[needs] of a profile on a host: met, missing, or not to be told; and pipes that hide an exit code."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from cockpit.cli import main
from tests.desk import Desk
from tests.nvml.double import drop_locks, make_driver, own_cards


def venv(folder: Path) -> Path:
    """An environment whose Python is ours: its packages are known."""
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder


async def test_packages_of_the_environment_are_looked_up_where_the_run_would_find_them(
    desk: Desk,
) -> None:
    rich = importlib.metadata.version("rich")
    env = f'[env]\nvenv = "{venv(desk.user / "my env")}"\n'
    wanted = '[needs.python]\nrich = ">=1"\nrich_not_there = ">=1"\npython = ">=3.6"\n'
    path = desk.profile("fits", "echo started", env + wanted)
    (plan,) = (await desk.call("run", path, "--dry-run", "--json")).events
    told = {check["facts"].get("name"): check for check in plan["checks"]}
    assert told["rich"]["verdict"] == "ok" and told["rich"]["facts"]["found"] == rich
    assert told["python"]["verdict"] == "ok"
    assert told["rich_not_there"]["verdict"] == "unknown"
    assert (await desk.call("run", path)).out == b"started\n"


async def test_a_package_that_is_too_old_is_refused_with_both_versions(desk: Desk) -> None:
    rich = importlib.metadata.version("rich")
    env = f'[env]\nvenv = "{venv(desk.user / "env")}"\n'
    path = desk.profile("old", "echo started", env + '[needs.python]\nrich = ">=9999"\n')
    done = await desk.call("run", path)
    assert done.code == 69 and done.out == b""
    assert rich in done.err and ">=9999" in done.err
    assert desk.runs("old") == []


@pytest.mark.nvml
async def test_driver_and_memory_are_read_from_the_hosts_samples(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, [*own_cards(1), "driver 550.54.15"])
    desk = Desk(
        tmp_path, LD_LIBRARY_PATH=str(driver.library), NVML_DOUBLE=str(driver.scenario.path)
    )
    desk.this_machine()
    needs = '[gpus]\ncount = 1\n[needs]\ndriver = "{driver}"\nvram = "{vram}"\n'
    fits = desk.profile("fits", "echo on", needs.format(driver=">=500", vram="1 GiB"))
    assert (await desk.call("run", fits)).out == b"on\n"
    for name, driver_needed, vram in (("new", ">=9999", "1 GiB"), ("big", ">=500", "999 GiB")):
        path = desk.profile(name, "echo on", needs.format(driver=driver_needed, vram=vram))
        done = await desk.call("run", path)
        assert done.code == 69 and done.out == b"", done.err
    assert await desk.clear() == []
    drop_locks(tmp_path)


def test_a_check_of_a_profile_warns_of_a_pipe_that_hides_the_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tee.toml"
    path.write_text('kind = "command"\n[command]\nscript = "python train.py | tee log"\n')
    assert main(["profile", "check", str(path)]) == 0
    assert "hides the exit code" in capsys.readouterr().err


@pytest.mark.nvml
async def test_a_dry_run_says_who_holds_the_cards(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, own_cards(2))
    driver.scenario.say("gpu 0 mem_used 40000", "gpu 0 proc 1 39000 C")
    desk = Desk(
        tmp_path, LD_LIBRARY_PATH=str(driver.library), NVML_DOUBLE=str(driver.scenario.path)
    )
    desk.this_machine()
    path = desk.profile("one", "echo on", "[gpus]\ncount = 1\n")
    plain = await desk.call("run", path, "--dry-run")
    (plan,) = (await desk.call("run", path, "--dry-run", "--json")).events
    holders = {card["index"]: card["holder"] for card in plan["candidates"]}
    assert holders[0] and holders[1] is None
    assert f"here:0 {holders[0]}" in plain.out.decode() and plan["gpus"] == [1]
    assert desk.runs("one") == []
