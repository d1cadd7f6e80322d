"""The probe's readers on odd /proc content, mounts, platforms and kernel lines; run as the host runs them."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.remote.probing import REMOTE


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The probe's modules by name, as its own imports find them."""
    monkeypatch.syspath_prepend(str(REMOTE))
    names = ["probe_processes", "probe_host", "probe_disks", "probe_facts", "probe_xids", "probe_smi_lists",
             "probe_driver", "probe_pressure", "probe_trees", "probe"]  # fmt: skip
    before = set(sys.modules)
    yield {name: __import__(name) for name in names}
    for name in set(sys.modules) - before:
        if name.startswith("probe"):
            del sys.modules[name]


STRANGE = [b"", b"\n", b"\0" * 64, b"cpu", b"cpu a b c d e", b"MemTotal: lots kB\n", b"\xff\xfe\xfd", b"9" * 5000,
           b"Inter-|\n face |\neth0: 1\n", b"eth0: x x x x x x x x x\n" * 4]  # fmt: skip


@pytest.mark.parametrize("content", STRANGE)
def test_strange_proc_files_are_missing_numbers(
    parts: dict[str, ModuleType], tmp_path: Path, content: bytes
) -> None:
    strange = tmp_path / "file"
    strange.write_bytes(content)
    host = parts["probe_host"]
    reader = host.HostReader()
    reader.stat = reader.meminfo = reader.loadavg = reader.net = host.Opened(str(strange))
    for _ in range(2):
        numbers = reader.read()
    assert numbers["cpu_pct"] is None and numbers["mem_total_mib"] is None
    assert "load1" in numbers


def test_files_that_are_absent_are_missing_numbers(parts: dict[str, ModuleType]) -> None:
    host = parts["probe_host"]
    reader = host.HostReader()
    reader.stat = reader.meminfo = reader.loadavg = reader.net = host.Opened("/nonexistent")
    numbers = reader.read()
    assert (numbers["cpu_pct"], numbers["mem_used_mib"], numbers["load1"]) == (None, None, None)


def test_cpu_counts_waiting_as_idle_and_tells_what_was_stolen(
    parts: dict[str, ModuleType], tmp_path: Path
) -> None:
    stat = tmp_path / "stat"
    reader = parts["probe_host"].HostReader()
    reader.stat = parts["probe_host"].Opened(str(stat))
    stat.write_text("cpu  100 0 100 1000 100 0 0 50 0 0\ncpu0 1 1\n")
    reader.cpu_now()
    stat.write_text("cpu  200 0 100 1100 200 0 0 150 0 0\ncpu0 1 1\n")
    assert reader.cpu_now() == {"cpu_pct": 50.0, "steal_pct": 25.0, "iowait_pct": 25.0}
    assert reader.cpu_now() == {}, "no tick went by"


def cgroup_of(
    parts: dict[str, ModuleType], folder: Path, version: int, files: dict[str, str]
) -> dict[str, int | None]:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    host = parts["probe_host"]
    group = host.Cgroup()
    group.folder, group.version = str(folder), version
    two = version == 2
    group.current = host.Opened(
        f"{folder}/" + ("memory.current" if two else "memory.usage_in_bytes")
    )
    group.events = host.Opened(f"{folder}/" + ("memory.events" if two else "memory.oom_control"))
    group.read(100.0)
    found: dict[str, int | None] = group.read(200.0)
    return found


GIB = 1 << 30


def test_limits_of_both_kinds_of_cgroup(parts: dict[str, ModuleType], tmp_path: Path) -> None:
    two = cgroup_of(parts, tmp_path / "two", 2, {
        "memory.current": f"{6 * GIB}\n", "memory.max": f"{8 * GIB}\n",
        "memory.stat": f"anon 1\ninactive_file {GIB}\nactive_file 2\n",
        "memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 5\noom_group_kill 0\n",
    })  # fmt: skip
    one = cgroup_of(parts, tmp_path / "one", 1, {
        "memory.usage_in_bytes": f"{6 * GIB}\n", "memory.limit_in_bytes": f"{8 * GIB}\n",
        "memory.stat": f"cache 1\ntotal_inactive_file {GIB}\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
    })  # fmt: skip
    assert one == two == {"cgroup_used_mib": 5120, "cgroup_limit_mib": 8192, "cgroup_oom_kills": 5}


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n", "", "rubbish"])
def test_a_cgroup_without_a_limit_says_none(
    parts: dict[str, ModuleType], tmp_path: Path, limit: str
) -> None:
    found = cgroup_of(parts, tmp_path, 2, {"memory.max": limit, "memory.current": "5\n"})
    assert (found["cgroup_used_mib"], found["cgroup_limit_mib"]) == (None, None)


