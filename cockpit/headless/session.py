"""An engine for one command: only the hosts that it is about, waited for until they say what they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from cockpit.config.hosts import HostSpec, load_hosts
from cockpit.config.paths import Home
from cockpit.domain.models import HostName, LinkState
from cockpit.engine.engine import Engine
from cockpit.engine.fleet import HostState
from cockpit.engine.runs import Runs, full_runs
from cockpit.engine.wiring import Wiring
from cockpit.errors import (
    AuthenticationFailed,
    CockpitError,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    UsageError,
)

LINK_LIMIT_S = 30.0
LOOK_EVERY_S = 0.05
_SETTLED: frozenset[LinkState] = frozenset(
    {"live", "degraded", "stale", "unreachable", "auth_failed", "host_key"}
)


def chosen_hosts(home: Home, names: Sequence[str]) -> dict[HostName, HostSpec]:
    """The named hosts, or all of them when none is named. Raises UsageError for one that is not there."""
    hosts = load_hosts(home)
    if not hosts:
        raise UsageError("no_hosts", file=str(home.hosts_toml))
    for name in names:
        if name not in hosts:
            raise UsageError("host_unknown", host=name, known=tuple(hosts))
    return {HostName(name): hosts[HostName(name)] for name in names} if names else hosts


@asynccontextmanager
async def engine_for(home: Home, hosts: Mapping[HostName, HostSpec]) -> AsyncIterator[Engine]:
    """A started engine that can start jobs; closed at the end, and its runs go on."""
    engine = Engine(home, hosts, wiring=Wiring(make_runs=full_runs))
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


def runs_of(engine: Engine) -> Runs:
    """The service behind `full_runs`, for what only headless needs: a follower's own events."""
    service = engine.runs_service
    assert isinstance(service, Runs)
    return service


async def links_settled(
    engine: Engine, hosts: Iterable[HostName], limit_s: float = LINK_LIMIT_S
) -> None:
    """Return when every host has a first sample or a final state, or when the limit is over."""
    waiting = set(hosts)
    deadline_s = engine.now_s() + limit_s
    while waiting and engine.now_s() < deadline_s:
        waiting = {host for host in waiting if not _settled(engine.fleet.hosts[host])}
        if waiting:
            await asyncio.sleep(LOOK_EVERY_S)


def _settled(state: HostState) -> bool:
    return state.link in _SETTLED


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
        if state.link in ("unreachable", "auth_failed", "host_key"):
            return link_failure(state)
        if runs.failure is not None:
            return runs.failure
        if engine.now_s() >= deadline_s:
            return HostUnreachable(host=host, why="timeout")
        await asyncio.sleep(LOOK_EVERY_S)
    return None


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
