"""An engine for one command: only the hosts that it is about, waited for until they say what they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from cockpit.config.hosts import HostSpec, host_unknown, load_hosts
from cockpit.config.paths import Home
from cockpit.domain.models import HostName, LinkState
from cockpit.engine.engine import Engine
from cockpit.engine.fleet import HostState
from cockpit.engine.host_list import hosts_to_watch
from cockpit.engine.runs import Runs, full_runs
from cockpit.engine.services import RunsService
from cockpit.engine.wiring import EngineParts, Wiring, flight_recorder, reaching
from cockpit.errors import (
    AuthenticationFailed,
    CockpitError,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    UsageError,
)
from cockpit.headless.ask import ask_in_terminal

LINK_LIMIT_S = 30.0
LOOK_EVERY_S = 0.02
_FINAL: frozenset[LinkState] = frozenset({"unreachable", "auth_failed", "host_key"})
_USABLE: frozenset[LinkState] = frozenset({"live", "degraded", "stale"})


def chosen_hosts(home: Home, names: Sequence[str]) -> dict[HostName, HostSpec]:
    """The named hosts, or all of them when none is named. Raises UsageError for one that is not there."""
    hosts = hosts_to_watch(home)
    if not hosts:
        raise UsageError("no_hosts", file=str(home.hosts_toml))
    for name in names:
        if name not in hosts:
            raise host_unknown(name, hosts)
    return {HostName(name): hosts[HostName(name)] for name in names} if names else hosts


@asynccontextmanager
async def engine_for(
    home: Home, hosts: Mapping[HostName, HostSpec], *, asks: bool = True, records: bool = False
) -> AsyncIterator[Engine]:
    """A started engine that can start jobs and follows those that it is asked for; closed at the end, and
    its runs go on. `asks`: a person at the terminal may be asked for a passphrase. `records`: the flight
    recorder is on.
    """
    ask = ask_in_terminal() if asks else None
    engine = Engine(home, hosts, ask_secret=ask, wiring=_wiring(load_hosts(home), records))
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


def _wiring(every_host: Mapping[HostName, HostSpec], records: bool) -> Wiring:
    def runs(parts: EngineParts) -> RunsService:
        return full_runs(parts, follow_live=False)

    return Wiring(
        make_transport=reaching(every_host),
        make_runs=runs,
        make_recorder=flight_recorder if records else None,
    )


def runs_of(engine: Engine) -> Runs:
    """The service behind `full_runs`, for what only headless needs: a follower's own events."""
    service = engine.runs_service
    assert isinstance(service, Runs)
    return service


async def link_settled(
    engine: Engine, host: HostName, *, for_cards: bool, limit_s: float = LINK_LIMIT_S
) -> None:
    """Return when a host can be used or has failed, or when the limit is over. Its cards need a sample."""
    deadline_s = engine.now_s() + limit_s
    while engine.now_s() < deadline_s:
        state = engine.fleet.hosts[host]
        if state.link in _USABLE or state.link in _FINAL:
            return
        if not for_cards and runs_of(engine).is_up(host):
            return
        if _is_asking(engine):
            deadline_s = engine.now_s() + limit_s
        await asyncio.sleep(LOOK_EVERY_S)


async def runs_listed(
    engine: Engine, hosts: Iterable[HostName], limit_s: float = LINK_LIMIT_S
) -> dict[HostName, CockpitError]:
    """Wait until every host has said which runs it has; returns what kept the others from it."""
    names = list(hosts)
    waits = [_listed(engine, host, limit_s) for host in names]
    failures = await asyncio.gather(*waits)
    return {
        host: failure for host, failure in zip(names, failures, strict=True) if failure is not None
    }


async def _listed(engine: Engine, host: HostName, limit_s: float) -> CockpitError | None:
    deadline_s = engine.now_s() + limit_s
    runs = runs_of(engine).of_host(host)
    while not runs.listed.is_set():
        state = engine.fleet.hosts[host]
        if state.link in _FINAL:
            return link_failure(state)
        if runs.failure is not None:
            return runs.failure
        if _is_asking(engine):
            deadline_s = engine.now_s() + limit_s
        if engine.now_s() >= deadline_s:
            return HostUnreachable(host=host, why="timeout")
        await asyncio.sleep(LOOK_EVERY_S)
    return None


def _is_asking(engine: Engine) -> bool:
    return engine.person is not None and bool(engine.person.asked)


def link_failure(state: HostState) -> CockpitError:
    """The error that a link's state is, with the exit code that belongs to it."""
    facts = {key: value for key, value in state.why.items() if key != "host"}
    code = state.code or ""
    if state.link == "auth_failed":
        return AuthenticationFailed(code, host=state.host, **facts)
    if state.link == "host_key":
        kind = HostKeyChanged if code == "host_key_changed" else HostKeyUnknown
        return kind(code, host=state.host, **facts)
    return HostUnreachable(code, host=state.host, **facts)
