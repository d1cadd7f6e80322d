"""Runs as they are remembered here, and what is needed to start one of them again."""

from __future__ import annotations

from dataclasses import dataclass, field

from cockpit.domain.models import HostName, RunId
from cockpit.domain.runs import RunView


@dataclass(frozen=True, slots=True)
class Origin:
    """What a run was started from on this computer. Secrets and addresses with tokens are not in it."""

    text: str = field(repr=False)
    """The profile's TOML as it was then, less its [notify] table."""
    name: str
    """The profile file's own name, which is the run's where the text says none."""
    file: str | None = None
    """Where the text came from; it may have changed since."""
    base_dir: str | None = None
    """What relative paths of the profile started from."""
    overrides: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    gpus: tuple[int, ...] | None = None
    sha256: str = ""
    """Of the whole text, as it was before anything was left out."""
    notified: bool = False
    """The profile told somebody by [notify]; whom is not kept."""
    masked: bool = False
    """A secret's value stood in the profile and is stars here: it cannot be started again from this."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run as it was when a host last spoke of it."""

    view: RunView
    seen_s: float
    """When that was, by this computer's clock."""
    price_per_h: float | None = None
    currency: str | None = None
    """What its host cost when the run was first seen."""
    has_origin: bool = False
    """It was started from here, and can be started again."""

    @property
    def run(self) -> RunId:
        return self.view.run

    @property
    def host(self) -> HostName:
        return self.view.host


def age_s(past: PastRun, wall_s: float) -> float:
    """How long ago a host last spoke of it."""
    return max(0.0, wall_s - past.seen_s)
