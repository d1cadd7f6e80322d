"""Old runs give their room back; living ones, young ones and those of other hosts never do."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cockpit.domain.models import RunId
from tests.remote.probing import REMOTE
from tests.remote.supervised import Runs, grow_old, patched, shell, write_record

DAY_S = 86400.0


@pytest.fixture
def prune(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(REMOTE))
    yield __import__("supervisor_prune")


def cleared(prune: ModuleType, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a whole round in this process; what is left of the home's runs."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, runs.transport.env[name])
    store = __import__("supervisor_store").Store()
    for _step in prune.Pruner(store).look():
        pass
    return sorted(path.name for path in runs.home.glob("**/v1/*/*"))


async def ended(runs: Runs, run: str, days: float) -> Path:
    """A run that ended so many days ago."""
    await runs.agent.start(shell(run, "exit 3"))
    await runs.ended(run)
    folder = runs.folder(run)
    record = json.loads((folder / "exit").read_text())
    write_record(folder / "exit", {**record, "wall_s": time.time() - days * DAY_S})
    grow_old(folder / "hb", days * DAY_S)
    return folder


async def test_what_ended_a_month_ago_goes_and_the_rest_stays(
    runs: Runs, prune: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ended(runs, "old-1", 31)
    await ended(runs, "young-1", 29)
    await runs.agent.start(shell("alive-1", "echo $$ > $HOME/job; exec sleep 600"))
    await runs.pid_of("job")
    spec = runs.folder("alive-1") / "spec.json"
    spec.write_text(json.dumps({**json.loads(spec.read_text()), "claimed_s": 1.0}))
    assert cleared(prune, runs, monkeypatch) == ["alive-1", "young-1"]
    assert sorted(record.run for record in await runs.agent.list()) == ["alive-1", "young-1"]
    await runs.agent.stop(RunId("alive-1"))


async def test_beyond_the_budget_the_oldest_go_but_none_of_today(
    runs: Runs, prune: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, days in enumerate((3, 2, 0.5)):
        folder = await ended(runs, f"a-{number}", days)
        (folder / "log").write_bytes(b"x" * (2 << 20))
    monkeypatch.setattr(prune, "KEEP_MIB", 3)
    order = [f"a-{number}" for number in (2, 1, 0)]
    for age, name in enumerate(order):
        os.utime(runs.folder(name), (time.time() - age, time.time() - age))
    assert cleared(prune, runs, monkeypatch) == ["a-2"]
    monkeypatch.setattr(prune, "KEEP_MIB", 0)
    assert cleared(prune, runs, monkeypatch) == ["a-2"]


async def test_a_log_with_a_hole_counts_by_its_blocks(runs: Runs, prune: ModuleType) -> None:
    folder = await ended(runs, "a-1", 3)
    with (folder / "log").open("wb") as log:
        log.truncate(1 << 33)
    assert prune.size_mib(str(folder)) < 1.0


async def test_runs_of_another_host_in_a_shared_home_are_not_touched(
    runs: Runs, prune: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = await ended(runs, "old-1", 400)
    other = folder.parent.parent / "elsewhere-1"
    other.mkdir(mode=0o700)
    shutil.move(folder, other / "old-1")
    assert cleared(prune, runs, monkeypatch) == ["old-1"]


async def test_a_run_whose_lock_somebody_holds_stays(
    runs: Runs, prune: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt of it is about to begin."""
    import fcntl

    folder = await ended(runs, "old-1", 400)
    with (folder / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cleared(prune, runs, monkeypatch) == ["old-1"]
    assert cleared(prune, runs, monkeypatch) == []


async def test_an_agent_clears_up_by_itself_after_a_while(runs: Runs, tmp_path: Path) -> None:
    """With a first round at once instead of after a minute."""
    await ended(runs, "old-1", 400)
    runs.transport.python = patched(
        tmp_path, "supervisor_prune", "FIRST_AFTER_S = 60.0", "FIRST_AFTER_S = 0.0"
    )
    await runs.new_agent()
    for _asked in range(20):
        records = await runs.agent.list()
    assert records == [] and not list(runs.home.glob("**/v1/*/*old-1"))


async def test_a_clock_that_was_set_meanwhile_takes_no_run_away(
    runs: Runs, prune: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host was in 1970 when it ended, a moment ago."""
    folder = await ended(runs, "young-1", 0)
    record = json.loads((folder / "exit").read_text())
    write_record(folder / "exit", {**record, "wall_s": 4000.0})
    assert cleared(prune, runs, monkeypatch) == ["young-1"]
    supervisor = json.loads((folder / "sup.json").read_text())
    write_record(folder / "sup.json", {**supervisor, "boot_id": "the one before"})
    assert cleared(prune, runs, monkeypatch) == ["young-1"]


async def test_a_folder_that_is_not_as_ours_are_keeps_no_other(
    runs: Runs, prune: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await ended(runs, "old-1", 400)
    os.utime(old, (1.0, 1.0))
    (await ended(runs, "open-1", 400)).chmod(0o755)
    assert cleared(prune, runs, monkeypatch) == ["open-1"]
