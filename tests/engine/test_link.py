"""Each host's link on a virtual clock: states, silence, back-off, faults, and that no host touches another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from cockpit.domain.wire import Hello
from cockpit.engine.events import HostRestarted
from cockpit.engine.lines import LINE_LIMIT
from cockpit.engine.sampler import FAULT_LIMIT, LINES_BURST, LINES_PER_S, Cadence
from cockpit.errors import (
    AuthenticationFailed,
    CockpitError,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LinkLost,
    ProbeError,
    ProxyWithoutExec,
)
from tests.builders.clock import FakeClock, run_virtual
from tests.builders.links import FakeFleet, FakeHost, ProbeHost, settle
from tests.builders.samples import degraded_sample, gpu, host_facts, host_sample

Case = Callable[[FakeClock], Coroutine[Any, Any, None]]


def virtual(case: Case) -> Callable[[], None]:
    """Run a test on a virtual clock; a task that it leaves behind fails it."""

    @wraps(case)
    def run() -> None:
        run_virtual(case)

    del run.__wrapped__  # pytest would look for `clock` among its fixtures
    return run


async def sampled(fake: FakeHost, seconds: float, interval_s: float = 1.0) -> None:
    """The host's sampler ticks for `seconds`."""
    for seq in range(round(seconds / interval_s)):
        fake.sampler.push(host_sample(fake.name, seq=seq, interval_s=interval_s))
        await asyncio.sleep(interval_s)


