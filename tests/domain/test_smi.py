"""Hosts without Python: nvidia-smi's words and pieces of /proc become the same samples."""

from __future__ import annotations

import pytest

from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.domain.smi_rows import failure_of, parse_row
from cockpit.domain.wire import Hello, SampleDecoder

HELLO = """\
H begin {smi}
H interval 1
H hostname gpu-box
H kernel 5.15.0
H uid 0
H user root
H now 1000100
H uptime 100.00 380.00
H boot_id 11111111-2222-3333-4444-555555555555
H first 1 (ev)il) S 0 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 42 1 1
H os "Ubuntu 22.04.4 LTS"
H end"""
TICK = """\
U {up} 380.00
S cpu  {busy} 0 0 {idle} 0 0 0 {stolen} 0 0
L 1.50 1.0 0.5 1/100 99
M MemTotal:       8388608 kB
M MemAvailable:   6291456 kB
M SwapTotal:      2097152 kB
M SwapFree:       1048576 kB
N    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0
N  eth0: {bytes} 1 0 0 0 0 0 0 {bytes} 1 0 0 0 0 0 0
T"""


def row(index: int = 0, count: int = 1, /, **cells: str) -> str:
    """A row as nvidia-smi writes it, each cell by its column's name."""
    named = {
        "uuid": f"GPU-{index}", "name": "NVIDIA A100-SXM4-80GB", "bus_id": f"00000000:0{index + 1}:00.0",
        "driver": "550.54.14", "util": "97", "mem_util": "41", "total": "81920", "used": "40000",
        "reserved": "600", "temp": "64", "power": "310.55", "limit": "400.00", "fan": "[N/A]",
        "sm": "1410", "sm_max": "1410", "mem": "1593", "throttle": "0x0000000000000004",
        "corrected": "0", "uncorrected": "2", "gen": "4", "width": "16", "persistence": "Enabled",
        "mig": "Disabled",
    }  # fmt: skip
    return "G " + ", ".join([str(index), str(count), *{**named, **cells}.values()])


class Box:
    """A host without Python, line by line."""

    def __init__(self, smi: str = "nvidia-smi") -> None:
        self.decoder = SampleDecoder(HostName("box"))
        self.hello = self.say(HELLO.format(smi=smi))
        self.up_s = 100

    def say(self, text: str) -> list[object]:
        found = [
            self.decoder.feed(line.encode("utf-8", "surrogateescape")) for line in text.split("\n")
        ]
        return [decoded for decoded in found if decoded is not None]

    def tick(self, seconds: int = 1) -> list[HostSample]:
        self.up_s += seconds
        spent = 100 * self.up_s
        said = self.say(
            TICK.format(
                up=f"{self.up_s}.00",
                busy=spent,
                idle=2 * spent,
                stolen=spent,
                bytes=1048576 * self.up_s,
            )
        )
        return [sample for sample in said if isinstance(sample, HostSample)]

    def rows(self, *lines: str) -> HostSample:
        (sample,) = self.say("\n".join(lines))
        assert isinstance(sample, HostSample)
        return sample


def gpu_of(**cells: str) -> GpuSample:
    box = Box()
    box.tick()
    return box.rows(row(**cells)).gpus[0]


def test_hello_says_what_the_shell_knows() -> None:
    (hello,) = Box().hello
    assert isinstance(hello, Hello)
    facts = hello.facts
    assert (facts.hostname, facts.user, facts.uid, facts.kernel) == ("gpu-box", "root", 0, "5.15.0")
    assert (facts.os_name, facts.source) == ("Ubuntu 22.04.4 LTS", "nvidia-smi")
    assert facts.incarnation == "11111111-2222-3333-4444-555555555555:42"


def test_rows_and_ticks_make_one_sample_a_second_without_lag() -> None:
    box = Box()
    assert box.tick() == [], "the first rows are awaited"
    first = box.rows(row(0, 2), row(1, 2, util="5"))
    assert [gpu.util_pct for gpu in first.gpus] == [97, 5]
    assert (
        first.at_s == 1_000_101.0 and first.source == "nvidia-smi" and first.gpu_error_code is None
    )
    assert box.tick() == [], "told already, with the rows"
    second = box.rows(row(0, 2), row(1, 2))
    assert (second.cpu_pct, second.steal_pct) == (50.0, 25.0)
    assert (second.mem_used_mib, second.mem_total_mib) == (2048, 8192)
    assert (second.swap_used_mib, second.swap_total_mib, second.load1) == (1024, 2048, 1.5)
    assert (second.net.rx_mib_s, second.uptime_s) == (1.0, 102.0)
    assert second.facts.driver == "550.54.14"


