"""From what a person types to one run on one host: every host is asked, since a run may be started elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cockpit.config.paths import Home
from cockpit.domain.runs import RunView
from cockpit.engine.engine import Engine
from cockpit.errors import CockpitError, RunUnknown
from cockpit.headless.session import chosen_hosts, engine_for, runs_listed, runs_of


@asynccontextmanager
async def found_run(wanted: str) -> AsyncIterator[tuple[Engine, RunView]]:
    """The engine and the run. Raises RunUnknown, or why a host that may have it could not be asked."""
    home = Home.from_environ()
    async with engine_for(home, chosen_hosts(home, ())) as engine:
        failures = await runs_listed(engine, list(engine.hosts))
        try:
            view = runs_of(engine).book.find(wanted)
        except RunUnknown as unknown:
            raise _better_reason(unknown, list(failures.values())) from None
        yield engine, view


def _better_reason(unknown: RunUnknown, failures: list[CockpitError]) -> CockpitError:
    """When a host could not be asked, the run may well be there: that is the reason, not "unknown"."""
    if unknown.code == "run_unknown" and failures:
        return failures[0]
    return unknown
