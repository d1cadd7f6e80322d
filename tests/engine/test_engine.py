"""The engine as a whole, on fake hosts: what it composes, what it loads, and that it lets go in time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.models import HostName
from cockpit.engine.api import EngineApi
from cockpit.engine.engine import Engine, open_engine
from cockpit.engine.events import Event, IncidentChanged, LinkChanged
from cockpit.engine.host_list import hosts_to_watch
from cockpit.engine.no_runs import NoRuns
from cockpit.engine.this_machine import has_gpu
from cockpit.engine.wiring import EngineParts, Wiring
from cockpit.errors import ConfigError, UsageError
from cockpit.transport.base import AskSecret, HostTransport, SecretRequest
from tests.builders.links import FakeHost, FakeTransport, fake_wiring, settle
from tests.builders.samples import degraded_sample, gpu, host_sample, lost_gpu

HOSTS = """\
[hosts.vast-a]
host = "192.0.2.1"
price = "0.42 USD/h"

[hosts.h100]
host = "192.0.2.2"
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "hosts.toml").write_text(HOSTS)
    return Home(tmp_path)


async def running(home: Home, *fakes: FakeHost) -> Engine:
    engine = await open_engine(home, wiring=fake_wiring(*fakes))
    await engine.start()
    await settle()
    return engine


def implements(engine: Engine) -> EngineApi:
    """A type checker reads this: Engine is what front ends are written against."""
    return engine


async def test_hosts_of_the_file_are_watched_and_heard(home: Home) -> None:
    vast, h100 = FakeHost("vast-a"), FakeHost("h100")
    engine = await running(home, vast, h100)
    heard: list[Event] = []
    engine.subscribe(heard.append)
    vast.sampler.push(host_sample("vast-a", gpus=2))
    await settle()
    assert list(engine.hosts) == ["vast-a", "h100"]
    assert engine.fleet.hosts[HostName("vast-a")].link == "live"
    assert [(e.host, e.after) for e in heard if isinstance(e, LinkChanged)] == [("vast-a", "live")]
    await engine.close()
    assert vast.transport.closed and h100.transport.closed


async def test_an_added_host_is_connected_and_a_removed_one_let_go(home: Home) -> None:
    fakes = [FakeHost(name) for name in ("vast-a", "h100", "new")]
    engine = await running(home, *fakes)
    spec = await engine.add_host("new", "ssh -p 2203 root@192.0.2.3")
    await settle()
    assert (spec.port, len(fakes[2].transports), len(fakes[0].transports)) == (2203, 1, 1)
    await engine.remove_host(HostName("vast-a"))
    assert fakes[0].transport.closed
    assert list(engine.hosts) == list(engine.fleet.hosts) == ["h100", "new"]
    await engine.close()


async def test_a_mistake_in_the_file_changes_nothing(home: Home) -> None:
    fakes = [FakeHost("vast-a"), FakeHost("h100")]
    engine = await running(home, *fakes)
    home.hosts_toml.write_text("[hosts.h100]\nhots = 'x'\n")
    with pytest.raises(ConfigError):
        await engine.reload_hosts()
    assert list(engine.hosts) == ["vast-a", "h100"]
    assert not fakes[0].transport.closed
    await engine.close()


async def test_an_edited_host_is_connected_anew_with_its_last_values_kept(home: Home) -> None:
    fakes = [FakeHost("vast-a"), FakeHost("h100")]
    engine = await running(home, *fakes)
    fakes[0].sampler.push(host_sample("vast-a"))
    await settle()
    home.hosts_toml.write_text(HOSTS.replace("192.0.2.1", "192.0.2.9"))
    await engine.reload_hosts()
    await settle()
    state = engine.fleet.hosts[HostName("vast-a")]
    assert (len(fakes[0].transports), len(fakes[1].transports)) == (2, 1)
    assert state.link == "connecting" and state.latest is not None
    await engine.close()


