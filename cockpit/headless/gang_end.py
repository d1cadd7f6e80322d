"""How a run on several hosts came out: the code of the rank that failed first is the run's."""

from __future__ import annotations

import asyncio

from cockpit.domain.gang import member_of
from cockpit.domain.models import RunId
from cockpit.domain.runs import RunView
from cockpit.engine.bounds import within
from cockpit.engine.engine import Engine
from cockpit.errors import ExitCode
from cockpit.headless.run_report import RunReport, words_for
from cockpit.headless.session import runs_of

LIMIT_S = 120.0
"""For the others to be stopped: their ladder may take its time."""


async def verdict_on(engine: Engine, run: RunId) -> RunView | None:
    """The rank to blame; None for a run of one host, and for one that nobody spoilt."""
    try:
        return await within(LIMIT_S, runs_of(engine).verdict(run))
    except asyncio.TimeoutError:
        return None


async def gang_code(engine: Engine, run: RunId, code: int, report: RunReport) -> int:
    """`code` is rank 0's. Says who is to blame, if somebody is; the end of one that is lost is not known."""
    blamed = await verdict_on(engine, run)
    if blamed is None:
        return code
    member = member_of(blamed)
    facts = {
        "rank": member.rank if member is not None else None,
        "host": blamed.host,
        "run": blamed.run,
        "code": blamed.exit_status,
    }
    await report.say(words_for("gang_failed", facts))
    return ExitCode.NOT_NOW if blamed.exit_status is None else blamed.exit_status
