"""Real sshd, real probe, NVML double: what a person sees of a host through everything that goes wrong with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pexpect
import pytest

from cockpit.config.hosts import HostSpec
from cockpit.domain.models import GpuSample, HostName, HostSample
from cockpit.engine.engine import Engine
from cockpit.engine.events import Event, LinkChanged
from cockpit.engine.fleet import HostState
from cockpit.engine.no_runs import NoRuns
from cockpit.engine.wiring import EngineParts, Wiring
from cockpit.errors import HostKeyChanged
from cockpit.transport.base import AskSecret, HostTransport
from tests.nvml.double import Driver, healthy, make_driver
from tests.servers import Laptop, OpenSshServer, openssh

pytestmark = [pytest.mark.sshd, pytest.mark.nvml]

BOX = HostName("box")
HERE = HostName("here")


@dataclass
class Rented:
    """A GPU host of a test, and the laptop that watches it."""

    laptop: Laptop
    sshd: OpenSshServer
    driver: Driver

    def hosts_toml(self) -> None:
        (self.laptop.home.root / "hosts.toml").write_text(
            f'[hosts.box]\nhost = "127.0.0.1"\nport = {self.sshd.port}\nuser = "{self.sshd.user}"\n'
            f'identity = "{self.laptop.identity.file}"\nprice = "8.90 USD/h"\n'
        )


@pytest.fixture
async def rented(tmp_path: Path) -> AsyncIterator[Rented]:
    driver = make_driver(tmp_path, healthy())
    laptop = Laptop(tmp_path / "laptop")
    seen = f"SetEnv LD_LIBRARY_PATH={driver.library} NVML_DOUBLE={driver.scenario.path}"
    async with openssh(tmp_path / "sshd", authorized=[laptop.identity], options=[seen]) as sshd:
        yield Rented(laptop, sshd, driver)


@asynccontextmanager
async def watched(
    rented: Rented, *more: HostSpec, trusted: bool = True, interval_s: float = 0.2
) -> AsyncIterator[Engine]:
    """An engine on the rented host, whose ssh_config is the test's."""
    if trusted:
        rented.laptop.trust(rented.sshd)

    def make_transport(spec: HostSpec, parts: EngineParts, ask: AskSecret | None) -> HostTransport:
        return rented.laptop.to(spec, ask_secret=ask)

    specs = {spec.name: spec for spec in (rented.laptop.spec(rented.sshd), *more)}
    wiring = Wiring(make_transport=make_transport, make_runs=lambda _parts: NoRuns())
    engine = Engine(rented.laptop.home, specs, wiring=wiring, interval_s=interval_s)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


async def until(condition: Callable[[], bool], limit_s: float = 20.0) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + limit_s
    while not condition():
        assert loop.time() < deadline_s, "it never came"
        await asyncio.sleep(0.01)


def box(engine: Engine, host: HostName = BOX) -> HostState:
    return engine.fleet.hosts[host]


def cards(engine: Engine) -> Sequence[GpuSample]:
    latest = box(engine).latest
    return latest.gpus if latest else ()


def latest(engine: Engine) -> HostSample:
    sample = box(engine).latest
    assert sample is not None
    return sample


async def is_live(engine: Engine, host: HostName = BOX) -> None:
    await until(lambda: box(engine, host).link == "live")


