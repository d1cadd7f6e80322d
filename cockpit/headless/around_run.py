"""A run's end on this computer: its hooks and messages are waited for, and what went wrong with them is said."""

from __future__ import annotations

from cockpit.domain.models import RunId
from cockpit.engine.engine import Engine
from cockpit.headless.follow_run import or_leave
from cockpit.headless.run_report import RunReport, words_for
from cockpit.headless.session import runs_of
from cockpit.headless.step_talk import fetch_results
from cockpit.headless.wishes import Wishes

LIMIT_S = 70.0
"""A hook has a minute."""
_WORTH_SAYING = frozenset({"hook_failed", "notify_failed", "notify_missing"})


async def see_it_off(engine: Engine, run: RunId, report: RunReport, wishes: Wishes) -> None:
    """ctrl+c twice, or a terminal that goes away, does not wait for them."""
    await fetch_results(engine, run, report, wishes)
    told = len(engine.around(run).steps)
    if wishes.leave.is_set():
        return
    await or_leave(runs_of(engine).settled(run, LIMIT_S), wishes)
    for _at_s, code, text in engine.around(run).steps[told:]:
        if code in _WORTH_SAYING:
            await report.say(words_for(code, {"text": text}))
