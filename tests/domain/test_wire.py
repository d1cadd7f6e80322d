"""A probe's lines into samples: what adds up, and what a hostile host may not make of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.domain.wire import (
    LINE_LIMIT,
    Hello,
    ProbeFault,
    SampleDecoder,
    set_focus,
    set_interval,
)

HOST = HostName("box")


def line(**record: object) -> bytes:
    return json.dumps({"k": "sample", "at": 1e9, "mono": 1.0, **record}).encode()


def fed(*lines: bytes) -> HostSample:
    """The sample that the last of the lines makes."""
    decoder = SampleDecoder(HOST)
    for given in lines[:-1]:
        decoder.feed(given)
    sample = decoder.feed(lines[-1])
    assert isinstance(sample, HostSample), sample
    return sample


def gpu_of(**fields: object) -> GpuSample:
    (gpu,) = fed(line(cards=[0], gpus=[{"index": 0, **fields}])).gpus
    return gpu


def test_hello_and_later_facts_add_up() -> None:
    hello = {
        "k": "hello",
        "v": 1,
        "interval": 2.0,
        "facts": {"hostname": "h", "cores": 8, "uid": 0},
    }
    decoder = SampleDecoder(HOST)
    greeted = decoder.feed(json.dumps(hello).encode())
    assert isinstance(greeted, Hello)
    assert (greeted.interval_s, greeted.facts.hostname, greeted.facts.driver) == (2.0, "h", None)
    sample = decoder.feed(line(seq=3, facts={"driver": "550.54", "source": "nvml"}, source="nvml"))
    assert isinstance(sample, HostSample)
    assert (sample.seq, sample.interval_s, sample.source) == (3, 2.0, "nvml")
    assert (sample.facts.hostname, sample.facts.driver, sample.facts.cores) == ("h", "550.54", 8)


def test_what_is_not_said_stays_and_null_is_unknown() -> None:
    decoder = SampleDecoder(HOST)
    decoder.feed(
        line(
            host={"cpu_pct": 5.0, "load1": 1.5, "net_rx_mib_s": 1.0, "net_tx_mib_s": 2.0},
            disks=[{"mount": "/", "free_mib": 7}],
            cards=[0, 1],
            gpus=[{"index": index, "util_pct": 9, "temp_c": 40} for index in (0, 1)],
        )
    )
    sample = decoder.feed(
        line(mono=2.0, host={"cpu_pct": None}, gpus=[{"index": 1, "util_pct": None}])
    )
    assert isinstance(sample, HostSample)
    assert (sample.cpu_pct, sample.load1, sample.net.tx_mib_s) == (None, 1.5, 2.0)
    assert [disk.free_mib for disk in sample.disks] == [7]
    assert [(gpu.util_pct, gpu.temp_c) for gpu in sample.gpus] == [(9, 40), (None, 40)]


def test_a_card_with_an_error_keeps_its_identity_alone() -> None:
    first = line(
        cards=[0],
        gpus=[{"index": 0, "uuid": "GPU-1", "name": "H100", "bus_id": "1:2:3", "util_pct": 5,
               "processes": [{"pid": 7}]}],
    )  # fmt: skip
    lost = line(gpus=[{"index": 0, "error": "GPU is lost", "error_code": "gpu_lost"}])
    (gpu,) = fed(first, lost).gpus
    assert gpu == GpuSample(0, "GPU-1", "H100", "1:2:3", error="GPU is lost", error_code="gpu_lost")
    (back,) = fed(
        first, lost, line(gpus=[{"index": 0, "error": None, "error_code": None, "util_pct": 4}])
    ).gpus
    assert back == replace(gpu, error=None, error_code=None, util_pct=4)


def test_processes_are_held_with_their_age() -> None:
    read = line(
        cards=[0],
        mono=10.0,
        gpus_mono=9.5,
        gpus=[{"index": 0, "processes": [{"pid": 7, "run": "r-1"}]}],
    )
    (gpu,) = fed(read, line(mono=12.0)).gpus
    assert [(one.pid, one.run, one.visible) for one in gpu.processes] == [(7, "r-1", True)]
    assert gpu.processes_age_s == 2.5
    (gone,) = fed(read, line(mono=12.0, gpus=[{"index": 0, "processes": None}])).gpus
    assert (gone.processes, gone.processes_age_s) == ((), None)


def test_cards_that_are_no_longer_named_are_gone() -> None:
    two = line(cards=[0, 1], gpus=[{"index": 0, "util_pct": 1}, {"index": 1, "util_pct": 2}])
    assert [gpu.util_pct for gpu in fed(two, line(cards=[1])).gpus] == [2]
    mismatch = line(cards=[], source="proc", gpu_error_code="driver_mismatch", gpu_error="mismatch")
    sample = fed(two, mismatch, line())
    assert (sample.gpus, sample.gpu_error_code, sample.gpu_error) == (
        (),
        "driver_mismatch",
        "mismatch",
    )


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("util_pct", 101, 100),
        ("util_pct", 3400, 100),
        ("util_pct", -1, None),
        ("util_pct", 2**32 - 1, None),
        ("util_pct", "97", None),
        ("util_pct", True, None),
        ("util_pct", 97.0, None),
        ("mem_used_mib", 2**64 - 1, None),
        ("mem_used_mib", 17_179_869_184 * 1024, None),
        ("mem_used_mib", -5, None),
        ("temp_c", 2**31 - 16, None),
        ("temp_c", -30, -30),
        ("power_w", 1e300, None),
        ("power_w", 412, 412.0),
        ("power_w", [1], None),
        ("ecc_uncorrected", 2**63 - 14, None),
        ("ecc_uncorrected", 12, 12),
        ("pcie_gen", 0, None),
        ("throttle", "power_cap", None),
        ("throttle", ["power_cap", 7, "x" * 99], ("power_cap", "x" * 31 + "…")),
        ("persistence", 1, None),
        ("bus_id", 12, None),
        ("name", {"a": 1}, ""),
        ("name", "H100\x1b]0;evil\x07\u202e", "H100"),
        ("uuid", None, ""),
        ("unified", "yes", False),
        ("error", "", None),
        ("error_code", "gpu_lost", "gpu_lost"),
        ("error_code", "No such\x1b[31m code", "unknown"),
        ("error_code", "x" * 41, "unknown"),
        ("error_code", 7, None),
    ],
)
def test_fields_hold_what_they_may(field: str, given: object, kept: object) -> None:
    assert getattr(gpu_of(**{field: given}), field) == kept


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_no_number_is_no_line(number: str) -> None:
    raw = line(host={"cpu_pct": 5.0}).replace(b"5.0", number.encode())
    assert SampleDecoder(HOST).feed(raw) == ProbeFault("bad_line", raw.decode())


def test_an_overflowing_number_is_missing() -> None:
    sample = fed(line(host={"load1": 5.0}).replace(b"5.0", b"1e999"))
    assert sample.load1 is None
    assert SampleDecoder(HOST).feed(line().replace(b"1000000000.0", b"1e999")) == ProbeFault(
        "bad_line", "a sample without its time"
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[]",
        b"7",
        b"null",
        b'"text"',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"k":' + b"[" * 100_000,
        b'{"a":' * 20_000,
        b'{"k":"sample"}',
        b'{"k":"sample","at":"now","mono":1}',
        b'{"k":"sample","at":1,"mono":-1}',
        b'{"k":"sample","at":' + b"9" * 200_000 + b"}",
        b"Welcome to the box!",
        b"\x1b[31mred\x1b[0m",
    ],
)
def test_broken_lines_are_faults_and_end_nothing(raw: bytes) -> None:
    decoder = SampleDecoder(HOST)
    fault = decoder.feed(raw)
    assert isinstance(fault, ProbeFault) and fault.code == "bad_line"
    assert len(fault.text) <= 200 and fault.text.isprintable()
    assert isinstance(decoder.feed(line()), HostSample)


def test_a_line_that_is_too_long_is_not_read() -> None:
    assert SampleDecoder(HOST).feed(b" " * (LINE_LIMIT + 1)) == ProbeFault(
        "line_too_long", f"{LINE_LIMIT + 1} bytes"
    )


@pytest.mark.parametrize(
    "raw", [b"", b"  ", b"{}", b'{"k":"else"}', b'{"k":7}', b'{"k":["sample"]}']
)
def test_lines_that_say_nothing_are_none(raw: bytes) -> None:
    assert SampleDecoder(HOST).feed(raw) is None


def test_lists_are_bounded() -> None:
    pids = [{"pid": pid} for pid in range(1, 600)]
    sample = fed(
        line(
            cards=list(range(500)),
            disks=[{"mount": f"/{place}"} for place in range(500)],
            xids=[{"xid": 79, "at_s": 1.0, "text": "x" * 999}] * 100,
        ),
        line(gpus=[{"index": 1, "processes": pids}]),
        line(
            gpus=[{"index": 70, "processes": pids}],
            xids=[{"xid": 79, "at_s": 1.0, "text": "x" * 999}] * 100,
        ),
    )
    assert (len(sample.gpus), len(sample.disks), len(sample.xids)) == (64, 64, 64)
    assert len(sample.gpus[1].processes) == 16, "64 cards share 1024"
    assert len(sample.xids[0].text) == 400
    assert (
        len(fed(line(cards=[0], gpus=[{"index": 0, "processes": pids}])).gpus[0].processes) == 512
    )


def test_wrong_shapes_inside_are_left_out() -> None:
    sample = fed(
        line(
            cards=[0, "1", None, -1, 2.5, [3], True, 0],
            gpus=["x", None, {"index": []}, {"index": 9, "util_pct": 1}, {"util_pct": 1},
                  {"index": 0, "util_pct": 3, "unknown": 1,
                   "processes": [{"pid": 0}, {"pid": "7"}, 5, {"pid": 8}, {"pid": 8}]}],
            host=[1],
            disks={"mount": "/"},
            facts=7,
            interval="1",
            xids=[{"xid": "79"}, {"at_s": 1}, 7],
            source="made up",
            gpu_error=5,
        )
    )  # fmt: skip
    (gpu,) = sample.gpus
    assert gpu.util_pct == 3 and [process.pid for process in gpu.processes] == [8]
    assert (sample.disks, sample.xids, sample.gpu_error, sample.source) == ((), (), None, "proc")


def test_a_repeated_key_counts_once() -> None:
    raw = b'{"k":"hello","k":"sample","at":1,"mono":1,"host":{"load1":1,"load1":2}}'
    assert fed(raw).load1 == 2.0


def test_the_probes_own_fault() -> None:
    raw = json.dumps(
        {"k": "fault", "code": "crashed", "text": "\x1b[1mKeyError\n" + "x" * 999}
    ).encode()
    fault = SampleDecoder(HOST).feed(raw)
    assert isinstance(fault, ProbeFault)
    assert (
        fault.code == "crashed" and fault.text.startswith("KeyError x") and len(fault.text) == 400
    )
    assert SampleDecoder(HOST).feed(b'{"k":"fault","code":7}') == ProbeFault("probe", "")


def test_memory_that_no_process_explains() -> None:
    busy = gpu_of(mem_used_mib=9000, processes=[{"pid": 7, "mem_used_mib": 6000}, {"pid": 8}])
    assert busy.unattributed_mib == 3000
    assert gpu_of(mem_used_mib=9000, processes=[]).unattributed_mib == 9000
    assert gpu_of(mem_used_mib=9000).unattributed_mib is None, "never read"
    assert gpu_of(mem_used_mib=50, processes=[{"pid": 7, "mem_used_mib": 60}]).unattributed_mib == 0


@pytest.mark.parametrize(("seconds", "told"), [(0.01, 0.2), (1, 1.0), (math.inf, 60.0)])
def test_control_lines(seconds: float, told: float) -> None:
    word, value = set_interval(seconds).split()
    assert (word, float(value)) == (b"interval", told)
    assert (set_focus(True), set_focus(False)) == (b"focus 1\n", b"focus 0\n")
