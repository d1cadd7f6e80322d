"""An agent's refusals as errors of ours. The host chooses among codes that we know, and no others."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.domain.models import HostName
from cockpit.domain.text import safe_line
from cockpit.errors import CockpitError, Fact, LaunchFailed, NotNow, RunError, RunUnknown

_MAX_FACTS = 16
_KNOWN = frozenset(
    {
        "bad_request", "bad_spec", "disk_full", "io", "locked", "no_cwd", "no_environment", "no_inodes", "no_session",
        "not_alive", "not_started", "not_yours", "run_root", "start_slow", "supervisor_failed", "too_few_cards",
        "too_many_tails", "unsafe_folder",
    }
)  # fmt: skip

_OWN_CODES = frozenset({"bad_pattern", "pattern_too_slow", "search_replaced", "too_many_searches"})
"""They have sentences of their own."""


def refusal(op: str, host: HostName, answer: Mapping[str, object]) -> CockpitError:
    """The error that an answer's `error` and `facts` stand for."""
    code = answer.get("error")
    facts: dict[str, Fact] = {**_facts(answer.get("facts")), "host": host}
    if code == "unknown_run":
        return RunUnknown(**facts)
    if code == "no_free_gpu":
        return NotNow(**facts)
    if isinstance(code, str) and code in _OWN_CODES:
        return RunError(code, **facts)
    if code == "no_grep":
        return RunError("search_needs_grep", **facts)
    known = code if isinstance(code, str) and code in _KNOWN else "unknown"
    facts["detail"] = facts.get("why")
    facts["why"] = known
    return LaunchFailed(**facts) if op in ("start", "restart") else RunError(**{**facts, "op": op})


def _facts(told: object) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for key, value in list(told.items())[:_MAX_FACTS] if isinstance(told, dict) else []:
        if isinstance(key, str) and key.isidentifier():
            facts[safe_line(key)[:40]] = _fact(value)
    return facts


def _fact(value: object) -> Fact:
    if isinstance(value, str):
        return safe_line(value)
    return value if value is None or isinstance(value, bool | int | float) else None
