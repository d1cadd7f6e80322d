"""What a host noted of a run, as a code and facts of a sentence; most of it goes without saying."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.domain.run_events import RunEvent
from cockpit.domain.runs import RunView
from cockpit.domain.units import duration_text, mib_text

_CODES = {
    "restart_due": "run_restart_due",
    "restart_given_up": "run_restart_given_up",
    "hook_timeout": "run_hook_timeout",
    "adopted": "run_adopted",
    "relaunched": "run_relaunched",
    "relaunch_failed": "run_relaunch_failed",
    "log_not_trimmed": "run_log_not_trimmed",
    "ends_at_logout": "run_ends_at_logout",
    "caches_moved": "run_caches_moved",
    "activation_failed": "run_activation_failed",
}
"""A disk that fills is told as an incident, a stop by its own report."""


def note_code(event: RunEvent) -> str | None:
    """The sentence that an event deserves, if any."""
    if event.name == "started" and _whole(event.facts.get("attempt")) > 1:
        return "run_started_again"
    if event.name == "hook_ended" and event.facts.get("hook") == "after":
        failed = event.facts.get("code") != 0
        return "run_hook_failed" if failed else None
    return _CODES.get(event.name)


def note_facts(event: RunEvent, view: RunView | None, last_end: str = "") -> Mapping[str, object]:
    """`last_end` says how the attempt before ended."""
    facts: dict[str, object] = dict(event.facts)
    attempt = _whole(facts.get("attempt"))
    facts["restart"] = attempt - 1 if attempt > 1 else None
    facts["ended"] = last_end or None
    if facts.get("code") is None and facts.get("signal") is not None:
        facts["code"] = 128 + _whole(facts["signal"])
    if view is not None:
        facts |= {"run": view.run, "host": view.host, "restarts": view.restarts}
    for name, of in (("in", "in_s"), ("limit", "limit_s")):
        seconds = facts.get(of)
        if isinstance(seconds, int | float):
            facts[name] = duration_text(seconds)
    for name in ("free", "total", "limit"):
        mib = facts.get(f"{name}_mib")
        if isinstance(mib, int | float):
            facts[name] = mib_text(mib)
    return facts


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