@pytest.mark.parametrize(("alone", "kills"), [(True, 7), (False, None)])
def test_kills_of_the_whole_machine_are_not_a_container_s(
    parts: dict[str, ModuleType], tmp_path: Path, alone: bool, kills: int | None
) -> None:
    """On a rented machine they are the neighbours' as well."""
    (tmp_path / "vmstat").write_text("nr_free_pages 1\noom_kill 7\n")
    group = parts["probe_host"].Cgroup()
    group.folder = group.events = group.limit = None
    group.vmstat = parts["probe_host"].Opened(str(tmp_path / "vmstat"))
    group.alone = alone
    assert group.read(100.0) == {"cgroup_oom_kills": kills}


MOUNTS = b"""\
overlay / overlay rw 0 0
proc /proc proc rw 0 0
tmpfs /dev/shm tmpfs rw 0 0
/dev/sda1 /etc/hosts ext4 rw 0 0
/dev/sda1 /root/autodl-tmp ext4 rw 0 0
/dev/sdb1 /my\\040data xfs rw 0 0
/dev/sda2 /boot/efi vfat rw 0 0
nas:/vol /root/autodl-fs nfs4 rw 0 0
bucket /workspace fuse.juicefs rw 0 0
lxcfs /proc/stat fuse.lxcfs rw 0 0
overlay /var/lib/docker/overlay2/x/merged overlay rw 0 0
/dev/loop1 /snap/core/1 squashfs ro 0 0
broken
"""


def test_mounts_worth_asking_the_shared_ones_last(parts: dict[str, ModuleType]) -> None:
    found = [mount for _, mount, _ in parts["probe_disks"].mounts(MOUNTS)]
    assert found == [
        "/",
        "/my data",
        "/etc/hosts",
        "/root/autodl-tmp",
        "/workspace",
        "/root/autodl-fs",
    ]
    assert parts["probe_disks"].mounts(b"\0\xff \xfe\n" * 99) == []


def test_a_mount_that_hangs_is_listed_and_holds_up_nothing(parts: dict[str, ModuleType]) -> None:
    disks = parts["probe_disks"]
    watch = disks.DiskWatch()
    dead, done = disks.Round(set()), disks.Round({"/nas"})
    dead.asking, dead.began = "/nas", 0.0
    watch.round = dead
    watch.poll(disks.LIMIT_S + 1.0)
    assert watch.hung == {"/nas": dead} and watch.round is not dead
    done.disks = [{"mount": "/nas"}]
    watch.round = done
    assert watch.poll(disks.LIMIT_S + 1.1) == [{"mount": "/nas"}]
    dead.disks = []
    watch.poll(disks.LIMIT_S + 1.2)
    assert watch.hung == {}, "it came back"


def test_this_machines_disks(parts: dict[str, ModuleType]) -> None:
    disks = parts["probe_disks"]
    watch = disks.DiskWatch()
    watch.poll(time.monotonic())
    disks.wait_first(watch, 10.0)
    found = watch.poll(time.monotonic())
    root = next(disk for disk in found if disk["mount"] == "/")
    size = os.statvfs("/")
    assert root["total_mib"] == size.f_blocks * size.f_frsize >> 20 and "device" not in root


def files(root: Path, **contents: bytes) -> str:
    for name, content in contents.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(root)


@pytest.mark.parametrize(
    ("environ", "paths", "vendor", "name"),
    [
        (b"A=1\0RUNPOD_POD_ID=x\0", [], b"", "runpod"),
        (b"VAST_CONTAINERLABEL=C.123\0", [], b"", "vast"),
        (b"", ["root/autodl-tmp"], b"", "autodl"),
        (b"", ["hy-tmp"], b"", "gpushare"),
        (b"", ["home/featurize"], b"", "featurize"),
        (b"", ["lambda/nfs"], b"", "lambda"),
        (b"", [], b"Amazon EC2\n", "aws"),
        (b"NOT_VAST_CONTAINERLABEL=1\0KUBERNETES_SERVICE_HOST=1\0", [], b"", "kubernetes"),
        (b"", [], b"Dell Inc.\n", None),
    ],
)
def test_rental_platforms_by_what_they_leave(
    parts: dict[str, ModuleType],
    tmp_path: Path,
    environ: bytes,
    paths: list[str],
    vendor: bytes,
    name: str | None,
) -> None:
    for path in paths:
        (tmp_path / path).mkdir(parents=True)
    root = files(tmp_path, sys__class__dmi__id__sys_vendor=vendor)
    assert parts["probe_facts"].platform(environ, root) == name


