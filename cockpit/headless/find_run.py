"""From what a person types to one run: hosts are asked, since a run may be started elsewhere; so is the history.

A run whose whole id the history knows is asked for at its own host, and no other host is waited for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from cockpit.config.hosts import HostSpec
from cockpit.config.paths import Home
from cockpit.domain.gang import member_of
from cockpit.domain.models import HostName
from cockpit.domain.past_runs import PastRun, age_s
from cockpit.domain.runs import RunView
from cockpit.domain.units import duration_text
from cockpit.engine.engine import Engine
from cockpit.engine.host_list import hosts_to_watch
from cockpit.errors import CockpitError, HostUnreachable, RunUnknown
from cockpit.headless.past import remembered
from cockpit.headless.run_report import RunReport, words_for
from cockpit.headless.session import chosen_hosts, engine_for, runs_listed, runs_of


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that was meant. `failure` is why its host did not speak of it: the view is from the history then."""

    engine: Engine
    view: RunView
    failure: CockpitError | None = None


@asynccontextmanager
async def found_run(wanted: str) -> AsyncIterator[tuple[Engine, RunView]]:
    """The engine and the run, on a host that has it. Raises RunUnknown, or why the host cannot be asked."""
    async with looked_up(wanted) as found:
        if found.failure is not None:
            raise found.failure
        yield found.engine, found.view


@asynccontextmanager
async def looked_up(wanted: str) -> AsyncIterator[FoundRun]:
    """As `found_run`, and a run that is merely remembered too. Raises RunUnknown, or why it may be elsewhere."""
    home = Home.from_environ()
    past = await remembered(home)
    async with engine_for(home, _hosts_to_ask(home, wanted, past)) as engine:
        book = runs_of(engine).book
        failures = await runs_listed(engine, list(engine.hosts))
        told = {view.run for view in book.all()}
        book.remember(one.view for one in past)
        try:
            view = book.find(wanted)
        except RunUnknown as unknown:
            raise _better_reason(unknown, list(failures.values())) from None
        if view.run in told:
            yield FoundRun(engine, view)
        else:
            yield _from_history(engine, view, failures, past)


def rank_of(engine: Engine, view: RunView, rank: int) -> RunView:
    """Another rank of a run on several hosts, whichever of them was named. Raises RunUnknown."""
    member = member_of(view)
    count = 1 if member is None else len(member.ids)
    if rank >= count:
        raise RunUnknown("run_rank_unknown", run=view.run, rank=rank, count=count)
    return view if member is None else runs_of(engine).book.find(member.ids[rank])


def _hosts_to_ask(home: Home, wanted: str, past: Sequence[PastRun]) -> Mapping[HostName, HostSpec]:
    hosts = hosts_to_watch(home)
    if not hosts and past:
        return {}
    exact = next((one for one in past if one.run == wanted), None)
    if exact is not None and exact.host in hosts:
        member = member_of(exact.view)
        names = (exact.host,) if member is None else member.hosts
        return {name: hosts[name] for name in names if name in hosts}
    return chosen_hosts(home, ())


def _from_history(
    engine: Engine,
    view: RunView,
    failures: Mapping[HostName, CockpitError],
    past: Sequence[PastRun],
) -> FoundRun:
    if view.host in failures:
        return FoundRun(engine, view, failures[view.host])
    if view.host in engine.hosts:  # it was asked, and does not have it any more
        if not view.ended:
            view = replace(view, state="lost", reason="run_dir_gone")
        return FoundRun(engine, view, RunUnknown("run_gone_there", run=view.run, host=view.host))
    age = next((age_s(one, engine.wall_s()) for one in past if one.run == view.run), 0.0)
    facts = {"run": view.run, "host": view.host, "state": view.state, "age": duration_text(age)}
    return FoundRun(engine, view, HostUnreachable("run_host_gone", **facts))


async def say_it_is_remembered(found: FoundRun, report: RunReport) -> None:
    """Its host does not speak of it: that its end is known from before is said, and since when."""
    view, error = found.view, found.failure
    if error is None:
        return
    await report.say(words_for(error.code, error.facts))
    facts: dict[str, object] = {"run": view.run, "host": view.host}
    if view.ended_s is not None:
        facts["age"] = duration_text(max(0.0, found.engine.wall_s() - view.ended_s))
    await report.say(words_for("end_remembered", facts))


def _better_reason(unknown: RunUnknown, failures: list[CockpitError]) -> CockpitError:
    """When a host could not be asked, the run may well be there: that is the reason, not "unknown"."""
    if unknown.code == "run_unknown" and failures:
        return failures[0]
    return unknown
