"""Rules that keep incidents quiet: which kind, where, until when; and never one that has grown worse since."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cockpit.domain.incidents import SEVERITIES, Family, Finding, Incident, Severity
from cockpit.domain.models import HostName, RunId

Scope: TypeAlias = Literal["run", "card", "host", "everywhere"]

MOST_MUTES: Final = 200
HOUR_S: Final = 3600.0
DAY_S: Final = 86400.0
_ENDS_WITH_PID: Final = re.compile(r"-\d+$")


@dataclass(frozen=True, slots=True)
class Mute:
    """One rule. Without a place it holds everywhere; without an end until it is taken back."""

    family: Family
    signature: str
    severity: Severity
    """As it was when it was muted: what is worse is heard."""
    since_s: float
    until_s: float | None = None
    host: HostName | None = None
    gpu: int | None = None
    run: RunId | None = None
    why: str = ""

    @property
    def id(self) -> str:
        """A rule for the same kind at the same place takes the place of an older one."""
        if self.run is not None:
            place = f"run:{self.run}"
        elif self.host is not None:
            place = f"host:{self.host}" + ("" if self.gpu is None else f":{self.gpu}")
        else:
            place = "everywhere"
        return f"{place}/{self.family}/{self.signature}"

    @property
    def scope(self) -> Scope:
        if self.run is not None:
            return "run"
        if self.host is None:
            return "everywhere"
        return "host" if self.gpu is None else "card"

    def is_over(self, now_s: float) -> bool:
        return self.until_s is not None and now_s >= self.until_s

    def covers(self, incident: Incident, now_s: float) -> bool:
        if self.is_over(now_s) or kind_of(incident.finding) != (self.family, self.signature):
            return False
        if SEVERITIES.index(incident.severity) < SEVERITIES.index(self.severity):
            return False
        if self.run is not None:
            return incident.run == self.run
        if self.host is not None and incident.host != self.host:
            return False
        return self.gpu is None or incident.gpu == self.gpu


def kind_of(finding: Finding) -> tuple[Family, str]:
    """What is muted: never a number that is another one the next time."""
    name = finding.signature
    return finding.family, _ENDS_WITH_PID.sub("", name) if finding.family == "leak" else name


def scopes(incident: Incident) -> tuple[Scope, ...]:
    """Where a rule for this incident could hold, the narrowest first."""
    found: list[Scope] = []
    if incident.run is not None:
        found.append("run")
    if incident.host is not None and incident.gpu is not None:
        found.append("card")
    if incident.host is not None:
        found.append("host")
    return (*found, "everywhere")


def may_last(incident: Incident) -> bool:
    """A card that breaks is not muted for ever."""
    return not (incident.family == "hardware" and incident.severity == "fatal")


def mute_for(
    incident: Incident, scope: Scope, now_s: float, for_s: float | None, why: str = ""
) -> Mute:
    """The rule that keeps this incident, and those like it, quiet."""
    family, signature = kind_of(incident.finding)
    return Mute(
        family,
        signature,
        incident.severity,
        now_s,
        None if for_s is None else now_s + for_s,
        host=incident.host if scope in ("card", "host") else None,
        gpu=incident.gpu if scope == "card" else None,
        run=incident.run if scope == "run" else None,
        why=why,
    )


def mute_of(incident: Incident, mutes: Iterable[Mute], now_s: float) -> str:
    """The id of a rule that keeps it quiet; empty when there is none."""
    return next((one.id for one in mutes if one.covers(incident, now_s)), "")


def next_end_s(mutes: Iterable[Mute]) -> float:
    return min((one.until_s for one in mutes if one.until_s is not None), default=float("inf"))
