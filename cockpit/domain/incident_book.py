"""Findings become incidents here: one cause, one incident; repeats only count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cockpit.domain.incidents import Evidence, Finding, Incident
from cockpit.domain.models import HostName, RunId


class IncidentBook:
    """All incidents of a session under one version counter. Time comes in with every call."""

    def __init__(self) -> None:
        self.version = 0

    def take(
        self,
        finding: Finding,
        at_s: float,
        *,
        host: HostName | None = None,
        gpu: int | None = None,
        run: RunId | None = None,
        profile: str | None = None,
        evidence: Sequence[Evidence] = (),
    ) -> list[tuple[Incident, Incident | None]]:
        """Note a finding; returns (now, before) of each incident that a person should hear about."""
        return []

    def settle(
        self,
        key: str,
        state: Literal["recovered", "withdrawn", "closed"],
        at_s: float,
        why: str = "",
    ) -> tuple[Incident, Incident] | None:
        """The condition went away, or we were wrong; None when nothing changed."""
        return None

    def set_state(
        self, key: str, state: Literal["open", "seen", "applied", "closed"], why: str = ""
    ) -> None:
        """What a person decided."""

    def get(self, key: str) -> Incident | None:
        return None

    def all(self) -> Sequence[Incident]:
        """Sorted as a person should read them."""
        return ()