async def test_what_samples_tell_becomes_incidents_that_are_heard(home: Home) -> None:
    fakes = [FakeHost("vast-a"), FakeHost("h100")]
    engine = await running(home, *fakes)
    heard: list[tuple[str, str, int | None, str]] = []

    def hear(event: Event) -> None:
        if isinstance(event, IncidentChanged):
            found = event.incident
            heard.append((found.family, str(found.host), found.gpu, found.state))

    engine.subscribe(hear)
    for seq in range(40):
        full = gpu(0, mem_used_mib=24_500, mem_total_mib=24_564)
        fakes[0].sampler.push(host_sample("vast-a", gpus=[full], seq=seq))
    fakes[1].sampler.push(host_sample("h100", gpus=[gpu(0), gpu(1)]))
    fakes[1].sampler.push(host_sample("h100", gpus=[gpu(0), lost_gpu(1)], seq=1))
    fakes[1].sampler.push(host_sample("h100", gpus=[gpu(0), gpu(1)], seq=2, cgroup_oom_kills=1))
    fakes[1].sampler.push(degraded_sample("h100", seq=3))
    await settle(200)
    assert [one for one in heard if one[1] == "vast-a"] == [("near_full", "vast-a", 0, "open")]
    assert [one for one in heard if one[1] == "h100"] == [
        ("hardware", "h100", 1, "open"),
        ("host_oom", "h100", None, "open"),
        ("hardware", "h100", 1, "recovered"),
        ("driver", "h100", None, "open"),
    ]
    assert engine.incidents.version > 0
    await engine.close()


async def test_a_person_who_is_asked_stops_the_links_clock(home: Home) -> None:
    asked: list[AskSecret | None] = []
    answering = asyncio.Event()

    async def person(request: SecretRequest) -> str | None:
        await answering.wait()
        return f"secret of {request.subject}"

    def make_transport(spec: HostSpec, parts: EngineParts, ask: AskSecret | None) -> HostTransport:
        asked.append(ask)
        return FakeTransport(FakeHost(spec.name))

    wiring = Wiring(make_transport=make_transport, make_runs=lambda _parts: NoRuns())
    engine = await open_engine(home, ask_secret=person, wiring=wiring)
    await engine.start()
    await settle()
    ask = asked[0]
    assert ask is not None
    question = asyncio.ensure_future(
        ask(SecretRequest(HostName("vast-a"), "password", "", "root@vast-a"))
    )
    await settle()
    assert engine.person is not None and engine.person.asked == {"vast-a"}
    answering.set()
    assert await question == "secret of root@vast-a"
    assert engine.person.asked == set()
    await engine.close()


async def test_close_is_bounded_when_no_host_lets_go(home: Home) -> None:
    fakes = [FakeHost("vast-a", close_hangs=True), FakeHost("h100", close_hangs=True)]
    engine = await running(home, *fakes)
    await asyncio.wait_for(engine.close(), 30)
    await settle()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_unknown_hosts_are_refused_and_never_connected(home: Home) -> None:
    engine = await running(home, FakeHost("vast-a"), FakeHost("h100"))
    engine.connect(HostName("nobody"))
    engine.disconnect(HostName("nobody"))
    engine.probe_now([HostName("nobody")])
    with pytest.raises(UsageError, match="host_unknown"):
        await engine.trust(HostName("nobody"), "SHA256:x")
    await engine.close()


def test_without_hosts_this_machine_is_watched_if_it_has_a_gpu(tmp_path: Path) -> None:
    home = Home(tmp_path / "empty")
    assert hosts_to_watch(home, lambda: False) == {}
    (here,) = hosts_to_watch(home, lambda: True).values()
    assert here.local


@pytest.mark.parametrize("file", ["dev/nvidia0", "dev/dxg", "proc/driver/nvidia/version"])
def test_a_gpu_is_seen_by_its_device_file(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    assert has_gpu(tmp_path)


def loaded_after(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after `code`."""
    script = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(found.stdout.split())


@pytest.mark.parametrize("module", ["api", "fleet", "events"])
def test_what_screens_import_loads_neither_ssh_nor_pydantic(module: str) -> None:
    loaded = loaded_after(f"import cockpit.engine.{module}")
    assert not loaded & {"asyncssh", "pydantic", "cryptography", "textual"}


def test_an_engine_is_made_without_ssh() -> None:
    assert not loaded_after("import cockpit.engine.engine") & {
        "asyncssh",
        "cryptography",
        "textual",
    }