def test_a_row_says_all_it_can() -> None:
    gpu = gpu_of()
    assert (gpu.uuid, gpu.name, gpu.bus_id) == (
        "GPU-0",
        "NVIDIA A100-SXM4-80GB",
        "00000000:01:00.0",
    )
    assert (gpu.mem_used_mib, gpu.mem_total_mib, gpu.mem_reserved_mib) == (40_000, 81_920, 600)
    assert (gpu.power_w, gpu.power_limit_w, gpu.temp_c, gpu.fan_pct) == (310.55, 400.0, 64, None)
    assert (gpu.sm_clock_mhz, gpu.mem_clock_mhz, gpu.throttle) == (1410, 1593, ("power_cap",))
    assert (gpu.ecc_corrected, gpu.ecc_uncorrected, gpu.pcie_gen, gpu.pcie_width) == (0, 2, 4, 16)
    assert (gpu.persistence, gpu.mig, gpu.unified) == (True, False, False)


@pytest.mark.parametrize(
    "words",
    [
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "[Unknown Error]",
        "ERR!",
        "",
        "[Insufficient Permissions]",
    ],
)
def test_words_for_nothing_are_missing(words: str) -> None:
    gpu = gpu_of(util=words, power=words, limit=words, throttle=words, corrected=words, mig=words)
    assert (
        gpu.util_pct,
        gpu.power_w,
        gpu.power_limit_w,
        gpu.throttle,
        gpu.ecc_corrected,
        gpu.mig,
    ) == (None,) * 6
    assert (gpu.error, gpu.mem_used_mib) == (None, 40_000)


@pytest.mark.parametrize(
    ("cells", "error", "code"),
    [
        ({"util": "[GPU is lost]", "used": "[GPU is lost]"}, "GPU is lost", "gpu_lost"),
        ({"temp": "[GPU requires reset]"}, "GPU requires reset", "gpu_reset_required"),
        ({"util": "[Unknown Error]", "used": "[Unknown Error]"}, "Unknown Error", "unknown"),
    ],
)
def test_a_failed_card_is_an_error_of_that_card(
    cells: dict[str, str], error: str, code: str
) -> None:
    box = Box()
    box.tick()
    sample = box.rows(row(0, 2, **cells), row(1, 2))
    assert (sample.gpus[0].error, sample.gpus[0].error_code) == (error, code)
    assert (sample.gpus[0].util_pct, sample.gpus[1].util_pct) == (None, 97)


def test_a_card_without_a_row_has_the_words_beside_the_rows() -> None:
    box = Box()
    box.tick()
    box.rows(row(0, 3), row(1, 3), row(2, 3))
    words = "Unable to determine the device handle for GPU0000:02:00.0: GPU is lost"
    sample = box.rows(row(0, 3), f"G {words}", row(2, 3))
    assert [gpu.error for gpu in sample.gpus] == [None, words, None]
    assert (sample.gpus[1].error_code, sample.gpus[1].uuid) == ("gpu_lost", "GPU-1")
    assert sample.gpus[1].util_pct is None


def test_rows_never_pile_up_without_the_first_card() -> None:
    box = Box()
    box.tick()
    for _ in range(50):
        box.say("\n".join([row(1, 8), row(2, 8)]))
    (sample,) = box.tick() or [box.rows(row(1, 8))]
    assert [gpu.util_pct for gpu in sample.gpus[:3]] == [None, 97, 97]
    assert sample.gpus[0].error == "no row from nvidia-smi" and len(sample.gpus) == 8


def test_rows_that_stay_away_are_a_driver_that_hangs() -> None:
    box = Box()
    box.tick()
    box.rows(row())
    box.tick()
    (still,) = box.tick(3)
    assert (still.gpu_error_code, still.gpus[0].util_pct) == (None, 97), "slow is not dead"
    (hung,) = box.tick(3)
    assert (hung.gpu_error_code, hung.gpu_error) == (
        "driver_hung",
        "nvidia-smi not answering for 7 s",
    )
    assert (hung.gpus[0].error_code, hung.gpus[0].util_pct, hung.gpus[0].name) == (
        "driver_hung", None, "NVIDIA A100-SXM4-80GB",
    )  # fmt: skip
    assert hung.mem_used_mib == 2048
    assert box.rows(row()).gpus[0].util_pct == 97