async def test_status_prints_eight_cards_with_their_numbers(rented: Rented) -> None:
    rented.laptop.trust(rented.sshd)
    rented.hosts_toml()
    status = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cockpit", "status", "--json", "--host", "box",
        env={**os.environ, "COCKPIT_HOME": str(rented.laptop.home.root)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(status.communicate(), 60)
    assert (status.returncode, err) == (0, b"")
    (line,) = out.splitlines()
    shown = json.loads(line)
    assert (shown["state"], shown["driver"], shown["price_per_h"]) == ("live", "550.54.14", 8.9)
    assert shown["fingerprint"] == rented.sshd.fingerprint
    assert [card["index"] for card in shown["gpus"]] == list(range(8))
    for card in shown["gpus"]:
        assert (card["util_pct"], card["mem_used_mib"], card["temp_c"]) == (97, 40_000, 64)
        assert (card["power_w"], card["throttle"]) == (655.5, ["power_cap"])
        assert [process["mem_used_mib"] for process in card["processes"]] == [39_000]
    assert shown["cpu_pct"] is not None and shown["mem_total_mib"] > 0


async def test_a_locked_key_is_unlocked_at_a_terminal_and_nowhere_else(rented: Rented) -> None:
    key = rented.laptop.identity.file
    asyncssh.read_private_key(key).write_private_key(key, passphrase="sesame")
    rented.laptop.trust(rented.sshd)
    rented.hosts_toml()
    home = str(rented.laptop.home.root)
    env = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    argv = ["-m", "cockpit", "status"]
    asked = pexpect.spawn(sys.executable, argv, env={**env, "COCKPIT_HOME": home}, timeout=30)
    await asyncio.to_thread(asked.expect, f"box: passphrase of .*{key.name}: ")
    asked.sendline("sesame")
    await asyncio.to_thread(asked.expect, "box:7 ")
    await asyncio.to_thread(asked.expect, pexpect.EOF)
    asked.close()
    assert asked.exitstatus == 0
    piped = await asyncio.create_subprocess_exec(
        sys.executable, *argv, env={**env, "COCKPIT_HOME": home},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(piped.communicate(), 60)
    assert piped.returncode == 69 and out.startswith(b"box    no access")


async def test_a_card_lost_in_mid_stream_shows_its_error_and_seven_go_on(rented: Rented) -> None:
    async with watched(rented) as engine:
        await is_live(engine)
        rented.driver.scenario.say("gpu 3 lost 0", "gpu 0 util 11")
        await until(lambda: cards(engine)[3].error is not None)
        assert cards(engine)[3].error_code == "gpu_lost"
        await until(lambda: cards(engine)[0].util_pct == 11)
        assert [card.index for card in cards(engine) if card.error is None] == [0, 1, 2, 4, 5, 6, 7]
        assert all(card.mem_used_mib == 40_000 for card in cards(engine) if card.error is None)
        assert box(engine).link == "live"


async def test_faults_of_cards_are_one_incident_each(rented: Rented) -> None:
    rented.driver.scenario.say("gpu 1 remap_failed 1", "gpu 2 ecc_uncorrected 4")
    async with watched(rented) as engine:
        await is_live(engine)
        engine.focus(BOX)
        await until(lambda: cards(engine)[2].ecc_uncorrected == 4)
        rented.driver.scenario.say("gpu 2 ecc_uncorrected 6", "gpu 3 lost 0", "gpu 3 xid 79 0")
        await until(lambda: len(engine.incidents.all()) >= 3, 60)
        told = {one.gpu or 0: one.finding for one in engine.incidents.all()}
    assert sorted(told) == [1, 2, 3]
    assert {card: (one.family, one.severity) for card, one in told.items()} == dict.fromkeys(
        (1, 2, 3), ("hardware", "fatal")
    )
    assert (told[1].signature, told[2].signature) == ("remap-failed", "ecc-uncorrected")
    assert told[2].facts["new_errors"] == 2 and told[3].cause == "gpu_lost"


async def test_a_driver_mismatch_is_degraded_with_live_cpu_and_ram(rented: Rented) -> None:
    rented.driver.scenario.write(["init 18", "gpus 8"])
    async with watched(rented) as engine:
        await until(lambda: box(engine).link == "degraded")
        state = box(engine)
        assert state.code == "driver_mismatch"
        assert "version mismatch" in str(state.why["words"])
        await until(lambda: latest(engine).cpu_pct is not None)
        seq = latest(engine).seq
        await until(lambda: latest(engine).seq > seq)
        assert latest(engine).mem_used_mib


async def test_a_killed_connection_comes_back_by_itself(rented: Rented) -> None:
    async with watched(rented) as engine:
        heard: list[Event] = []
        engine.subscribe(heard.append)
        await is_live(engine)
        rented.sshd.kill_connections()
        await until(lambda: box(engine).link == "unreachable")
        assert box(engine).code == "link_lost" and len(cards(engine)) == 8
        await is_live(engine)
        states = [event.after for event in heard if isinstance(event, LinkChanged)]
        assert states == ["live", "unreachable", "live"]


async def test_a_vanished_host_is_stale_and_then_lost_and_this_machine_goes_on(
    rented: Rented,
) -> None:
    async with watched(rented, HostSpec(HERE, local=True)) as engine:
        heard: list[LinkChanged] = []
        engine.subscribe(
            lambda event: heard.append(event) if isinstance(event, LinkChanged) else None
        )
        await is_live(engine)
        await until(lambda: box(engine, HERE).latest is not None)
        rented.sshd.kill_connections(signal.SIGSTOP)
        os.kill(rented.sshd.pid(), signal.SIGSTOP)
        last_s = box(engine).received_s or 0.0
        await until(lambda: box(engine).link == "stale")
        await until(lambda: box(engine).link == "unreachable")
        lost_s = engine.now_s()
        assert box(engine).code == "link_lost" and len(cards(engine)) == 8
        assert (box(engine, HERE).received_s or 0.0) > lost_s - 1.0
        assert lost_s - last_s <= 15.0
        states = [event.after for event in heard if event.host == BOX]
        assert states == ["live", "stale", "unreachable"]


async def test_a_killed_probe_is_started_again_on_the_same_connection(rented: Rented) -> None:
    async with watched(rented) as engine:
        await is_live(engine)
        connections = rented.sshd.children()
        (probe,) = probes_below(rented.sshd.pid())
        os.kill(probe, signal.SIGKILL)
        await until(lambda: (found := probes_below(rented.sshd.pid())) != [] and found != [probe])
        seq = latest(engine).seq
        await until(lambda: latest(engine).seq != seq)
        assert rented.sshd.children() == connections
        assert box(engine).link in ("live", "stale")


async def test_an_unknown_key_waits_for_the_person_and_their_trust(rented: Rented) -> None:
    async with watched(rented, trusted=False) as engine:
        await until(lambda: box(engine).link == "host_key")
        offered = box(engine).fingerprint
        assert (box(engine).code, offered) == ("host_key_unknown", rented.sshd.fingerprint)
        with pytest.raises(HostKeyChanged):
            await engine.trust(BOX, "SHA256:" + "A" * 43)
        assert box(engine).link == "host_key"
        await engine.trust(BOX, offered or "")
        await is_live(engine)


async def test_the_end_of_the_engine_ends_the_probe(rented: Rented) -> None:
    async with watched(rented) as engine:
        await is_live(engine)
        assert probes_below(rented.sshd.pid())
    await until(lambda: probes_below(rented.sshd.pid()) == [])


async def test_focus_doubles_the_pace_of_one_host(rented: Rented) -> None:
    async with watched(rented, interval_s=30.0) as engine:
        await is_live(engine)
        engine.focus(BOX)
        await until(lambda: latest(engine).interval_s == 0.5)
        seq = latest(engine).seq
        await until(lambda: latest(engine).seq >= seq + 2)


def probes_below(pid: int) -> list[int]:
    """Processes of the probe among the descendants of `pid`."""
    found = []
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        try:
            name = Path(f"/proc/{child}/comm").read_text().strip()
            found += [child] if name == "cockpit-probe" else []
            found += probes_below(child)
        except OSError:
            continue
    return found
