"""New logins are tried beside an open connection, and their failure is told before the link breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import wraps
from typing import Any

from cockpit.domain.models import HostName
from cockpit.engine.door import INTERVAL_S, report_door
from cockpit.engine.events import EventBus
from cockpit.engine.incident_desk import IncidentDesk
from cockpit.errors import AuthenticationFailed, CockpitError, HostKeyChanged, HostUnreachable
from tests.builders.clock import FakeClock, run_virtual
from tests.builders.links import FakeFleet, FakeHost, settle
from tests.builders.samples import host_sample

ROUND_S = INTERVAL_S + 1.0
Case = Callable[[FakeClock], Coroutine[Any, Any, None]]


def virtual(case: Case) -> Callable[[], None]:
    @wraps(case)
    def run() -> None:
        run_virtual(case)

    del run.__wrapped__
    return run


class Guarded(FakeFleet):
    """A fleet whose links try the door."""

    def __init__(self, clock: FakeClock, fake: FakeHost, *, asked: bool = False) -> None:
        super().__init__(clock, fake)
        self.told: list[str | None] = []
        self.parts = replace(
            self.parts,
            make_quiet_transport=self.parts.make_transport,
            was_asked=lambda _host: asked,
            on_door=lambda _host, failure: self.told.append(failure.code if failure else None),
        )
        self.links = type(self.links)(self.parts)

    async def __aenter__(self) -> Guarded:
        await super().__aenter__()
        return self

    async def rounds(self, fake: FakeHost, *answers: CockpitError | None) -> None:
        """One try after the other; None lets us in."""
        for answer in answers:
            if answer is not None:
                fake.connect_errors.append(answer)
            tries = len(fake.transports)
            await asyncio.sleep(ROUND_S)
            await settle()
            assert len(fake.transports) == tries + 1


@virtual
async def test_a_key_that_is_refused_by_now_is_told_while_the_link_lives(clock: FakeClock) -> None:
    fake = FakeHost()
    async with Guarded(clock, fake) as fleet:
        fake.sampler.push(host_sample())
        await settle()
        first = fake.transport
        await fleet.rounds(fake, None, AuthenticationFailed(host="vast-a"), None)
        assert fleet.told == [None, "auth_failed", None]
        assert first.connected and all(each.closed for each in fake.transports[1:])


@virtual
async def test_another_key_is_told_and_one_silent_moment_is_not(clock: FakeClock) -> None:
    fake = FakeHost()
    async with Guarded(clock, fake) as fleet:
        silent = HostUnreachable(host="vast-a", why="refused")
        await fleet.rounds(fake, silent, None, silent, silent, HostKeyChanged(host="vast-a"))
        assert fleet.told == [None, "unreachable", "host_key_changed"]


@virtual
async def test_a_login_that_takes_a_person_is_not_judged_by_a_try_without_one(
    clock: FakeClock,
) -> None:
    fake = FakeHost()
    async with Guarded(clock, fake, asked=True) as fleet:
        await fleet.rounds(fake, AuthenticationFailed(host="vast-a"))
        assert fleet.told == []


@virtual
async def test_nothing_is_tried_when_there_is_no_connection(clock: FakeClock) -> None:
    fake = FakeHost()
    async with Guarded(clock, fake) as fleet:
        fleet.links.disconnect(HostName("vast-a"))
        tries = len(fake.transports)
        await asyncio.sleep(3 * ROUND_S)
        assert len(fake.transports) == tries and fleet.told == []


@virtual
async def test_it_is_one_incident_that_recovers(clock: FakeClock) -> None:
    desk = IncidentDesk(EventBus(lambda error: None), clock)
    host = HostName("vast-a")
    for failure in (AuthenticationFailed(host=host), AuthenticationFailed(host=host)):
        report_door(desk, host, failure)
    (incident,) = desk.all()
    assert (incident.finding.family, incident.finding.cause) == ("env", "door_key_refused")
    assert (incident.state, incident.host) == ("open", host)
    report_door(desk, host, None)
    assert [incident.state for incident in desk.all()] == ["recovered"]
