"""`cockpit status`: the shapes, the waiting, the exit codes, and that hostile text is harmless."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName, HostSample
from cockpit.engine.fleet import HostState
from cockpit.errors import AuthenticationFailed, HostKeyUnknown, HostUnreachable, UsageError
from cockpit.headless.status import chosen, has_answered, is_full, status
from cockpit.headless.status_json import status_object
from cockpit.headless.status_report import Report
from cockpit.headless.status_words import host_lines
from tests.builders.links import FakeHost, fake_wiring, settle
from tests.builders.samples import (
    degraded_sample,
    fleet_of,
    gpu,
    h100,
    host_sample,
    lost_gpu,
    process,
)

HOST_KEYS = [
    "host", "state", "code", "fingerprint", "age_s", "reason", "platform", "driver", "cuda",
    "price_per_h", "currency", "cpu_pct", "load1", "mem_used_mib", "mem_total_mib", "disks", "gpus",
]  # fmt: skip
GPU_KEYS = [
    "index", "uuid", "name", "util_pct", "mem_used_mib", "mem_total_mib", "temp_c", "power_w",
    "power_limit_w", "sm_clock_mhz", "throttle", "ecc_uncorrected", "mig", "error", "processes",
]  # fmt: skip


def spec(name: str = "vast-a", price: float | None = 0.42) -> HostSpec:
    return HostSpec(HostName(name), host="192.0.2.1", price_per_h=price, currency="USD")


def state_of(sample: HostSample, received_s: float = 10.0) -> HostState:
    return fleet_of(sample, received_s=received_s).hosts[sample.host]


def test_a_live_host_has_every_key_of_the_design_and_no_other() -> None:
    state = state_of(host_sample(gpus=[h100(0, processes=(process(),)), h100(1)]))
    shown = status_object(spec(), state, 10.4)
    assert list(shown) == HOST_KEYS
    assert json.loads(json.dumps(shown)) == shown
    cards = shown["gpus"]
    assert isinstance(cards, list) and len(cards) == 2
    assert isinstance(cards[0], dict) and list(cards[0]) == GPU_KEYS
    assert cards[0]["processes"] == [
        {"pid": 4121, "name": "python", "user": "root", "mem_used_mib": 20_000, "run": None}
    ]
    assert (shown["state"], shown["code"], shown["reason"], shown["age_s"]) == (
        "live",
        None,
        None,
        0.4,
    )
    assert (shown["price_per_h"], shown["currency"], shown["platform"]) == (0.42, "USD", "vast")
    assert shown["disks"] == [{"mount": "/", "free_mib": 18_432, "total_mib": 81_920}]


def test_what_is_not_known_is_null_and_never_zero() -> None:
    shown = status_object(spec(price=None), HostState(HostName("vast-a")), 0.0)
    assert list(shown) == HOST_KEYS
    known = {key: value for key, value in shown.items() if value is not None}
    assert known == {
        "host": "vast-a", "state": "connecting", "currency": "USD", "disks": [], "gpus": []
    }  # fmt: skip
    lost = status_object(spec(), state_of(host_sample(gpus=[lost_gpu(3)])), 0.0)["gpus"]
    assert isinstance(lost, list) and isinstance(lost[0], dict)
    assert {key for key, value in lost[0].items() if value is None} == set(GPU_KEYS) - {
        "index", "uuid", "name", "error", "processes"
    }  # fmt: skip
    assert lost[0]["error"] == "GPU is lost"


def test_a_degraded_host_gives_the_drivers_words_as_reason() -> None:
    shown = status_object(spec("a100"), state_of(degraded_sample()), 10.0)
    assert shown["state"] == "degraded" and shown["code"] == "driver_mismatch"
    assert shown["reason"] == "Failed to initialize NVML: Driver/library version mismatch"
    assert shown["cpu_pct"] == 12.0 and shown["gpus"] == []


def test_words_for_a_person_name_host_and_card_on_every_line() -> None:
    cards = [
        gpu(0, processes=(process(), process(7, user="eve", name="vllm"))),
        gpu(1, util_pct=None, power_w=None, temp_c=None),
        lost_gpu(2),
    ]
    lines = dict(host_lines(spec(), state_of(host_sample(gpus=cards)), 10.0))
    assert list(lines) == ["vast-a", "vast-a:0", "vast-a:1", "vast-a:2"]
    assert lines["vast-a"].split(maxsplit=1)[0] == "live"
    assert lines["vast-a"].split(maxsplit=1)[1].split("  ") == [
        "2 x RTX 4090, 1 x H100 80GB HBM3", "cpu 12%", "ram 41.0/64.0G",
        "/ 18.0G free", "0.42 USD/h", "vast",
    ]  # fmt: skip
    assert lines["vast-a:0"] == " 97%  20.0/24.0G  64°C  402/450 W  python (root), vllm (eve)"
    assert lines["vast-a:1"].startswith(" n/a  20.0/24.0G  n/a   n/a W")
    assert lines["vast-a:2"] == "GPU is lost"


@pytest.mark.parametrize(
    ("sample", "full"),
    [
        (host_sample(gpus=8), True),
        (host_sample(gpus=0), True),
        (host_sample(cpu_pct=None), False),
        (host_sample(gpus=[gpu(processes_age_s=None)]), False),
        (host_sample(gpus=[gpu(processes_age_s=None)], seq=2), True),
        (host_sample(gpus=[lost_gpu()]), True),
    ],
)
def test_a_full_sample_has_rates_and_processes(sample: HostSample, full: bool) -> None:
    assert is_full(sample) is full
    assert has_answered(state_of(sample)) is full


async def statuses(
    home: Home, fakes: list[FakeHost], *, as_json: bool = True, watch: bool = False
) -> tuple[int, list[str]]:
    lines: list[str] = []
    hosts = {fake.spec.name: fake.spec for fake in fakes}
    report = Report(hosts, lines.append, as_json=as_json)
    code = await status(home, hosts, report, watch=watch, wiring=fake_wiring(*fakes))
    return code, lines


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came")


async def test_every_host_is_printed_once_each_has_answered_or_failed(tmp_path: Path) -> None:
    live, down = FakeHost("live"), FakeHost("down")
    down.connect_errors = deque([HostUnreachable(host="down", why="refused")] * 9)
    asked = asyncio.ensure_future(statuses(Home(tmp_path), [down, live]))
    await until(lambda: bool(live.samplers))
    live.sampler.push(host_sample("live", cpu_pct=None))
    await settle()
    assert not asked.done()
    await until(lambda: live.sampler.told[-1][1])
    live.sampler.push(host_sample("live", gpus=8, seq=1))
    code, lines = await asked
    shown = [json.loads(line) for line in lines]
    assert code == 69
    assert [(host["host"], host["state"], len(host["gpus"])) for host in shown] == [
        ("down", "unreachable", 0),
        ("live", "live", 8),
    ]
    assert shown[0]["code"] == "unreachable" and shown[0]["reason"]


async def test_live_and_degraded_hosts_are_success(tmp_path: Path) -> None:
    live, degraded = FakeHost("live"), FakeHost("a100")
    asked = asyncio.ensure_future(statuses(Home(tmp_path), [live, degraded], as_json=False))
    await until(lambda: bool(live.samplers and degraded.samplers))
    live.sampler.push(host_sample("live"))
    degraded.sampler.push(degraded_sample())
    code, lines = await asked
    assert code == 0
    assert [line.split()[:2] for line in lines] == [
        ["live", "live"], ["live:0", "97%"], [], ["a100", "degraded"]
    ]  # fmt: skip
    assert "Driver/library version mismatch" in lines[3]


@pytest.mark.parametrize(
    ("error", "state", "fingerprint"),
    [
        (AuthenticationFailed(host="h", user="root"), "auth_failed", None),
        (HostKeyUnknown(host="h", fingerprint="SHA256:new"), "host_key", "SHA256:new"),
    ],
)
async def test_a_host_that_waits_for_a_person_is_final(
    tmp_path: Path, error: Exception, state: str, fingerprint: str | None
) -> None:
    code, lines = await statuses(Home(tmp_path), [FakeHost("h", connect_errors=deque([error]))])
    shown = json.loads(lines[0])
    assert (code, shown["state"], shown["fingerprint"]) == (69, state, fingerprint)


async def test_watching_repeats_only_the_lines_that_read_differently(tmp_path: Path) -> None:
    lines: list[str] = []
    fake = FakeHost("h")
    hosts = {fake.spec.name: fake.spec}
    report = Report(hosts, lines.append, as_json=False)
    watching = asyncio.ensure_future(
        status(Home(tmp_path), hosts, report, watch=True, wiring=fake_wiring(fake))
    )
    await until(lambda: bool(fake.samplers))
    fake.sampler.push(host_sample("h", gpus=2))
    await until(lambda: len(lines) == 3)
    fake.sampler.push(host_sample("h", gpus=2, seq=1))
    fake.sampler.push(host_sample("h", gpus=[gpu(0), gpu(1, util_pct=3)], seq=2))
    await until(lambda: len(lines) == 4)
    assert lines[3].split()[:2] == ["h:1", "3%"]
    os.kill(os.getpid(), signal.SIGINT)
    assert await watching == 0


def test_unknown_hosts_and_no_hosts_are_usage_errors(tmp_path: Path) -> None:
    hosts = {HostName("a"): spec("a"), HostName("b"): spec("b")}
    assert list(chosen(hosts, ["b"], Home(tmp_path))) == ["b"]
    with pytest.raises(UsageError, match="host_unknown"):
        chosen(hosts, ["c"], Home(tmp_path))
    with pytest.raises(UsageError, match="no_hosts"):
        chosen({}, [], Home(tmp_path))


def cockpit(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cockpit", *argv],
        env={**os.environ, "COCKPIT_HOME": str(home), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_unknown_host_ends_with_64_and_prints_no_data(tmp_path: Path) -> None:
    (tmp_path / "hosts.toml").write_text("[hosts.a]\nhost = '192.0.2.1'\n")
    ended = cockpit(tmp_path, "status", "--json", "--host", "b")
    assert (ended.returncode, ended.stdout) == (64, "")
    assert "b" in ended.stderr


def test_status_does_not_load_textual(tmp_path: Path) -> None:
    code = "import sys, cockpit.headless.status; print('textual' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
