"""Edges: what happens seldom and is pushed to plain callables. Levels are pulled from the stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cockpit.domain.incidents import Incident
from cockpit.domain.models import HostName, LinkState, RunId
from cockpit.domain.run_events import RunEvent
from cockpit.domain.runs import RunView
from cockpit.errors import Fact


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """A host's link went from one state to another. `code` and the store's facts say why."""

    host: HostName
    before: LinkState
    after: LinkState
    code: str | None
    at_s: float


@dataclass(frozen=True, slots=True)
class HostRestarted:
    """The machine or its container started anew since we last saw it: what ran on it is gone."""

    host: HostName
    at_s: float


@dataclass(frozen=True, slots=True)
class RunChanged:
    """A run's state changed; `before` is None when it is new to us."""

    view: RunView
    before: RunView | None
    at_s: float


@dataclass(frozen=True, slots=True)
class IncidentChanged:
    """An incident opened, grew worse, recovered, was withdrawn, seen or closed."""

    incident: Incident
    before: Incident | None
    at_s: float


@dataclass(frozen=True, slots=True)
class LaunchStep:
    """One step of a launch that is under way: sending code, queued, started, first line."""

    run: RunId
    host: HostName
    code: str
    at_s: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class RunNoted:
    """A host noted something of a run: another attempt, a step of a stop, a disk that fills."""

    run: RunId
    host: HostName
    event: RunEvent
    at_s: float


@dataclass(frozen=True, slots=True)
class OwnTrouble:
    """Something of ours went wrong on this computer; cockpit goes on. Told once for each code."""

    code: str
    facts: Mapping[str, Fact]
    at_s: float


Event: TypeAlias = (
    LinkChanged | HostRestarted | RunChanged | IncidentChanged | LaunchStep | RunNoted | OwnTrouble
)
OnEvent: TypeAlias = Callable[[Event], None]


class EventBus:
    """Calls every listener in the order in which they came; one that raises does not stop the rest."""

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._listeners: list[OnEvent] = []
        self._on_error = on_error

    def subscribe(self, listener: OnEvent) -> Callable[[], None]:
        """Add a listener; the returned callable takes it off again."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def publish(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - a broken pane must not stop the engine
                self._on_error(error)
