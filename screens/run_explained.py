"""Every number of a run's header in words: what it is, where it is from, how old it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.domain.runs import RunView
from cockpit.domain.text import safe_line
from cockpit.domain.units import duration_text, mib_text
from cockpit.i18n import _
from cockpit.screens.run_facts import cards_of, facts_of
from cockpit.widgets.drawing import padded
from cockpit.widgets.run_words import since_text, state_word, step_text
from cockpit.widgets.text_pane import Para, code, heading

if TYPE_CHECKING:
    from cockpit.engine.api import EngineApi


def explain_run(engine: EngineApi, view: RunView) -> list[Para]:
    """Every number of the header: what it is and where it is from. For the help page."""
    state = engine.fleet.hosts.get(view.host)
    age = None if state is None else state.age_s(engine.now_s())
    read = _("not read yet") if age is None else _("read {age} ago").format(age=since_text(age))
    progress = view.progress
    cost = facts_of(engine, view, ()).cost or "n/a"
    held = _("held on its cards by anyone, {read}").format(read=read)
    rows = [
        (_("state"), state_word(view), _("from files on the host, never guessed from the link")),
        (_("step"), step_text(view) or "n/a", _("the newest that the log named")),
        (_("eta"), duration_text(progress.eta_s), _("as the log says it, else by the pace")),
        (_("loss"), _number(progress.loss), _("the newest in the log; its line is of this visit")),
        (_("s/step"), _number(progress.step_s), _("from the log")),
        (_("memory"), mib_text(_used(engine, view), width=0), held),
        (_("cost"), cost, _("the host's price by the run's time; the host costs on after it")),
    ]
    title = _("Run {run} on {host}").format(run=safe_line(view.run), host=safe_line(view.host))
    return [heading(title), *(_row(*row) for row in rows)]


def _row(name: str, value: str, words: str) -> Para:
    return code((padded(name, 10), "muted"), (padded(value, 16) + "  ", "text"), (words, "muted"))


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.4g}"


def _used(engine: EngineApi, view: RunView) -> int | None:
    used = [gpu.mem_used_mib for gpu in cards_of(engine, view) if gpu.mem_used_mib is not None]
    return sum(used) if used else None
