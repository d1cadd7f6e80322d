"""Run profiles: TOML that says what to run, where, with which cards, and what to watch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from cockpit.config.paths import Home


class Profile(BaseModel):
    """A run profile. Field names carry their units; TOML keys are their aliases."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: str
    description: str = ""
    hosts: tuple[str, ...] = ()
    cwd: str = "~"
    tags: tuple[str, ...] = ()


def load_profile(source: str, home: Home, overrides: Sequence[str] = ()) -> Profile:
    """The profile of that path or name, with `key=value` overrides. Raises ProfileError with every problem."""
    raise NotImplementedError


def find_profiles(home: Home) -> list[Path]:
    """The home's profiles, then the shipped ones that no profile of the home hides."""
    raise NotImplementedError
