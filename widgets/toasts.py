"""When an incident may speak up: once, when it is new, worse or over; storms become one line."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from cockpit.domain.incidents import Incident
from cockpit.engine.events import IncidentChanged

AT_ONCE = 3
LASTS_S = 8.0
FATAL_LASTS_S = 24 * 3600.0
"""A fatal toast stays until a key is pressed."""
STORM_WINDOW_S = 60.0
STORM_COUNT = 5

ToastKind = Literal["new", "worse", "recovered", "more", "storm"]


@dataclass(frozen=True, slots=True)
class ToastOrder:
    """One toast to show. `count` is how many incidents it stands for."""

    kind: ToastKind
    incident: Incident
    severity: Literal["information", "warning", "error"]
    lasts_s: float
    count: int = 1


class ToastRules:
    """Decides on each change, from its kind and from how much was said in the last minute."""

    def __init__(self) -> None:
        self._said_s: deque[float] = deque(maxlen=256)
        self._storm_said_s = -STORM_WINDOW_S

    def decide(self, change: IncidentChanged) -> ToastOrder | None:
        kind = _kind(change)
        if kind is None:
            return None
        now_s, incident = change.at_s, change.incident
        self._said_s.append(now_s)
        recent = sum(now_s - said_s < STORM_WINDOW_S for said_s in self._said_s)
        if recent > STORM_COUNT:
            return self._storm(incident, recent, now_s)
        close = sum(now_s - said_s < LASTS_S for said_s in self._said_s)
        if close > AT_ONCE:
            return ToastOrder("more", incident, "warning", LASTS_S, close - AT_ONCE)
        return ToastOrder(kind, incident, *_manner(kind, incident))

    def _storm(self, incident: Incident, recent: int, now_s: float) -> ToastOrder | None:
        if now_s - self._storm_said_s < STORM_WINDOW_S:
            return None
        self._storm_said_s = now_s
        return ToastOrder("storm", incident, "error", LASTS_S, recent)


def _kind(change: IncidentChanged) -> Literal["new", "worse", "recovered"] | None:
    now, before = change.incident, change.before
    if now.severity == "notice" or now.mute:
        return None
    if now.state in ("recovered", "withdrawn"):
        told = before is not None and before.severity == "fatal" and before.state != now.state
        return "recovered" if told else None
    if before is None:
        return "new" if now.state == "open" else None
    if now.severity == "fatal" and before.severity != "fatal":
        return "worse"
    return None


def _manner(
    kind: Literal["new", "worse", "recovered"], incident: Incident
) -> tuple[Literal["information", "warning", "error"], float]:
    if kind == "recovered":
        return "information", LASTS_S
    if incident.severity == "fatal":
        return "error", FATAL_LASTS_S
    return "warning", LASTS_S