@virtual
async def test_the_first_sample_makes_a_host_live(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        assert fleet.state().link == "connecting"
        fake.sampler.push(host_sample(gpus=8))
        await settle()
        state = fleet.state()
        assert (state.link, state.code, len(state.latest.gpus if state.latest else ())) == (
            "live",
            None,
            8,
        )
        assert (state.address, state.fingerprint) == ("192.0.2.1", "SHA256:known")
        assert fleet.link_states() == ["live"]


@virtual
async def test_a_host_without_nvml_is_degraded_in_the_drivers_words(clock: FakeClock) -> None:
    fake = FakeHost("a100")
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(degraded_sample())
        await settle()
        state = fleet.state("a100")
        assert (state.link, state.code) == ("degraded", "driver_mismatch")
        assert state.why["words"] == "Failed to initialize NVML: Driver/library version mismatch"
        assert state.latest is not None and state.latest.cpu_pct is not None
        fake.sampler.push(host_sample("a100"))
        await settle()
        assert (fleet.state("a100").link, fleet.state("a100").code) == ("live", None)


@virtual
async def test_without_python_the_nvidia_smi_stream_is_labelled(clock: FakeClock) -> None:
    fake = FakeHost(has_python=False)
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(host_sample(source="nvidia-smi"))
        await settle()
        assert (fleet.state().link, fleet.state().code) == ("degraded", "no_python")


@virtual
async def test_silence_is_stale_within_three_ticks_and_keeps_what_was_seen(
    clock: FakeClock,
) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        await sampled(fake, 5)
        assert fleet.state().link == "live"
        await asyncio.sleep(1.9)
        assert fleet.state().link == "live"
        await asyncio.sleep(0.11)
        state = fleet.state()
        assert (state.link, state.code) == ("stale", "no_sample")
        assert state.latest is not None and state.age_s(clock.now_s()) == pytest.approx(3.01)
        fake.sampler.push(host_sample(seq=9))
        await settle()
        assert fleet.link_states() == ["live", "stale", "live"]


@virtual
async def test_a_host_that_is_slow_by_habit_does_not_flicker(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        for seq in range(12):
            fake.sampler.push(host_sample(seq=seq, interval_s=1.0))
            await asyncio.sleep(4.0)
        assert fleet.link_states() == ["live", "stale", "live"]


@virtual
async def test_a_lost_link_is_said_at_once_and_comes_back(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        await sampled(fake, 3)
        fake.transport.lose("server not responding to keepalive")
        await settle()
        state = fleet.state()
        assert (state.link, state.code) == ("unreachable", "link_lost")
        assert state.why == {"why": "server not responding to keepalive"}
        assert state.latest is not None
        assert state.retry_at_s == pytest.approx(clock.now_s() + 1.0)
        await asyncio.sleep(1.01)
        fake.sampler.push(host_sample())
        await settle()
        assert (fleet.state().link, fleet.state().retry_at_s) == ("live", None)
        assert len(fake.transports) == 2 and fake.transports[0].closed


@virtual
async def test_tries_double_their_distance_up_to_a_minute(clock: FakeClock) -> None:
    fake = FakeHost(connect_errors=deque(HostUnreachable(why="refused") for _ in range(12)))
    async with FakeFleet(clock, fake, jitter=0.999) as fleet:
        await asyncio.sleep(400)
        assert (fleet.state().link, fleet.state().code) == ("unreachable", "unreachable")
        gaps = [b - a for a, b in zip(fake.attempts_s, fake.attempts_s[1:], strict=False)]
        assert gaps[:6] == pytest.approx([1, 2, 4, 8, 16, 32], rel=0.01)
        assert all(gap == pytest.approx(60, rel=0.01) for gap in gaps[6:10])
        assert fleet.link_states() == ["unreachable"]


@virtual
async def test_a_link_that_breaks_at_once_again_and_again_is_tried_ever_less(
    clock: FakeClock,
) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        for _ in range(5):
            fake.sampler.push(host_sample())
            await settle()
            fake.transport.lose()
            await settle()
            retry_at_s = fleet.state().retry_at_s
            assert retry_at_s is not None
            await asyncio.sleep(retry_at_s - clock.now_s() + 0.01)
        gaps = [b - a for a, b in zip(fake.attempts_s, fake.attempts_s[1:], strict=False)]
        assert gaps == sorted(gaps) and gaps[-1] >= 8


@pytest.mark.parametrize(
    ("error", "link", "code"),
    [
        (AuthenticationFailed(host="vast-a", user="root"), "auth_failed", "auth_failed"),
        (HostKeyUnknown(host="vast-a", fingerprint="SHA256:new"), "host_key", "host_key_unknown"),
        (ProxyWithoutExec(host="vast-a"), "unreachable", "proxy_no_exec"),
    ],
)
def test_what_only_a_person_can_change_is_not_tried_in_a_loop(
    error: CockpitError, link: str, code: str
) -> None:
    async def case(clock: FakeClock) -> None:
        fake = FakeHost(connect_errors=deque([error]))
        async with FakeFleet(clock, fake) as fleet:
            await asyncio.sleep(3600)
            state = fleet.state()
            assert (state.link, state.code, state.retry_at_s) == (link, code, None)
            assert len(fake.attempts_s) == 1
            fleet.links.probe_now()
            await settle()
            fake.sampler.push(host_sample())
            await settle()
            assert fleet.link_states() == [link, "connecting", "live"]

    run_virtual(case)


@virtual
async def test_a_changed_key_shows_both_fingerprints(clock: FakeClock) -> None:
    changed = HostKeyChanged(
        host="vast-a", known="SHA256:old", fingerprint="SHA256:new", key_type="ssh-ed25519"
    )
    fake = FakeHost(connect_errors=deque([changed]))
    async with FakeFleet(clock, fake) as fleet:
        state = fleet.state()
        assert (state.link, state.fingerprint, state.known_fingerprint) == (
            "host_key",
            "SHA256:new",
            "SHA256:old",
        )


@virtual
async def test_a_hung_host_delays_no_other(clock: FakeClock) -> None:
    hung, dead = FakeHost("hung", connect_hangs=True), FakeHost("dead", start_hangs=True)
    fine = FakeHost("fine")
    async with FakeFleet(clock, hung, dead, fine) as fleet:
        await sampled(fine, 10)
        assert fleet.state("fine").link == "live"
        assert len(fleet.samples) == 10
        assert fleet.state("hung").link == "connecting"
        await asyncio.sleep(120)
        assert (fleet.state("hung").link, fleet.state("hung").why) == (
            "unreachable",
            {"why": "timeout"},
        )
        assert (fleet.state("dead").link, fleet.state("dead").code) == ("unreachable", "link_lost")


@virtual
async def test_no_limit_runs_out_while_a_person_types_a_password(clock: FakeClock) -> None:
    fake = FakeHost(connect_hangs=True)
    async with FakeFleet(clock, fake) as fleet:
        fleet.asking.add(fake.spec.name)
        await asyncio.sleep(600)
        assert fleet.state().link == "connecting"
        fleet.asking.clear()
        await asyncio.sleep(130)
        assert fleet.state().link == "unreachable"


@virtual
async def test_a_dead_sampler_is_replaced_on_the_same_connection(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        await sampled(fake, 40)
        fake.sampler.die()
        await asyncio.sleep(1.1)
        fake.sampler.push(host_sample())
        await settle()
        assert (len(fake.samplers), len(fake.transports)) == (2, 1)
        assert fake.samplers[0].closed
        assert fleet.link_states() == ["live"]


@virtual
async def test_a_sampler_that_keeps_dying_is_degraded_with_its_last_words(
    clock: FakeClock,
) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        for _ in range(3):
            fake.sampler.die("Segmentation fault")
            await asyncio.sleep(4.1)
        state = fleet.state()
        assert (state.link, state.code) == ("degraded", "probe_died")
        assert state.why == {"words": "Segmentation fault"}
        assert len(fake.transports) == 1


@virtual
async def test_a_sampler_that_cannot_start_is_tried_again(clock: FakeClock) -> None:
    fake = FakeHost(start_errors=deque([ProbeError(words="no space left")] * 3))
    async with FakeFleet(clock, fake) as fleet:
        await asyncio.sleep(3.5)
        assert fleet.state().why == {"words": "no space left"}
        await asyncio.sleep(4)
        fake.sampler.push(host_sample())
        await settle()
        assert fleet.state().link == "live"


@virtual
async def test_a_silent_sampler_is_replaced_where_the_host_answers(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        await sampled(fake, 3)
        fake.sampler.close_hangs = True
        await asyncio.sleep(9)
        assert (len(fake.samplers), len(fake.transports)) == (2, 1)
        assert fleet.state().link == "stale"
        fake.sampler.push(host_sample())
        await settle()
        assert fleet.state().link == "live"


@virtual
async def test_a_vanished_host_is_lost_within_15_s_of_its_last_sample(clock: FakeClock) -> None:
    fake, other = FakeHost(), FakeHost("other")
    async with FakeFleet(clock, fake, other) as fleet:
        fake.sampler.push(host_sample())
        await sampled(other, 1)
        fake.sampler.close_hangs = fake.start_hangs = fake.connect_hangs = True
        await sampled(other, 13)
        assert (fleet.state().link, fleet.state().code) == ("unreachable", "link_lost")
        assert fleet.state("other").link == "live"


@virtual
async def test_a_driver_that_takes_its_time_to_open_is_not_taken_for_hung(
    clock: FakeClock,
) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(Hello(host_facts()))
        await asyncio.sleep(24)
        fake.sampler.push(host_sample())
        await settle()
        assert (fleet.state().link, len(fake.samplers)) == ("live", 1)


@virtual
async def test_a_line_without_an_end_costs_the_link(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(*[b"x" * 65536] * (LINE_LIMIT // 65536 + 1))
        await settle(60)
        state = fleet.state()
        assert (state.link, state.code) == ("unreachable", "protocol")
        assert state.why == {"why": "line_too_long"}
        assert state.retry_at_s is not None and fake.transport.closed


@virtual
async def test_garbage_is_counted_and_then_costs_the_link(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(*[b"garbage\n"] * (FAULT_LIMIT - 1))
        fake.sampler.push(host_sample())
        await settle(200)
        assert (fleet.state().link, fleet.state().faults) == ("live", FAULT_LIMIT - 1)
        fake.sampler.push(b"more\n" * FAULT_LIMIT)
        await settle()
        assert (fleet.state().link, fleet.state().code) == ("unreachable", "protocol")
        assert fleet.state().why == {"why": "not_samples", "words": "more"}


BOMBS = {
    "deep nesting": b"[" * 200_000,
    "deep objects": b'{"k":' * 50_000,
    "a huge number": b'{"k":"sample","seq":' + b"9" * 100_000 + b"}",
    "infinity": b'{"k":"sample","seq":1,"at":Infinity}',
    "another type": b'{"k":"sample","seq":"x","at":[],"gpus":7,"host":[1]}',
    "not utf-8": b"\xff\xfe" * 1000,
    "no object": b'["sample"]',
    "zeros": b"\0" * 65_536,
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_costs_its_host_and_nothing_else(bomb: bytes) -> None:
    async def case(clock: FakeClock) -> None:
        fake, fine = ProbeHost(), FakeHost("fine")
        async with FakeFleet(clock, fake, fine) as fleet:
            fake.sampler.push(*[bomb + b"\n"] * FAULT_LIMIT)
            await sampled(fine, 20)
            assert (fleet.state().link, fleet.state().code) == ("unreachable", "protocol")
            assert fleet.state().faults == FAULT_LIMIT
            assert fleet.state("fine").link == "live"

    run_virtual(case)


@virtual
async def test_a_flood_of_samples_is_read_at_a_walk(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(*[host_sample(seq=seq) for seq in range(2000)])
        await asyncio.sleep(10)
        assert LINES_BURST < len(fleet.samples) <= LINES_BURST + 10 * LINES_PER_S + 1


@virtual
async def test_a_surprise_ends_one_try_of_one_host(clock: FakeClock) -> None:
    fake, fine = FakeHost(connect_errors=deque([ZeroDivisionError()])), FakeHost("fine")
    async with FakeFleet(clock, fake, fine) as fleet:
        assert (fleet.state().link, fleet.state().code) == ("unreachable", "internal")
        fine.sampler.push(host_sample("fine"))
        await asyncio.sleep(1.1)
        assert fleet.state("fine").link == "live"
        assert len(fake.attempts_s) == 2


@virtual
async def test_the_focused_host_is_sampled_twice_a_second(clock: FakeClock) -> None:
    fake, other = FakeHost(), FakeHost("other")
    async with FakeFleet(clock, fake, other) as fleet:
        fleet.links.focus(fake.spec.name)
        await settle()
        fleet.links.set_interval(100.0)
        await settle()
        fleet.links.focus(None)
        await settle()
        fleet.links.probe_now()
        await settle()
        assert fake.sampler.told == [
            (Cadence(1.0), False),
            (Cadence(0.5, focused=True), False),
            (Cadence(60.0), False),
            (Cadence(60.0), True),
        ]
        assert other.sampler.told == [
            (Cadence(1.0), False),
            (Cadence(60.0), False),
            (Cadence(60.0), True),
        ]


@virtual
async def test_a_slower_cadence_does_not_look_like_silence(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        await sampled(fake, 3)
        fleet.links.set_interval(30)
        for seq in range(3):
            await asyncio.sleep(30)
            fake.sampler.push(host_sample(seq=seq, interval_s=30.0))
        fleet.links.set_interval(1)
        await asyncio.sleep(1)
        assert fleet.link_states() == ["live"]
        assert len(fake.samplers) == 1


@virtual
async def test_a_restarted_machine_is_noticed(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(Hello(host_facts()))
        await settle()
        fake.transport.lose()
        await asyncio.sleep(2)
        fake.sampler.push(Hello(host_facts(incarnation="boot-2/100")))
        await settle()
        restarts = [event for event in fleet.events if isinstance(event, HostRestarted)]
        assert [event.host for event in restarts] == ["vast-a"]


@virtual
async def test_after_a_sleep_of_this_computer_every_link_is_doubted(clock: FakeClock) -> None:
    alive, dead = FakeHost("alive"), FakeHost("dead")
    down = FakeHost("down", connect_errors=deque(HostUnreachable(why="refused") for _ in range(5)))
    async with FakeFleet(clock, alive, dead, down) as fleet:
        await asyncio.sleep(15.5)
        for fake in (alive, dead):
            fake.sampler.push(host_sample(fake.name))
        await settle()
        attempts = len(down.attempts_s)
        dead.start_hangs = True
        clock.wall_offset_s += 3600
        await asyncio.sleep(1.01)
        assert len(down.attempts_s) == attempts + 1
        assert (len(alive.samplers), len(alive.transports)) == (2, 1)
        await asyncio.sleep(4)
        assert (fleet.state("dead").link, fleet.state("dead").code) == ("unreachable", "link_lost")


@virtual
async def test_close_is_bounded_whatever_a_host_does(clock: FakeClock) -> None:
    hosts = [FakeHost(f"h{n}", close_hangs=True) for n in range(20)]
    async with FakeFleet(clock, *hosts):
        for fake in hosts:
            fake.sampler.close_hangs = True
        began_s = clock.now_s()
    assert clock.now_s() - began_s <= 4.0


@virtual
async def test_disconnect_says_so_and_connect_comes_back(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(host_sample())
        await settle()
        fleet.links.disconnect(fake.spec.name)
        await asyncio.sleep(100)
        assert (fleet.state().link, fleet.state().code) == ("unreachable", "disconnected")
        assert fake.transport.closed and len(fake.transports) == 1
        fleet.links.probe_now((fake.spec.name,))
        await settle()
        fake.sampler.push(host_sample())
        await settle()
        assert fleet.state().link == "live"


@virtual
async def test_a_new_list_of_hosts_keeps_the_links_that_did_not_change(clock: FakeClock) -> None:
    kept, gone = FakeHost("kept"), FakeHost("gone")
    async with FakeFleet(clock, kept, gone) as fleet:
        new = FakeHost("new")
        fleet.fakes[new.spec.name] = new
        await fleet.links.set_hosts([kept.spec, new.spec])
        await settle()
        assert list(fleet.store.hosts) == ["kept", "new"]
        assert (len(kept.transports), len(new.transports)) == (1, 1)
        assert gone.transport.closed


@virtual
async def test_a_channel_that_reports_the_loss_first_ends_the_link_too(clock: FakeClock) -> None:
    fake = FakeHost()
    async with FakeFleet(clock, fake) as fleet:
        fake.sampler.push(host_sample(gpus=[gpu(0), gpu(1)]))
        fake.sampler.fail(LinkLost(host="vast-a", why="broken pipe"))
        await settle()
        assert (fleet.state().link, fleet.state().code) == ("unreachable", "link_lost")
