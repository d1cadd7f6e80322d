"""The doubles themselves: NVIDIA's own binding runs on the library, and nvidia-smi says what the real one says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nvml.double import Driver, healthy, make_driver

pytestmark = pytest.mark.nvml
QUERY = "--query-gpu=index,name,utilization.gpu,memory.used,power.draw,clocks.sm"
CSV = "--format=csv,noheader,nounits"


def ask(driver: Driver, expression: str) -> object:
    """What an expression on NVIDIA's binding gives, or the error's text."""
    code = f"""
import json, pynvml as n
try:
    n.nvmlInit()
    h = n.nvmlDeviceGetHandleByIndex(0)
    print(json.dumps({expression}))
except n.NVMLError as error:
    print(json.dumps(str(error)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=driver.environ(), capture_output=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def smi(driver: Driver, *argv: str) -> tuple[int, list[str]]:
    """Exit code and lines of nvidia-smi."""
    done = subprocess.run(
        ["nvidia-smi", *argv], env=driver.environ(), capture_output=True, text=True, timeout=30
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("lines", "expression", "answer"),
    [
        ([], "n.nvmlDeviceGetUtilizationRates(h).gpu", 97),
        ([], "[n.nvmlDeviceGetCount(), n.nvmlDeviceGetName(h)]", [1, "NVIDIA H100 80GB HBM3"]),
        ([], "n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2).used >> 20", 40_000),
        ([], "n.nvmlDeviceGetMemoryInfo(h).used >> 20", 40_500),
        ([], "len(n.nvmlDeviceGetComputeRunningProcesses(h))", 1),
        ([], "n.nvmlDeviceGetTemperature(h, 0)", 64),
        (["gpu 0 temp n/a"], "n.nvmlDeviceGetTemperature(h, 0)", "Not Supported"),
        (["gpu 0 power !4"], "n.nvmlDeviceGetPowerUsage(h)", "Insufficient Permissions"),
        (["gpu 0 lost 0"], "n.nvmlDeviceGetUUID(h)", "GPU is lost"),
        (["gpu 0 lost 0", "gpu 0 back 0"], "n.nvmlDeviceGetTemperature(h, 0)", 64),
        (["init 9"], "1", "Driver Not Loaded"),
        (["time 30", "gpu 0 util wave 0 100 60"], "n.nvmlDeviceGetUtilizationRates(h).gpu", 100),
        (
            ["time 30", "gpu 0 mem_used ramp 1000 10 1200"],
            "n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2).used >> 20",
            1200,
        ),
        (
            ["missing nvmlDeviceGetTemperature"],
            "n.nvmlDeviceGetTemperature(h, 0)",
            "Function Not Found",
        ),
    ],
)
def test_nvidias_binding_runs_on_it(
    tmp_path: Path, lines: list[str], expression: str, answer: object
) -> None:
    assert ask(make_driver(tmp_path, [*healthy(1), *lines]), expression) == answer


def test_a_symbol_can_be_absent(tmp_path: Path) -> None:
    old = make_driver(tmp_path, healthy(1), missing=["nvmlDeviceGetMemoryInfo_v2"])
    assert ask(old, "n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2).used") == "Function Not Found"
    assert ask(old, "n.nvmlDeviceGetMemoryInfo(h).used >> 20") == 40_500


def test_nvidia_smi_prints_rows_lists_and_processes(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, [*healthy(2), "gpu 1 util n/a"])
    assert smi(driver, QUERY, CSV) == (
        0,
        [
            "0, NVIDIA H100 80GB HBM3, 97, 40000, 655.50, 1980",
            "1, NVIDIA H100 80GB HBM3, [N/A], 40000, 655.50, 1980",
        ],
    )
    code, (header, row, _) = smi(driver, QUERY, "--format=csv")
    assert (code, header.split(", ")[2], row.split(", ")[2:5]) == (
        0,
        "utilization.gpu",
        ["97 %", "40000 MiB", "655.50 W"],
    )
    assert smi(driver, "-L")[1][0] == (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-c0ffee00-d0b1-4e00-8000-000000000000)"
    )
    code, rows = smi(driver, "--query-compute-apps=gpu_uuid,used_memory", CSV)
    assert (code, rows[0]) == (0, "GPU-c0ffee00-d0b1-4e00-8000-000000000000, 39000")
    assert "<gpu_util>97 %</gpu_util>" in "".join(smi(driver, "-q", "-x")[1])
    assert smi(driver)[0] == 0
    assert smi(driver, "--query-gpu=made.up", CSV) == (
        2,
        ['Field "made.up" is not a valid field to query.', ""],
    )


@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        (["init 18"], 18, "Failed to initialize NVML: Driver/library version mismatch"),
        (["init 999"], 255, "Failed to initialize NVML: Unknown Error"),
        (["init 9"], 9, "couldn't communicate with the NVIDIA driver"),
        (["gpus 0"], 6, "No devices were found"),
    ],
)
def test_nvidia_smi_fails_as_the_real_one(
    tmp_path: Path, lines: list[str], code: int, words: str
) -> None:
    found, printed = smi(make_driver(tmp_path, [*healthy(1), *lines]), QUERY, CSV)
    assert found == code and words in printed[0]


def test_nvidia_smi_of_a_lost_card_goes_on(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, [*healthy(2), "gpu 0 lost"])
    code, rows = smi(driver, QUERY, CSV)
    assert (code, rows[0]) == (
        0,
        "Unable to determine the device handle for GPU0000:1B:00.0: GPU is lost",
    )
    assert rows[1].startswith("1, NVIDIA H100")
    assert smi(driver, QUERY, CSV, "-i", "0")[0] == 15


def test_nvidia_smi_streams(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, healthy(1))
    with subprocess.Popen(
        ["nvidia-smi", "--query-gpu=utilization.gpu", CSV, "-lms", "20"],
        env=driver.environ(),
        stdout=subprocess.PIPE,
    ) as stream:
        assert stream.stdout is not None
        assert [stream.stdout.readline() for _ in range(3)] == [b"97\n"] * 3
        driver.scenario.say("gpu 0 util 5")
        assert any(stream.stdout.readline() == b"5\n" for _ in range(500))
        stream.kill()
