"""What the front ends may ask about incidents: those of the session, earlier ones, their evidence, what is muted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from cockpit.domain.incidents import Incident, Remedy
from cockpit.domain.models import HostName, RunId
from cockpit.domain.mutes import Mute

if TYPE_CHECKING:
    from cockpit.engine.api import LogLine


MendNote: TypeAlias = Literal["", "edited", "gone", "nothing"]
"""The profile's file was edited since the run started; the remedy no longer is one for the profile; there is none."""


@dataclass(frozen=True, slots=True)
class Mend:
    """What applying an incident's first profile change comes to."""

    remedy: Remedy | None
    overrides: tuple[str, ...] = ()
    """The change as `--set` strings."""
    before: Mapping[str, object] = field(default_factory=dict)
    """The profile as the run had it, `--set` included."""
    hosts: tuple[HostName, ...] = ()
    gpus: tuple[int, ...] | None = None
    again: RunId | None = None
    """The run whose profile text of then is used; None: the profile's file as it is now."""
    note: MendNote = ""


class IncidentStore(Protocol):
    """Every incident of this session, under one version counter."""

    @property
    def version(self) -> int: ...

    def all(self) -> Sequence[Incident]:
        """Sorted as a person should read them: fatal open, warning open, seen, the rest."""

    def get(self, key: str) -> Incident | None: ...

    def set_state(
        self, key: str, state: Literal["open", "seen", "applied", "closed"], why: str = ""
    ) -> None: ...


class IncidentsApi(Protocol):
    """The part of EngineApi that is about incidents."""

    @property
    def incidents(self) -> IncidentStore: ...

    async def earlier_incidents(self, limit: int = 300) -> Sequence[Incident]:
        """Of this session and of earlier ones, of every run and host, the newest first."""

    async def log_context(
        self, incident: Incident, offset: int, before: int = 3, after: int = 2
    ) -> Sequence[LogLine]:
        """Lines of its run's log around a byte; nothing where they are not to be had. Raises nothing."""

    async def masked_text(self, incident: Incident, text: str) -> str:
        """The text without the secrets of its run."""

    @property
    def mutes(self) -> Sequence[Mute]:
        """The rules that keep incidents quiet, the newest first."""

    async def mute(self, mute: Mute) -> bool:
        """Keep incidents like this quiet; False when the rule could not be written and holds for this session."""

    async def unmute(self, mute_id: str) -> bool:
        """Take a rule back; False when the file keeps it."""

    async def mend(self, incident: Incident) -> Mend:
        """Its first remedy that changes the profile, with the profile as the run had it.

        Raises ProfileError, UsageError, RunUnknown, StorageError.
        """

    async def refresh_mutes(self) -> None:
        """Learn what other cockpits of this computer muted since."""