def test_a_driver_that_never_answered_is_starting_first() -> None:
    box = Box()
    assert box.tick() == []
    assert [sample.gpu_error_code for sample in box.tick(2)] == ["driver_starting"]
    assert [sample.gpu_error_code for sample in box.tick(9)] == ["driver_hung"]


@pytest.mark.parametrize(
    ("code", "words", "name"),
    [
        (
            18,
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54",
            "driver_mismatch",
        ),
        (
            9,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "no_driver",
        ),
        (255, "Failed to initialize NVML: Unknown Error", "nvml_lost"),
        (6, "No devices were found", "no_gpu"),
        (12, "", "no_driver"),
        (3, "something else", "nvml_error"),
    ],
)
def test_how_it_ended_and_what_it_said(code: int, words: str, name: str) -> None:
    box = Box()
    box.say("\n".join(f"G {line}" for line in words.split("\n")))
    box.say(f"X {code}")
    (sample,) = box.tick()
    assert (sample.gpu_error_code, sample.source, sample.gpus) == (name, "proc", ())
    assert words.split("\n")[0] in (sample.gpu_error or "") and sample.mem_total_mib == 8192


def test_without_nvidia_smi_there_is_the_host() -> None:
    box = Box(smi="")
    (sample,) = box.tick()
    assert (sample.gpu_error_code, sample.gpu_error) == ("no_driver", "nvidia-smi: not found")
    assert (sample.source, sample.mem_used_mib) == ("proc", 2048)


def test_processes_and_disks() -> None:
    box = Box()
    box.tick()
    box.say(
        "A 1 GPU-0, 4242, 30000, /opt/conda/bin/python\nA 0 GPU-0, 77, [N/A], [Not Found]\nA rubbish\nA end"
    )
    box.say(
        "D Filesystem 1024-blocks Used Available Capacity Mounted on\nD /dev/a 2097152 1 1048576 50% /my data\nD end"
    )
    sample = box.rows(row())
    assert [
        (one.pid, one.name, one.mem_used_mib, one.visible) for one in sample.gpus[0].processes
    ] == [
        (4242, "python", 30_000, True),
        (77, None, None, False),
    ]
    assert [(disk.mount, disk.free_mib, disk.total_mib) for disk in sample.disks] == [
        ("/my data", 1024, 2048)
    ]


def test_memory_shared_with_the_host() -> None:
    box = Box()
    box.tick()
    box.say("A 0 GPU-0, 77, 300, x\nA end")
    (gpu,) = box.rows(row(name="NVIDIA GB10", total="[N/A]", used="[N/A]", reserved="[N/A]")).gpus
    assert (gpu.unified, gpu.mem_total_mib, gpu.mem_used_mib, gpu.pcie_gen) == (
        True,
        8192,
        300,
        None,
    )


@pytest.mark.parametrize(
    "text",
    [
        "G", "G ,,,", "G \x1b[31m", "X", "X 99999999999999999999", "A 1 a,b", "D / / / /", "U", "U x", "S", "S cpu x",
        "M MemTotal:", "M MemTotal: 99999999999999999999999 kB", "N eth0", "T", "H begin x", "Z", "", "{}",
        "G " + "9" * 5000, "G " + ", ".join(["9" * 30] * 25), "\udcff\udcfe",
    ],
)  # fmt: skip
def test_rubbish_ends_nothing(text: str) -> None:
    box = Box()
    box.tick()
    box.say(text)
    box.say(HELLO.format(smi="nvidia-smi"))
    box.up_s += 10
    box.tick()
    assert box.rows(row()).gpus[0].util_pct == 97


def test_a_tick_before_the_hello_ends_is_a_sample_all_the_same() -> None:
    decoder = SampleDecoder(HostName("box"))
    said = [decoder.feed(line) for line in (b"H begin", b"U 5.0", b"M MemTotal: 2048 kB", b"T")]
    assert [sample.mem_total_mib for sample in said if isinstance(sample, HostSample)] == [2]


def test_a_basic_row_of_an_old_driver() -> None:
    parsed = parse_row(
        "0, 1, GPU-0, Tesla K80, 0000:05:00.0, 470.82, 12, 3, 11441, 100, 40, 60.5, [N/A], 562"
    )
    assert parsed is not None
    assert (
        parsed.values["mem_used_mib"],
        parsed.values["power_w"],
        parsed.values["sm_clock_mhz"],
    ) == (100, 60.5, 562)
    assert parse_row('Field "memory.reserved" is not a valid field to query.') is None
    assert failure_of(2, ["odd"]) == ("nvml_error", "odd")
