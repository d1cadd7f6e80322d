"""The probe on the NVML double: what real drivers do to a monitor, and what a person should see of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cockpit.domain.models import HostSample
from tests.nvml.double import Driver, healthy, make_driver
from tests.remote.probing import RunningProbe, card, old_pythons, probing

pytestmark = pytest.mark.nvml
NOBODY = 4_000_000
"""A pid that no process of this namespace has."""


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return make_driver(tmp_path, healthy())


def one(tmp_path: Path, *lines: str) -> Driver:
    """A driver of one healthy card, with these statements after it."""
    return make_driver(tmp_path, [*healthy(1), *lines])


def first_of(driver: Driver) -> HostSample:
    with probing(driver) as probe:
        return probe.first()


@contextmanager
def sleeping(argv0: bytes = b"job", **env: str) -> Iterator[int]:
    """A process that could hold a card."""
    process = subprocess.Popen([argv0, b"60"], executable="/bin/sleep", env={**os.environ, **env})
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("python", old_pythons())
def test_eight_cards_on_every_python(driver: Driver, python: str) -> None:
    with probing(driver, python=python) as probe:
        first = probe.first()
        later = probe.until(lambda sample: sample.cpu_pct is not None)
    assert probe.hello is not None
    facts = first.facts
    assert (facts.driver, facts.cuda, facts.source) == ("550.54.14", "12.4", "nvml")
    assert facts.hostname == os.uname().nodename and facts.uid == os.getuid()
    assert facts.python == probe.hello.facts.python and facts.incarnation.count(":") == 1
    assert (first.source, first.gpu_error_code, first.gpu_error) == ("nvml", None, None)
    assert [gpu.index for gpu in first.gpus] == list(range(8))
    gpu = card(first, 3)
    assert gpu.uuid == "GPU-c0ffee03-d0b1-4e00-8000-000000000003"
    assert (gpu.name, gpu.bus_id) == ("NVIDIA H100 80GB HBM3", "00000000:1E:00.0")
    assert (gpu.util_pct, gpu.mem_util_pct, gpu.temp_c, gpu.power_w) == (97, 41, 64, 655.5)
    assert (gpu.mem_used_mib, gpu.mem_total_mib, gpu.mem_reserved_mib) == (40_000, 81_559, 500)
    assert (gpu.power_limit_w, gpu.sm_clock_mhz, gpu.sm_clock_max_mhz) == (700.0, 1980, 1980)
    assert (gpu.mem_clock_mhz, gpu.throttle, gpu.persistence, gpu.mig) == (
        2619,
        ("power_cap",),
        True,
        False,
    )
    assert (gpu.ecc_corrected, gpu.ecc_uncorrected, gpu.remapped_rows, gpu.retired_pages) == (
        0,
        0,
        0,
        0,
    )
    assert (gpu.pcie_gen, gpu.pcie_width, gpu.remap_pending, gpu.unified) == (5, 16, False, False)
    assert (gpu.pcie_gen_max, gpu.pcie_width_max, gpu.remap_failed, gpu.nvlinks_up) == (
        5,
        16,
        False,
        None,
    )
    (process,) = gpu.processes
    assert (process.pid, process.mem_used_mib, process.visible) == (os.getpid(), 39_000, True)
    assert process.name and process.command and process.started_ticks
    assert later.mem_total_mib and later.mem_used_mib and later.load1 is not None
    assert any(disk.mount == "/" and disk.total_mib for disk in first.disks)


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        (18, "driver_mismatch", "Failed to initialize NVML: Driver/library version mismatch"),
        (999, "nvml_lost", "Failed to initialize NVML: Unknown Error"),
        (9, "no_driver", "Failed to initialize NVML: Driver Not Loaded"),
    ],
)
def test_a_driver_that_cannot_be_opened_leaves_the_host_alive(
    tmp_path: Path, code: int, name: str, words: str
) -> None:
    driver = one(tmp_path, f"init {code}")
    with probing(driver) as probe:
        first = probe.first()
        assert (first.gpu_error_code, first.gpu_error, first.source) == (name, words, "proc")
        assert first.gpus == () and first.mem_total_mib
        assert probe.until(lambda sample: sample.cpu_pct is not None).gpu_error_code == name
        driver.scenario.write(healthy(2))
        back = probe.until(lambda sample: len(sample.gpus) == 2)
    assert (back.gpu_error_code, back.source, card(back, 1).util_pct) == (None, "nvml", 97)


def test_no_library_and_no_device(tmp_path: Path) -> None:
    driver = one(tmp_path)
    bare = Driver(tmp_path, driver.scenario, driver.bin)
    first = first_of(bare)
    assert (first.gpu_error_code, first.source) == ("no_driver", "proc")
    assert "libnvidia-ml.so.1" in (first.gpu_error or "")
    first = first_of(make_driver(tmp_path, ["gpus 0"]))
    assert (first.gpu_error_code, first.gpu_error) == ("no_gpu", "No devices were found")


def test_a_container_that_loses_its_cards_says_so_and_goes_on(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, healthy(2))
    with probing(driver) as probe:
        assert card(probe.first()).util_pct == 97
        driver.scenario.write([*healthy(2), "gpu * any !999", "init 999"])
        gone = probe.until(lambda sample: sample.gpu_error_code is not None)
        assert (gone.gpu_error_code, gone.gpus) == ("nvml_lost", ())
        assert probe.next().mem_used_mib is not None
        driver.scenario.write(healthy(2))
        assert card(probe.until(lambda sample: len(sample.gpus) == 2), 1).util_pct == 97


def test_a_lost_card_says_so_within_two_seconds_and_seven_go_on(driver: Driver) -> None:
    with probing(driver) as probe:
        assert card(probe.first(), 3).error is None
        lost_at = time.monotonic()
        driver.scenario.say("gpu 3 lost")
        sample = probe.until(lambda sample: card(sample, 3).error is not None)
        assert time.monotonic() - lost_at < 2.0
        gpu = card(sample, 3)
        assert (gpu.error, gpu.error_code) == ("GPU is lost", "gpu_lost")
        assert gpu.uuid and gpu.name == "NVIDIA H100 80GB HBM3"
        assert (gpu.util_pct, gpu.mem_used_mib, gpu.mem_total_mib, gpu.processes) == (
            None,
            None,
            None,
            (),
        )
        others = [other for other in sample.gpus if other.index != 3]
        assert [other.util_pct for other in others] == [97] * 7
        driver.scenario.write(healthy())
        back = card(probe.until(lambda sample: card(sample, 3).error is None), 3)
    assert (back.util_pct, back.mem_total_mib, back.temp_c, back.error_code) == (
        97,
        81_559,
        64,
        None,
    )
    assert back.processes


def test_a_card_without_a_handle_does_not_hide_the_others(driver: Driver) -> None:
    driver.scenario.say("gpu 0 handle !999")
    first = first_of(driver)
    assert card(first).error == "Unable to determine the device handle for GPU 0: Unknown Error"
    assert card(first).error_code == "unknown"
    assert [gpu.util_pct for gpu in first.gpus] == [None] + [97] * 7


def test_a_hung_driver_stops_neither_the_host_nor_a_second_look(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, healthy(2))
    with probing(driver) as probe:
        assert card(probe.first()).util_pct == 97
        driver.scenario.say("gpu 1 hang util")
        before = len(probe.samples)
        hung = probe.until(lambda sample: sample.gpu_error_code == "driver_hung")
        assert len(probe.samples) - before > 10, "the host's numbers stopped"
        assert hung.gpu_error is not None and hung.gpu_error.startswith("driver not answering for ")
        assert {gpu.error_code for gpu in hung.gpus} == {"driver_hung"}
        assert {gpu.util_pct for gpu in hung.gpus} == {None}
        assert hung.mem_used_mib is not None and card(hung).name
        with probing(driver) as second:
            other = second.first()
            assert other.gpu_error_code == "driver_hung" and "stuck in it" in (
                other.gpu_error or ""
            )
            assert second.until(lambda sample: sample.cpu_pct is not None).gpus == ()
            driver.scenario.write(healthy(2))
            os.kill(_python_of(probe), signal.SIGKILL)
            back = second.until(lambda sample: bool(sample.gpus), 20.0)
    assert (card(back).util_pct, back.gpu_error_code) == (97, None)


def test_a_slow_driver_is_not_a_dead_one(tmp_path: Path) -> None:
    driver = one(tmp_path, "gpu 0 sleep util 400")
    with probing(driver) as probe:
        probe.until(lambda sample: bool(sample.gpus))
        slow = probe.next(12)
    assert (slow.gpu_error_code, card(slow).util_pct) == (None, 97)
    assert all(sample.mem_used_mib is not None for sample in probe.samples)


def test_a_driver_that_opens_slowly_is_said_to_start(tmp_path: Path) -> None:
    driver = one(tmp_path, "init sleep 2500")
    with probing(driver) as probe:
        first = probe.first()
        assert first.gpu_error_code == "driver_starting" and first.mem_total_mib
        assert probe.until(lambda sample: bool(sample.gpus)).gpu_error_code is None


@pytest.mark.parametrize("total", ["n/a", None])
def test_memory_shared_with_the_host(tmp_path: Path, total: str | None) -> None:
    host_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    driver = one(
        tmp_path, "gpu 0 name NVIDIA GB10", f"gpu 0 mem_total {total or host_mib}",
        "gpu 0 mem_used 34000", f"gpu 0 proc {NOBODY} 1000 C",
    )  # fmt: skip
    gpu = card(first_of(driver))
    assert gpu.unified and gpu.mem_total_mib is not None
    assert abs(gpu.mem_total_mib - host_mib) < 0.05 * host_mib
    assert (gpu.mem_used_mib, gpu.mem_reserved_mib) == (40_000, None), "the processes' sum"
    assert (gpu.pcie_gen, gpu.pcie_width, gpu.fan_pct, gpu.util_pct) == (None, None, None, 97)


def test_a_card_as_large_as_the_host_is_not_unified(tmp_path: Path) -> None:
    gpu = card(first_of(one(tmp_path, "gpu 0 mem_total 9000000")))
    assert (gpu.unified, gpu.mem_used_mib, gpu.pcie_gen) == (False, 40_000, 5)


@pytest.mark.parametrize("lists", ["v3", "v2 alone", "r535", "r535 without v2"])
def test_process_lists_of_every_driver(tmp_path: Path, lists: str) -> None:
    kinds = ("Compute", "Graphics")
    missing = [f"nvmlDeviceGet{kind}RunningProcesses_v3" for kind in kinds] * (lists == "v2 alone")
    driver = make_driver(tmp_path, ["gpus 1"], missing)
    lines = ["gpus 1", *(f"gpu 0 proc {NOBODY + place} {1000 + place} C" for place in range(4))]
    if lists.startswith("r535"):
        lines.append("layout r535")
    if lists == "r535 without v2":
        lines += [f"missing nvmlDeviceGet{kind}RunningProcesses_v2" for kind in kinds]
    driver.scenario.write(lines)
    wanted = [(NOBODY + place, 1000 + place) for place in range(4)]
    with probing(driver) as probe:
        probe.tell("focus 1")
        sample = probe.until(lambda sample: len(card(sample).processes) == 4)
    assert [(one.pid, one.mem_used_mib) for one in card(sample).processes] == wanted


def test_a_pid_of_another_namespace_says_so(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, ["gpus 1", f"gpu 0 proc {NOBODY} 5000 C"])
    (process,) = card(first_of(driver)).processes
    assert (process.pid, process.visible, process.mem_used_mib) == (NOBODY, False, 5000)
    assert (process.name, process.user, process.started_ticks) == (None, None, None)


def test_one_process_on_two_cards_in_both_lists(tmp_path: Path) -> None:
    driver = make_driver(
        tmp_path,
        [
            "gpus 2", f"gpu * proc {NOBODY} 3000 C", f"gpu 0 proc {NOBODY} 4000 G",
            f"gpu 1 proc {NOBODY} 2000 G", f"gpu 1 proc {NOBODY + 1} 100 G",
        ],
    )  # fmt: skip
    first = first_of(driver)
    assert [(one.pid, one.mem_used_mib) for one in card(first, 0).processes] == [(NOBODY, 4000)]
    assert [(one.pid, one.mem_used_mib) for one in card(first, 1).processes] == [
        (NOBODY, 3000),
        (NOBODY + 1, 100),
    ]


def test_a_run_of_ours_and_hostile_names_are_read_from_proc(tmp_path: Path) -> None:
    with sleeping(b"evil\x1b]0;title\x07\xff", COCKPIT_RUN="qwen7b-lora-3") as pid:
        driver = make_driver(tmp_path, ["gpus 1", f"gpu 0 proc {pid} 100 C"])
        with probing(driver) as probe:
            first = card(probe.first()).processes[0]
            probe.tell("focus 1")
            later = probe.until(lambda sample: card(sample).processes[0].cpu_pct is not None)
    assert (first.run, first.name, first.visible) == ("qwen7b-lora-3", "sleep", True)
    assert first.command is not None and first.command.isprintable()
    assert first.command.endswith(" 60") and "\x1b" not in first.command
    assert card(later).processes[0].cpu_pct == 0.0


def test_impossible_numbers_are_missing(tmp_path: Path) -> None:
    driver = one(
        tmp_path, "gpu 0 util 4000", "gpu 0 mem_util 4294967295", "gpu 0 temp 2147483632",
        "gpu 0 mem_used 18446744073709551615B", "gpu 0 ecc_corrected 18446744073709551615",
        "gpu 0 power 4294967", "gpu 0 fan 2147483646", f"gpu 0 proc {NOBODY} n/a C",
        f"gpu 0 proc {NOBODY + 1} 17179869184 C", f"gpu 0 proc {NOBODY + 2} 100000 C", "gpu 0 proc 0 4000 C",
    )  # fmt: skip
    gpu = card(first_of(driver))
    assert (gpu.util_pct, gpu.mem_util_pct) == (100, None)
    assert (gpu.temp_c, gpu.mem_used_mib, gpu.ecc_corrected, gpu.power_w, gpu.fan_pct) == (
        None,
    ) * 5
    assert gpu.mem_total_mib == 81_559 and gpu.error is None
    sizes = {process.pid: process.mem_used_mib for process in gpu.processes}
    assert 0 not in sizes and sizes[NOBODY] is None and sizes[NOBODY + 1] is None
    assert sizes[NOBODY + 2] == 100_000, "more than the card has is odd, and is told"


def test_a_narrow_slot_a_failed_row_and_links_that_are_down(tmp_path: Path) -> None:
    faults = [
        "gpu 0 pcie_width 4",
        "gpu 0 pcie_gen 3",
        "gpu 0 remap_failed 1",
        "gpu 0 links_down 2",
    ]
    driver = make_driver(tmp_path, [*healthy(2), *faults, "link 0 1 6"])
    sample = first_of(driver)
    bad, good = card(sample, 0), card(sample, 1)
    assert (bad.pcie_width, bad.pcie_width_max, bad.pcie_gen, bad.pcie_gen_max) == (4, 16, 3, 5)
    assert (bad.remap_failed, bad.nvlinks_up, good.remap_failed, good.nvlinks_up) == (
        True,
        4,
        False,
        6,
    )


def test_what_a_card_does_not_support_is_missing_and_no_error(tmp_path: Path) -> None:
    fields = ("util", "power", "power_limit", "fan", "throttle", "ecc_corrected", "ecc_uncorrected",
              "remap_corrected", "retired", "pcie_gen", "persistence", "mig", "sm_clock", "proc")  # fmt: skip
    driver = one(tmp_path, *(f"gpu 0 {field} n/a" for field in fields))
    gpu = card(first_of(driver))
    assert (gpu.error, gpu.mem_used_mib, gpu.temp_c) == (None, 40_000, 64)
    assert {gpu.util_pct, gpu.power_w, gpu.power_limit_w, gpu.fan_pct, gpu.throttle} == {None}
    assert {gpu.ecc_corrected, gpu.remapped_rows, gpu.retired_pages, gpu.persistence, gpu.mig} == {
        None
    }
    assert gpu.processes == ()


def test_an_old_driver_without_newer_functions(tmp_path: Path) -> None:
    missing = [
        "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetMigMode",
        "nvmlEventSetWait_v2", "nvmlDeviceGetRetiredPages",
    ]  # fmt: skip
    gpu = card(first_of(make_driver(tmp_path, healthy(1), missing)))
    assert (gpu.util_pct, gpu.mem_used_mib, gpu.mem_reserved_mib) == (97, 40_500, None)
    assert (gpu.remapped_rows, gpu.mig, gpu.retired_pages, gpu.error) == (None, None, None, None)


def test_a_sliced_card_has_memory_per_slice_and_no_utilisation(tmp_path: Path) -> None:
    driver = make_driver(
        tmp_path,
        [
            *healthy(2),
            "gpu 0 mig 1",
            "gpu 0 instance 1g.10gb 9856 1200",
            "gpu 0 instance 3g.40gb 40320 8",
        ],
    )
    first = first_of(driver)
    sliced, whole = card(first, 0), card(first, 1)
    assert (sliced.mig, sliced.util_pct, sliced.error, sliced.mem_used_mib) == (
        True,
        None,
        None,
        40_000,
    )
    assert [
        (part.index, part.profile, part.mem_used_mib, part.mem_total_mib)
        for part in sliced.mig_instances
    ] == [
        (0, "1g.10gb", 1200, 9856),
        (1, "3g.40gb", 8, 40_320),
    ]
    assert all(part.uuid.startswith("MIG-") for part in sliced.mig_instances)
    assert (whole.mig, whole.util_pct, whole.mig_instances) == (False, 97, ())


def test_an_xid_is_told_once_with_its_card(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, healthy(2))
    with probing(driver) as probe:
        probe.first()
        driver.scenario.say("gpu 1 xid 79 0")
        (event,) = probe.until(lambda sample: bool(sample.xids)).xids
        assert (event.xid, event.gpu_index, event.bus_id) == (79, 1, "00000000:1C:00.0")
        driver.scenario.say("gpu 0 temp 70")
        probe.until(lambda sample: card(sample).temp_c == 70)
    assert sum(len(sample.xids) for sample in probe.samples) == 1


def test_how_the_cards_are_joined(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, [*healthy(3), "link 0 1 12", "topo 0 2 40", "topo 1 2 50"])
    with probing(driver) as probe:
        facts = probe.until(lambda sample: bool(sample.facts.topology)).facts
    assert facts.topology == ("0-1 nvlink x12", "0-2 node", "1-2 system")


def test_sixteen_cards(tmp_path: Path) -> None:
    first = first_of(make_driver(tmp_path, healthy(16)))
    assert [gpu.util_pct for gpu in first.gpus] == [97] * 16


def test_traffic_on_the_bus_is_counted_on_focus_alone(tmp_path: Path) -> None:
    with probing(one(tmp_path, "gpu 0 pcie_rx 2048", "gpu 0 pcie_tx 512")) as probe:
        assert card(probe.next(3)).pcie_rx_mib_s is None
        probe.tell("focus 1")
        gpu = card(probe.until(lambda sample: card(sample).pcie_rx_mib_s is not None))
        assert (gpu.pcie_rx_mib_s, gpu.pcie_tx_mib_s) == (2.0, 0.5)
        probe.tell("focus 0")
        assert probe.until(lambda sample: card(sample).pcie_rx_mib_s is None)


def test_persistence_off_is_told(tmp_path: Path) -> None:
    assert card(first_of(one(tmp_path, "gpu 0 persistence 0"))).persistence is False


def test_a_process_list_is_held_until_it_is_read_again(tmp_path: Path) -> None:
    with probing(one(tmp_path)) as probe:
        probe.first()
        ages = [card(probe.next()).processes_age_s for _ in range(4)]
    known = [age for age in ages if age is not None]
    assert len(known) == 4 and known == sorted(known) and known[-1] > 0.4
    assert all(card(sample).processes for sample in probe.samples)


def test_lines_on_stdin_steer_it(tmp_path: Path) -> None:
    with probing(one(tmp_path), interval="60") as probe:
        probe.next(2)
        probe.tell("nonsense\ninterval nan\ninterval x\nnow")
        assert probe.next().interval_s == 60.0
        probe.tell("interval 0.01")
        assert probe.next(2).interval_s == 0.2, "no faster than five a second"
        probe.tell("quit")
        assert probe.to_the_end() == 0


@pytest.mark.parametrize("end", ["stdin", "stdout"])
def test_it_ends_with_either_stream(tmp_path: Path, end: str) -> None:
    with probing(one(tmp_path), interval="0.2" if end == "stdout" else "60") as probe:
        probe.first()
        process = probe.process
        assert process.stdin is not None and process.stdout is not None
        (process.stdin if end == "stdin" else process.stdout).close()
        assert process.wait(10) is not None


def test_a_killed_shell_leaves_no_probe(tmp_path: Path) -> None:
    with probing(one(tmp_path)) as probe:
        probe.first()
        children = Path(f"/proc/{probe.pid}/task/{probe.pid}/children").read_text().split()
        probe.process.send_signal(signal.SIGKILL)
        probe.process.wait()
        assert probe.process.stdin is not None
        probe.process.stdin.close()
        gone = [not Path(f"/proc/{child}").exists() or _is_zombie(child) for child in children]
        wait_for(
            lambda: all(
                not Path(f"/proc/{child}").exists() or _is_zombie(child) for child in children
            )
        )
    assert children and len(gone) == len(children)


def _is_zombie(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_memory_and_descriptors_stay_flat(driver: Driver) -> None:
    with probing(driver, interval="0", python=sys.executable) as probe:
        pid = _python_of(probe)
        probe.next(600)
        before = _held(pid)
        probe.next(4000)
        after = _held(pid)
    assert after[1] <= before[1] + 1, "descriptors"
    assert after[0] <= before[0] + 600, "KiB of memory"


def _python_of(probe: RunningProbe) -> int:
    probe.first()
    (child,) = Path(f"/proc/{probe.pid}/task/{probe.pid}/children").read_text().split()
    return int(child)


def _held(pid: int) -> tuple[int, int]:
    """Resident KiB and open files."""
    status = Path(f"/proc/{pid}/status").read_text()
    (rss,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(rss), len(os.listdir(f"/proc/{pid}/fd"))