def test_facts_that_name_the_machine(parts: dict[str, ModuleType], tmp_path: Path) -> None:
    root = files(
        tmp_path,
        proc__sys__kernel__random__boot_id=b"11111111-2222\n",
        proc__1__stat=b"1 (a) b) c) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0\n",
        proc__driver__nvidia__version=b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release\n",
    )
    facts = parts["probe_facts"]
    assert facts.incarnation(root) == "11111111-2222:777"
    assert facts.driver(root) == "550.54.14"
    assert (facts.incarnation(str(tmp_path / "none")), facts.driver(str(tmp_path / "none"))) == (
        ":",
        None,
    )
    assert facts.container(b"container=podman\0", str(tmp_path)) is True
    files(tmp_path, proc__1__comm=b"systemd\n")
    assert facts.container(b"", str(tmp_path)) is False
    assert facts.facts(parts["probe_processes"].Users())["hostname"] == socket.gethostname()


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (
            b"4,1234,5678901,-;NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen\n KEY=1",
            (79, "0000:65:00"),
        ),
        (b"4,1,2,-;NVRM: Xid (PCI:0000:65:00): 13, Graphics Exception", (13, "0000:65:00")),
        (b"4,1,2,-;usb 1-1: new device", None),
        (b"4,1,2,-;NVRM: Xid (PCI:zz", None),
        (b"4,1,2,-;NVRM: Xid (PCI:0000:65:00): many", None),
    ],
)
def test_kernel_lines_about_an_xid(
    parts: dict[str, ModuleType], record: bytes, found: tuple[int, str] | None
) -> None:
    event = parts["probe_xids"].xid_of(record)
    assert (None if event is None else (event["xid"], event["bus_id"])) == found


def test_an_event_of_two_sources_is_told_once(parts: dict[str, ModuleType]) -> None:
    xids = parts["probe_xids"]
    book, buses = xids.XidBook(), {xids.bus_key("00000000:65:00.0"): 3}

    def event(text: str, bus: str, index: int | None = None) -> dict[str, object]:
        return {"xid": 79, "bus_id": bus, "gpu_index": index, "text": text, "at_s": 1.0}

    (first,) = book.fresh([event("NVRM: Xid", "0000:65:00")], buses)
    assert first["gpu_index"] == 3
    assert book.fresh([event("NVML event", "00000000:65:00.0", 3)], buses) == []
    assert (
        len(book.fresh([event("NVRM: Xid", "0000:65:00"), event("NVRM: Xid", "0000:66:00")], buses))
        == 2
    )
    assert xids.bus_key("zz") is None and xids.bus_key(None) is None


def test_a_kernel_log_that_may_not_be_read_is_silent(
    parts: dict[str, ModuleType], tmp_path: Path
) -> None:
    assert parts["probe_xids"].KernelLog("/nonexistent").poll() == []
    log = tmp_path / "kmsg"
    os.mkfifo(log)
    assert parts["probe_xids"].KernelLog(str(log)).poll() == []


def test_smi_lists_skip_what_is_no_row(parts: dict[str, ModuleType]) -> None:
    lists = parts["probe_smi_lists"].parsed(
        b"GPU-1, 77, 300\nGPU-1, 78, [N/A]\n\xff\nNo running processes\nGPU-2, 0, 1\n"
    )
    assert [(one.pid, one.usedGpuMemory) for one in lists["GPU-1"]] == [(77, 300 << 20), (78, None)]
    assert list(lists) == ["GPU-1"]


def test_nvidia_smi_is_found_outside_the_path(
    parts: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    smi = parts["probe_smi_lists"]
    monkeypatch.setenv("PATH", "relative:/nonexistent")
    monkeypatch.setattr(smi, "PLACES", ("/nonexistent", str(tmp_path)))
    assert smi.find_smi() == str(tool)
    monkeypatch.setattr(smi, "PLACES", ())
    assert smi.find_smi() is None


def test_an_answer_that_comes_after_all_is_told_whole(parts: dict[str, ModuleType]) -> None:
    class Quiet(parts["probe_driver"].Driver):  # type: ignore[misc]
        def _run(self) -> None:
            """No thread: the test answers."""

    driver = Quiet(None, None, None)
    driver.ask(False)
    driver.asked_at -= 60.0
    assert driver.collect(0.0)["gpu_error_code"] == "driver_hung"
    driver.news = {"cards": [0], "gpus": [{"index": 0}], "gpu_error_code": None, "gpu_error": None}
    driver.go.acquire()
    driver.done.release()
    assert driver.collect(0.0) == driver.news and not driver.told_hung
    driver.ask(False)
    assert driver.collect(0.0) == {}, "a new silence begins quietly"


def test_the_encoder_writes_what_json_reads(parts: dict[str, ModuleType]) -> None:
    import json

    record = {"k": "x", "text": 'a"\\\n\u20ac\udcff', "list": [1, 2.5, None, True], "empty": {}}
    assert json.loads(parts["probe"].make_encoder()(record)) == record


def test_environ_of_a_run(parts: dict[str, ModuleType]) -> None:
    assert parts["probe_processes"].run_of(os.getpid()) == os.environ.get("COCKPIT_RUN")
    assert parts["probe_processes"].run_of(4_000_000) is None
    assert parts["probe_processes"].Users().name(0) == "root"
    assert parts["probe_processes"].Users().name(4_242_424) == "4242424"
