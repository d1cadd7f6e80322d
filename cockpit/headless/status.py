"""`cockpit status`: every host and card once, or again with every change; the screen's numbers without a screen."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Mapping, Sequence

from cockpit.config.hosts import HostSpec, host_unknown
from cockpit.config.paths import Home
from cockpit.domain.models import HostName, HostSample
from cockpit.engine.bounds import end
from cockpit.engine.engine import Engine
from cockpit.engine.fleet import HostState
from cockpit.engine.host_list import hosts_to_watch
from cockpit.engine.no_runs import NoRuns
from cockpit.engine.wiring import Wiring, reaching
from cockpit.errors import ExitCode, UsageError
from cockpit.headless.ask import ask_in_terminal
from cockpit.headless.status_report import Report
from cockpit.transport.base import AskSecret

WAIT_LIMIT_S = 10.0
LOOK_EVERY_S = 0.01
HURRY_AFTER_S = 0.05
"""A rate needs two readings: a host whose first sample has none is asked again this soon."""
WATCH_EVERY_S = 0.25
GOOD = ("live", "degraded")
FINAL = ("unreachable", "auth_failed", "host_key")


def main(args: argparse.Namespace) -> int:
    home = Home.from_environ()
    every_host = hosts_to_watch(home)
    hosts = chosen(every_host, args.host, home)
    report = Report(hosts, _say, as_json=args.json)
    ask = None if args.json else ask_in_terminal()
    wiring = Wiring(make_transport=reaching(every_host), make_runs=lambda _parts: NoRuns())
    return asyncio.run(status(home, hosts, report, watch=args.watch, ask_secret=ask, wiring=wiring))


def _say(line: str) -> None:
    print(line, flush=True)


def chosen(
    hosts: Mapping[HostName, HostSpec], names: Sequence[str], home: Home
) -> dict[HostName, HostSpec]:
    """The named hosts, or all. Raises UsageError for a name that is not there, and when there is no host at all."""
    for name in names:
        if name not in hosts:
            raise host_unknown(name, hosts)
    if not hosts:
        raise UsageError("no_hosts", file=str(home.hosts_toml))
    return {HostName(name): hosts[HostName(name)] for name in names} if names else dict(hosts)


async def status(
    home: Home,
    hosts: Mapping[HostName, HostSpec],
    report: Report,
    *,
    watch: bool = False,
    ask_secret: AskSecret | None = None,
    wiring: Wiring | None = None,
) -> int:
    """Print every host when each has answered or failed, and go on when `watch`; returns the exit code."""
    wiring = wiring or Wiring(make_runs=lambda _parts: NoRuns())
    engine = Engine(home, hosts, ask_secret=ask_secret, wiring=wiring)
    await engine.start()
    try:
        await answered(engine, WAIT_LIMIT_S)
        report.all(engine)
        if watch:
            await _watch(engine, report)
        good = all(state.link in GOOD for state in engine.fleet.hosts.values())
    finally:
        await engine.close()
    return int(ExitCode.OK if good else ExitCode.UNAVAILABLE)


async def _watch(engine: Engine, report: Report) -> None:
    """Until SIGINT or SIGTERM, at most four times a second."""
    async with interrupted() as stop:
        while not stop.is_set():
            await _pause(stop, WATCH_EVERY_S)
            report.changes(engine)


async def answered(engine: Engine, limit_s: float) -> None:
    """Return when every host has given a full sample or has failed, or when the limit is over.

    The limit does not run out while a person types a secret.
    """
    changed = asyncio.Event()
    unsubscribe = engine.subscribe(lambda _event: changed.set())
    deadline_s = engine.now_s() + limit_s
    hurried: set[HostName] = set()
    try:
        while not all(map(has_answered, engine.fleet.hosts.values())):
            now_s = engine.now_s()
            if engine.person is not None and engine.person.asked:
                deadline_s = now_s + limit_s
            if now_s >= deadline_s:
                return
            _hurry(engine, hurried, now_s)
            await _pause(changed, min(deadline_s - now_s, LOOK_EVERY_S))
            changed.clear()
    finally:
        unsubscribe()


def _hurry(engine: Engine, hurried: set[HostName], now_s: float) -> None:
    """Ask for the second sample of hosts that have given an incomplete first one."""
    for host, state in engine.fleet.hosts.items():
        age_s = state.age_s(now_s)
        if age_s is not None and age_s >= HURRY_AFTER_S and host not in hurried:
            hurried.add(host)
            if not has_answered(state):
                engine.probe_now((host,))


def has_answered(state: HostState) -> bool:
    if state.latest is None:
        return state.link in FINAL or state.link == "degraded"
    return is_full(state.latest)


def is_full(sample: HostSample) -> bool:
    """Every reading had its turn: rates need two readings, and a card that answers says who is on it.

    A host that cannot say something says so by its third sample.
    """
    read_all = all(gpu.processes_age_s is not None for gpu in sample.gpus if gpu.error is None)
    return sample.seq >= 2 or (sample.cpu_pct is not None and read_all)


async def _pause(event: asyncio.Event, seconds: float) -> None:
    """Sleep, or wake when the event comes."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiting}, timeout=seconds)
    finally:
        await end(waiting)


@contextlib.asynccontextmanager
async def interrupted() -> AsyncIterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set, instead of a traceback in mid-line."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
