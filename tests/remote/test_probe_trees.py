"""What the probe adds for the watch of a run's progress: children of card processes, pressure, a CPU quota."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.nvml.double import make_driver
from tests.remote.probing import REMOTE, probing


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(REMOTE))
    before = set(sys.modules)
    yield {name: __import__(name) for name in ("probe_pressure", "probe_trees")}
    for name in set(sys.modules) - before:
        if name.startswith("probe"):
            del sys.modules[name]


def process(
    root: Path, pid: int, state: str, ticks: int, children: str | None = "", started: int = 7
) -> None:
    folder = root / "proc" / str(pid)
    (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
    fields = [state, *["0"] * 10, str(ticks), "0", *["0"] * 6, str(started), "0"]
    (folder / "stat").write_text(f"{pid} (a (b) c) {' '.join(fields)}\n")
    if children is not None:
        (folder / "task" / str(pid) / "children").write_text(children)


def held(*pids: int) -> dict[str, object]:
    return {
        "cards": [0],
        "gpus": [{"index": 0, "processes": [{"pid": pid, "run": "q-1"} for pid in pids]}],
    }


def test_children_of_a_card_s_process_are_summed_up(
    parts: dict[str, ModuleType], tmp_path: Path
) -> None:
    reader = parts["probe_trees"].TreeReader(str(tmp_path))
    hertz = parts["probe_trees"].HERTZ
    for ticks in (0, int(hertz * 5)):
        process(tmp_path, 10, "S", ticks, "11 12 20")
        process(tmp_path, 11, "R", ticks)
        process(tmp_path, 12, "S", 0, "13")
        process(tmp_path, 13, "D", 0)
        process(tmp_path, 20, "S", 0)
        reader.take(held(10, 20))
        told = reader.poll(100.0 if not ticks else 105.0)
    assert told == [
        {"pid": 10, "run": "q-1", "state": "S", "cpu_pct": 100.0, "workers": 3, "workers_blocked": 1,
         "workers_cpu_pct": 100.0, "workers_busy": 1},
        {"pid": 20, "run": "q-1", "state": "S", "cpu_pct": 0.0, "workers": 0, "workers_blocked": 0,
         "workers_cpu_pct": 0, "workers_busy": 0},
    ]  # fmt: skip


def test_a_pid_that_is_used_again_and_one_that_is_gone_have_no_share(
    parts: dict[str, ModuleType], tmp_path: Path
) -> None:
    reader = parts["probe_trees"].TreeReader(str(tmp_path))
    process(tmp_path, 10, "R", 500)
    reader.take(held(10, 99))
    reader.poll(100.0)
    process(tmp_path, 10, "R", 9000, started=8)
    told = reader.poll(105.0)
    assert [(one["state"], one["cpu_pct"]) for one in told] == [("R", None), (None, None)]


def test_trees_are_read_every_five_seconds_and_their_end_is_told_once(
    parts: dict[str, ModuleType], tmp_path: Path
) -> None:
    reader = parts["probe_trees"].TreeReader(str(tmp_path))
    assert reader.poll(0.0) is None, "nothing holds a card"
    process(tmp_path, 10, "R", 0, children=None)
    reader.take(held(10))
    assert reader.poll(1.0) == [{"pid": 10, "run": "q-1", "state": "R", "cpu_pct": None}]
    assert reader.poll(3.0) is not None, "a share needs a second look, soon"
    assert reader.poll(7.0) is None
    reader.take(held())
    assert reader.poll(8.0) == []
    assert reader.poll(20.0) is None


def test_what_is_looked_at_is_bounded(parts: dict[str, ModuleType], tmp_path: Path) -> None:
    module = parts["probe_trees"]
    many = " ".join(str(pid) for pid in range(1000, 3000))
    for pid in range(10, 16):
        process(tmp_path, pid, "S", 0, many)
    reader = module.TreeReader(str(tmp_path))
    reader.take(held(*range(10, 16)))
    told = reader.poll(0.0)
    assert all(one["workers"] == module.WORKERS_MAX for one in told)
    assert reader.looks <= 6 * (module.WORKERS_MAX + 1)


PSI = "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=3.25 avg60=0.00 avg300=0.00 total=1\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PSI, (12.5, 12.5, 3.25, 3.25)),
        ("some avg10=x\n", (None,) * 4),
        ("some avg10=900.0\nfull\n", (None,) * 4),
        ("", (None,) * 4),
        (None, (None,) * 4),
    ],
    ids=["both", "no number", "too much", "empty", "absent"],
)
def test_pressure_is_read_or_missing(
    parts: dict[str, ModuleType],
    tmp_path: Path,
    text: str | None,
    expected: tuple[float | None, ...],
) -> None:
    folder = tmp_path / "proc" / "pressure"
    folder.mkdir(parents=True)
    for kind in ("cpu", "io", "memory"):
        if text is not None:
            (folder / kind).write_text(text)
    told = parts["probe_pressure"].PressureReader(str(tmp_path)).read(0.0)
    assert tuple(told[name] for name in parts["probe_pressure"].NAMES) == expected
    assert (told["cpu_quota_cores"], told["cpu_throttled_pct"]) == (None, None)


@pytest.mark.parametrize("version", [1, 2])
def test_a_quota_tells_its_cores_and_how_often_it_cut_short(
    parts: dict[str, ModuleType], tmp_path: Path, version: int
) -> None:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    group = tmp_path / "sys" / "fs" / "cgroup"
    if version == 2:
        (tmp_path / "proc" / "self" / "cgroup").write_text("0::/outside/of/here\n")
        group.mkdir(parents=True)
        (group / "cpu.max").write_text("350000 100000\n")
    else:
        (tmp_path / "proc" / "self" / "cgroup").write_text("4:cpu,cpuacct:/docker/abc\n")
        group /= "cpu,cpuacct"
        group.mkdir(parents=True)
        (group / "cpu.cfs_quota_us").write_text("350000\n")
        (group / "cpu.cfs_period_us").write_text("100000\n")
    stat = group / "cpu.stat"
    stat.write_text("nr_periods 100\nnr_throttled 10\nthrottled_usec 5\n")
    reader = parts["probe_pressure"].PressureReader(str(tmp_path))
    assert reader.read(0.0)["cpu_quota_cores"] == 3.5
    stat.write_text("nr_periods 200\nnr_throttled 50\nthrottled_usec 5\n")
    assert "cpu_throttled_pct" not in reader.read(2.0)
    assert reader.read(5.0)["cpu_throttled_pct"] == 40.0
    assert reader.read(10.0)["cpu_throttled_pct"] == 0.0


def test_a_real_worker_that_computes_is_seen(tmp_path: Path) -> None:
    """A process on a card of the double with one child that spins and one that sleeps."""
    code = "import os, time\nif not os.fork():\n while True: pass\nif not os.fork():\n time.sleep(60)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as owner:
        try:
            driver = make_driver(tmp_path, ["gpus 1", f"gpu 0 proc {owner.pid} 1000"])
            with probing(driver) as probe:
                seen = probe.until(
                    lambda sample: any((tree.workers_cpu_pct or 0) > 10 for tree in sample.trees)
                )
        finally:
            os.killpg(owner.pid, signal.SIGKILL)
    [tree] = [tree for tree in seen.trees if tree.pid == owner.pid]
    assert (tree.workers, tree.state) == (2, "S")
    assert seen.iowait_pct is None or 0 <= seen.iowait_pct <= 100
