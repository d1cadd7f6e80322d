"""What a host noted of a run, one thing after the other. A host is not trusted to keep to its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cockpit.domain.incidents import FactValue, Finding, Remedy
from cockpit.domain.text import safe_line

LOW, ROOM_AGAIN = "disk_low", "disk_ok"
LOW_SIGNATURE = "disk-low"
MAX_EVENTS = 256
_MAX_FACTS = 12
_NAME_CHARS = 40


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One of them: started, ended, restart_due, signal_sent, disk_low, hook_ended, adopted, …"""

    number: int
    """From 1, and never again; the host keeps the newest hundred or so."""
    name: str
    at_s: float
    """By the host's clock."""
    facts: Mapping[str, FactValue] = field(default_factory=dict)


def decode_events(told: object) -> tuple[RunEvent, ...]:
    """Those of an answer in their order; what is none is left out."""
    items = told[:MAX_EVENTS] if isinstance(told, list) else []
    found = {event.number: event for item in items if (event := _event(item)) is not None}
    return tuple(found[number] for number in sorted(found))


def _event(item: object) -> RunEvent | None:
    if not isinstance(item, dict):
        return None
    number, name, at_s = item.get("n"), item.get("event"), item.get("at_s")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 1 << 53:
        return None
    if not isinstance(name, str) or not isinstance(at_s, int | float) or not abs(at_s) < 1e12:
        return None
    facts: dict[str, FactValue] = {}
    for key, value in list(item.items())[: _MAX_FACTS + 3]:
        if key not in ("n", "event", "at_s") and isinstance(key, str) and key.isidentifier():
            if isinstance(value, str):
                facts[key[:_NAME_CHARS]] = safe_line(value)
            elif isinstance(value, bool | int | float) and abs(value) < 1e15:
                facts[key[:_NAME_CHARS]] = value
    return RunEvent(number, safe_line(name)[:_NAME_CHARS], float(at_s), facts)


def finding_of_event(event: RunEvent) -> Finding | None:
    """The incident that an event is, if it is one: a disk that is about to be full."""
    if event.name != LOW:
        return None
    names = {"path": "path", "free_mib": "free_mib", "total_mib": "total_mib"}
    return Finding(
        family="disk",
        signature=LOW_SIGNATURE,
        severity="warning",
        facts={name: event.facts[key] for key, name in names.items() if key in event.facts},
        cause="disk_low",
        remedies=(Remedy("free_disk"), Remedy("keep_few_checkpoints"), Remedy("other_volume")),
    )
