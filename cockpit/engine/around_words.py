"""What is said around a run: facts for its hooks, words for its messages, and what is news at all. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.domain.budget import Limits
from cockpit.domain.incident_book import OPEN_STATES
from cockpit.domain.incidents import SEVERITIES
from cockpit.domain.runs import RunView
from cockpit.engine.events import IncidentChanged
from cockpit.engine.hooks import HookEnd
from cockpit.engine.notify import Kind, Message
from cockpit.i18n.messages import explain

if TYPE_CHECKING:
    from cockpit.config.profile import Profile


def end_message(view: RunView, spent: str | None) -> Message:
    """What is told when a run has ended."""
    facts = {"profile": view.profile, "host": view.host, "code": view.code, "signal": view.signal}
    code = "run_not_known"
    if view.code is not None:
        code = "run_exited"
    elif view.signal is not None:
        code = "run_signalled"
    lines = [str(view.run)]
    reason = "stopped" if view.by == "cockpit" else view.reason
    if reason not in (None, "exited", "signal"):
        lines.append(explain(reason or "", facts).headline)
    if spent is not None:
        lines.append(spent)
    kind: Kind = "success" if view.code == 0 or view.by == "cockpit" else "failure"
    return Message(explain(code, facts).headline, "\n".join(lines), kind)


def limits_of(profile: Profile) -> Limits:
    budget = profile.budget
    if budget is None:
        return Limits()
    money = budget.max_cost
    return Limits(
        max_cost=None if money is None else money.amount,
        currency=None if money is None else money.currency,
        max_hours=budget.max_hours,
        stops=budget.action == "stop",
    )


def is_news(event: IncidentChanged) -> bool:
    """It opened, or grew worse; of notices only money's is worth a message."""
    incident, before = event.incident, event.before
    if incident.state not in OPEN_STATES or incident.mute:
        return False
    if incident.severity == "notice" and incident.family != "cost":
        return False
    if before is None or before.state not in OPEN_STATES:
        return True
    return SEVERITIES.index(incident.severity) < SEVERITIES.index(before.severity)


def facts_of(view: RunView) -> dict[str, object]:
    return {
        "run": view.run,
        "host": view.host,
        "profile": view.profile,
        "kind": view.kind,
        "state": view.state,
        "exit_code": view.exit_status,
        "signal": view.signal,
        "reason": view.reason,
        "gpus": ",".join(map(str, view.gpus)),
        "family": "",
        "severity": "",
        "summary": "",
    }


def hook_words(name: str, ended: HookEnd) -> str:
    number = "" if ended.number is None else f" {ended.number}"
    return f"{name}: {ended.why.replace('_', ' ')}{number}" + (
        f", {ended.said}" if ended.said else ""
    )
